/* comm_text.c — prints the result of a collective as a table like that of nccl-tests. */
#include <stdio.h>
#include <string.h>

#include "cli/comm/comm_bench.h"
#include "cli/lib/bench/bench_plot.h"

bool comm_result_wrong(const struct comm_result *r)
{
	for (unsigned i = 0; i < 2 * r->n_rows; i++) {
		const struct comm_figures *f = &r->row[i / 2].figures[i % 2];

		if (f->measured && (f->wrong || f->differs))
			return true;
	}
	return false;
}

double comm_result_mean_bus(const struct comm_result *r)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < 2 * r->n_rows; i++) {
		const struct comm_figures *f = &r->row[i / 2].figures[i % 2];

		sum += f->measured ? f->bus_gb_s : 0;
		n += f->measured;
	}
	return n ? sum / n : 0;
}

/* ---- head -------------------------------------------------------------------------------------------------- */

static void add_rank(const struct comm_result *r, int rank, struct out *o)
{
	const struct comm_about *a = &r->about[rank];
	const int next = (rank + 1) % r->n_ranks;

	out_add(o, "#  rank %2d  pid %6d  device %2d  %s", rank, a->pid, a->device, a->name);
	if (next != rank)
		out_add(o, ";  to rank %d: %s (%s)", next, gpul_comm_transport_name((gpul_comm_transport)a->paths[next].transport),
			a->paths[next].reason);
	out_text(o, "\n");
}

/* Append the transport if all pairs of ranks use the same one; otherwise the number of pairs for each transport. */
static void add_transports(const struct comm_result *r, struct out *o)
{
	unsigned n = 0, n_device = 0, n_net = 0;

	for (int a = 0; a < r->n_ranks; a++)
		for (int b = 0; b < r->n_ranks; b++) {
			n += a != b;
			n_device += a != b && r->about[a].paths[b].transport == GPUL_COMM_DEVICE;
			n_net += a != b && r->about[a].paths[b].transport == GPUL_COMM_NET;
		}
	if (n == 0)
		return;
	out_text(o, "#  transport: ");
	if (n_device == n || n_net == n || n_device + n_net == 0)
		out_add(o, "%s between all ranks\n", n_device ? "device memory" : n_net ? "the network" : "host memory");
	else if (n_net)
		out_add(o, "the network for %u of %u pairs of ranks, %s for the others; --json lists them\n", n_net / 2, n / 2,
			n_device + n_net == n ? "device memory"
			: n_device            ? "device or host memory"
					      : "host memory");
	else
		out_add(o, "device memory for %u of %u pairs of ranks, host memory for the others; --json lists them\n", n_device / 2,
			n / 2);
}

static void add_settings(const struct comm_result *r, struct out *o)
{
	const struct comm_request *q = &r->q;

	out_add(o, "# gpuload comm %s: %d rank%s (%s), %s driver; sizes ", gpul_comm_call_name(q->call), r->n_ranks,
		r->n_ranks == 1 ? "" : "s", r->launcher, r->driver);
	plot_add_size(o, q->min_bytes);
	if (q->max_bytes > q->min_bytes) {
		out_text(o, " to ");
		plot_add_size(o, q->max_bytes);
		out_add(o, " by factor %zu", q->factor);
	}
	if (q->explain) {
		out_text(o, "\n");
		return;
	}
	out_add(o, "; %d warm-up call%s, %d timed call%s%s%s%s, %s\n", q->warmups, q->warmups == 1 ? "" : "s", q->iterations,
		q->iterations == 1 ? "" : "s", q->graph ? " in a graph" : "", q->ungrouped ? " without groups" : "",
		q->no_register ? ", memory that is not registered" : "", q->check ? "data checked" : "data not checked");
}

