/* rdma_bench_text.c — prints the result of gpuload rdma bench as a table. */
#include <stdio.h>

#include "cli/lib/bench/bench_output.h"
#include "cli/rdma/rdma_bench.h"

static void add_latency(struct out *o, uint64_t ns)
{
	if (ns)
		output_number(o, (double)ns / 1e3, 10, 4);
	else
		out_add(o, "%10s", "-");
}

static void add_rates(struct out *o, const struct rdma_figures *f, bool all)
{
	const double ns = f->ns ? (double)f->ns : 1;

	output_number(o, (double)f->bytes * 8 / ns, 10, 4);
	if (all) {
		output_number(o, (double)f->bytes / ns, 9, 4);
		output_number(o, (double)f->messages * 1e6 / ns, 10, 4);
	}
	add_latency(o, f->p50_ns);
	add_latency(o, f->p99_ns);
}

static void add_head(const struct rdma_bench_result *r, struct out *o)
{
	const struct rdma_shape *s = &r->shape;

	out_add(o, "%s, %s, %s memory; %s %s, pid %d: %s memory\n", r->here.backend, r->here.device, r->here.memory,
		r->client ? "server" : "client", r->there.host, r->there.pid, r->there.memory);
	out_add(o, "mode %s, %u flow%s of %u QP%s, %u request%s in flight", rdma_mode_names[s->mode], s->n_flows,
		s->n_flows == 1 ? "" : "s", r->conn.n_qps, r->conn.n_qps == 1 ? "" : "s", s->n_requests, s->n_requests == 1 ? "" : "s");
	if (s->n_parts > 1)
		out_add(o, ", %u messages per receive", s->n_parts);
	if (s->flush)
		out_add(o, ", flushed");
	if (r->conn.staged)
		out_add(o, ", staged");
	if (r->n_threads > 1)
		out_add(o, ", %u threads", r->n_threads);
	out_add(o, "; a dead peer is detected within %.3g s\n\n", (double)r->conn.notice_ns / 1e9);
}

/* In mode basic, print the number of checked bytes. */
static void add_checks(const struct rdma_bench_result *r, struct out *o)
{
	out_add(o, "%12s%10s%16s\n", "bytes", "messages", "checked bytes");
	for (unsigned i = 0; i < r->n_rows; i++)
		out_add(o, "%12llu%10llu%16llu\n", (unsigned long long)r->row[i].bytes, (unsigned long long)r->row[i].here.messages,
			(unsigned long long)r->row[i].checked);
	out_add(o, "All bytes are as expected.\n");
}

static void add_rows(const struct rdma_bench_result *r, struct out *o)
{
	const bool half = r->shape.mode == RDMA_LAT || r->shape.mode == RDMA_PUT_LAT;

	if (r->client)
		out_add(o, "%22s%49s%30s\n", "", "this end", "server");
	out_add(o, "%10s%12s%10s%9s%10s%10s%10s", "bytes", "messages", "Gbit/s", "GB/s", "1000/s", "p50 us", "p99 us");
	if (r->client)
		out_add(o, "%10s%10s%10s", "Gbit/s", "p50 us", "p99 us");
	out_text(o, "\n");
	for (unsigned i = 0; i < r->n_rows; i++) {
		const struct rdma_row *row = &r->row[i];

		out_add(o, "%10llu%12llu", (unsigned long long)row->bytes, (unsigned long long)row->here.messages);
		add_rates(o, &row->here, true);
		if (r->client)
			add_rates(o, &row->there, false);
		out_text(o, "\n");
	}
	out_add(o, "%s\n",
		half ? "Latency is half a round trip."
		     : "Latency is from the start of a request until its end, with the others in flight.");
}

void rdma_bench_text(const struct rdma_bench_result *r, struct out *o)
{
	add_head(r, o);
	if (r->shape.mode == RDMA_BASIC)
		add_checks(r, o);
	else
		add_rows(r, o);
	if (r->reliable)
		reliable_stats_text(r->reliable, r->shape.n_flows, o);
}
