/* incast_text.c — prints the result of gpuload comm incast as a table. */
#include "cli/comm/incast/incast.h"
#include "cli/lib/bench/bench_plot.h"

static void add_settings(const struct incast_result *r, struct out *o)
{
	const struct incast_request *q = &r->q;
	const int n = r->n_ranks - 1;

	out_add(o, "# gpuload comm incast: %d sender%s to one receiver (%s); %d message%s of ", n, n == 1 ? "" : "s", r->launcher,
		q->n_messages, q->n_messages == 1 ? "" : "s");
	plot_add_size(o, q->bytes);
	out_text(o, " from each\n");
	out_add(o, "# network: %s", r->device);
	if (*r->congestion)
		out_add(o, "; TCP's congestion control is %s", r->congestion);
	if (r->private_network) {
		out_add(o, "\n# private namespaces: %.4g Gbit/s in front of the receiver, with a queue of ", (double)q->rate_bits / 1e9);
		plot_add_size(o, q->queue_bytes);
	}
	out_text(o, "\n");
	if (q->modes[INCAST_SENDER]) {
		out_text(o, "# sender-driven: a window of ");
		plot_add_size(o, q->sender_window_bytes);
		out_add(o, " for each sender%s\n", q->bytes > q->sender_window_bytes ? ", but at least one message" : "");
	}
	if (!q->modes[INCAST_RECEIVER])
		return;
	out_text(o, "# receiver-driven: grants of ");
	plot_add_size(o, q->grant_bytes);
	out_add(o, ", a window of %llu bytes for all senders", (unsigned long long)r->window_bytes);
	if (r->round_trip_ns)
		out_add(o, ": %.4g GB/s times %.0f us, and two grants", r->rate_gb_s, (double)r->round_trip_ns / 1e3);
	out_text(o, "\n");
}

static void add_times(struct out *o, const struct incast_times *t)
{
	if (t->n)
		out_add(o, "%9.2f%9.2f", (double)t->p50_ns / 1e6, (double)t->p99_ns / 1e6);
	else
		out_add(o, "%9s%9s", "-", "-");
}

static void add_row(const struct incast_result *r, int mode, struct out *o)
{
	const struct incast_figures *f = &r->figures[mode];

	out_add(o, " %-9s%9.1f%9.4f%9.3f", incast_mode_names[mode], (double)f->ns / 1e6, f->ns ? (double)f->bytes / (double)f->ns : 0.0,
		f->fairness);
	add_times(o, &f->message);
	add_times(o, &f->probe);
	out_add(o, "%10.1f%9.1f", (double)f->queue_mean / 1024, (double)f->queue_most / 1024);
	if (r->private_network)
		out_add(o, "%8llu%8llu", (unsigned long long)f->drops, (unsigned long long)f->retransmissions);
	else
		out_add(o, "%8s%8s", "-", "-");
	out_add(o, "%7llu\n", (unsigned long long)f->wrong);
}

static void add_shares(const struct incast_result *r, int mode, struct out *o)
{
	const struct incast_figures *f = &r->figures[mode];
	double sum = 0;

	for (int k = 1; k < r->n_ranks; k++)
		sum += (double)f->share[k];
	out_add(o, "# shares, %s-driven:", incast_mode_names[mode]);
	for (int k = 1; k < r->n_ranks; k++)
		out_add(o, "%s rank %d %.1f %%", k == 1 ? "" : ",", k, sum > 0 ? 100 * (double)f->share[k] / sum : 0.0);
	out_text(o, "\n");
}

void incast_text(const struct incast_result *r, struct out *o)
{
	add_settings(r, o);
	out_add(o, "# queue: %s\n",
		r->private_network ? "backlog of the token bucket, read from the kernel every ms"
				   : "bytes between the senders and the receiver, counted at both ends every ms");
	out_add(o, "#\n#%-9s%9s%9s%9s%18s%18s%19s%8s%8s%7s\n", "driven by", "time", "rate", "fairness", "message p50, p99",
		"probe p50, p99", "queue mean, most", "drops", "resent", "wrong");
	out_add(o, "#%-9s%9s%9s%9s%18s%18s%19s\n", "", "(ms)", "(GB/s)", "(Jain)", "(ms)", "(ms)", "(KiB)");
	for (int m = 0; m < INCAST_N_MODES; m++)
		if (r->figures[m].measured)
			add_row(r, m, o);
	for (int m = 0; m < INCAST_N_MODES; m++)
		if (r->figures[m].measured)
			add_shares(r, m, o);
	if (incast_result_wrong(r))
		out_text(o, "# FAILED: the bytes at the receiver differ from those that the senders sent\n");
}