void comm_text_head(const struct comm_result *r, struct out *o)
{
	add_settings(r, o);
	for (int rank = 0; rank < r->n_ranks; rank++)
		add_rank(r, rank, o);
	add_transports(r, o);
	if (r->interprets && !r->q.explain)
		out_text(o, "#  The software driver interprets kernels: compare these times only with each other.\n");
	if (r->q.explain)
		return;
	out_add(o, "#\n#%58s%-36s%s\n", "", "             out-of-place", "              in-place");
	out_add(o, "#%11s%13s%8s%8s%7s%10s%9s%9s%7s%10s%9s%9s%7s  %s\n", "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
		"#wrong", "time", "algbw", "busbw", "#wrong", "plan");
	out_add(o, "#%11s%13s%8s%8s%7s%10s%9s%9s%7s%10s%9s%9s%7s  %s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
		"(us)", "(GB/s)", "(GB/s)", "", "algorithm/protocol, blocks x threads");
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

void comm_text_time(struct out *o, double us)
{
	out_add(o, "%10.*f", us < 100 ? 2 : us < 10000 ? 1 : 0, us);
}

void comm_text_wrong(const struct comm_figures *f, bool check, struct out *o)
{
	if (!check)
		out_add(o, "%7s", "-");
	else if (f->differs)
		out_add(o, "%7s", "differs");
	else
		out_add(o, "%7llu", (unsigned long long)f->wrong);
}

static void add_figures(const struct comm_request *q, const struct comm_figures *f, struct out *o)
{
	if (!f->measured) {
		out_add(o, "%10s%9s%9s%7s", "-", "-", "-", "-");
		return;
	}
	comm_text_time(o, f->us);
	out_add(o, "%9.2f%9.2f", f->algo_gb_s, f->bus_gb_s);
	comm_text_wrong(f, q->check, o);
}

static void add_plan(const gpul_comm_plan *p, struct out *o)
{
	out_add(o, "%s/%s, %u x %u", gpul_comm_algo_name(p->algo), gpul_comm_proto_name(p->proto), p->n_blocks, p->n_threads);
}

static void add_call(const struct comm_result *r, const struct comm_row *row, struct out *o)
{
	const struct comm_request *q = &r->q;
	const struct gpul_comm_call_info *info = gpul_comm_call_info(q->call);

	out_add(o, " %11zu%13zu%8s%8s", row->bytes, row->count, gpul_comm_dtype_name(q->dtype),
		info->reduces ? gpul_comm_op_name(q->op) : "none");
	out_add(o, "%7d", info->has_root ? q->root : -1);
}

void comm_text_row(const struct comm_result *r, const struct comm_row *row, struct out *o)
{
	add_call(r, row, o);
	add_figures(&r->q, &row->figures[0], o);
	add_figures(&r->q, &row->figures[1], o);
	out_text(o, "  ");
	add_plan(&row->plan, o);
	out_text(o, "\n");
}

/* ---- end --------------------------------------------------------------------------------------------------- */

static void add_waiting(const struct comm_result *r, struct out *o)
{
	uint64_t n = 0, n_lost = 0, n_net = 0;

	for (int k = 0; k < r->n_ranks; k++) {
		n += r->waiting[k].n_events;
		n_net += r->waiting[k].n_net;
		n_lost += r->waiting[k].n_lost + r->waiting[k].n_net_lost;
	}
	out_add(o, "# trace: %llu events", (unsigned long long)n);
	if (n_net)
		out_add(o, " of kernels, %llu of the network", (unsigned long long)n_net);
	if (n_lost)
		out_add(o, ", %llu more were lost", (unsigned long long)n_lost);
	out_add(o, "; clocks of the ranks agree within %.4g us; share of kernel time spent waiting:", r->clock_bound_ns / 1e3);
	for (int k = 0; k < r->n_ranks; k++) {
		const struct comm_waiting *w = &r->waiting[k];

		out_add(o, "%s rank %d %.0f %%", k ? "," : "", k, w->kernel_ns ? 100 * (double)w->waiting_ns / (double)w->kernel_ns : 0.0);
	}
	out_text(o, "\n");
}

/* Append a line for each host except rank 0's: the relation of its clock to that of rank 0's host. */
static void add_hosts(const struct comm_result *r, struct out *o)
{
	for (int h = 1; h < r->n_hosts; h++) {
		int first = 0;

		while (r->about[first].host != h)
			first++;
		out_add(o,
			"# trace: clock of host %s plus %.9f s equals clock of host %s within %.4g us; drift %.1f +- %.1f ppm, shortest "
			"round trip %.1f us\n",
			r->about[first].host_name, (double)r->host[h].offset_ns / 1e9, r->about[0].host_name, r->host[h].bound_ns / 1e3,
			r->host[h].drift_ppm, r->host[h].drift_bound_ppm, (double)r->host[h].round_trip_ns / 1e3);
	}
}

void comm_text_verdict(uint64_t wrong, bool differs, bool check, struct out *o)
{
	if (check)
		out_add(o, "# wrong elements: %llu %s\n", (unsigned long long)wrong, wrong ? "FAILED" : "OK");
	if (differs)
		out_text(o, "# FAILED: ranks have different bits in a result that must be the same on all of them\n");
}

void comm_text_end(const struct comm_result *r, struct out *o)
{
	uint64_t wrong = 0;
	bool differs = false;

	for (unsigned i = 0; i < 2 * r->n_rows; i++) {
		const struct comm_figures *f = &r->row[i / 2].figures[i % 2];

		wrong += f->measured ? f->wrong : 0;
		differs = differs || (f->measured && f->differs);
	}
	comm_text_verdict(wrong, differs, r->q.check, o);
	out_add(o, "# average bus bandwidth: %.4g GB/s\n", comm_result_mean_bus(r));
	if (r->q.trace) {
		add_waiting(r, o);
		add_hosts(r, o);
	}
}

/* ---- --explain --------------------------------------------------------------------------------------------- */

void comm_text_explain(const struct comm_result *r, struct out *o)
{
	out_add(o, "#%11s  %-10s%-10s%7s%9s  %s\n", "size (B)", "algorithm", "protocol", "blocks", "threads", "why");
	for (unsigned i = 0; i < r->n_rows; i++) {
		const struct comm_row *row = &r->row[i];

		out_add(o, " %11zu  %-10s%-10s%7u%9u  %s\n", row->bytes, gpul_comm_algo_name(row->plan.algo),
			gpul_comm_proto_name(row->plan.proto), row->plan.n_blocks, row->plan.n_threads, row->reason);
	}
}
