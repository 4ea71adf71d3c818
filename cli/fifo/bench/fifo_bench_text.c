/* fifo_bench_text.c — prints the result of gpuload fifo bench as tables. */
#include <stdio.h>

#include "cli/fifo/bench/fifo_bench.h"
#include "cli/lib/bench/bench_output.h"

enum { CELL = 12 };

static const char *const about_mode[FIFO_N_MODES] = {
	"shared: one queue for all threads, in the order of their tickets",
	"lanes: one ring per thread, each in order; the same total number of slots",
};

static void add_millions(struct out *o, double millions, int width)
{
	if (millions <= 0)
		out_add(o, "%*s", width, "-");
	else
		output_number(o, millions, width, 3);
}

static void add_head(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o)
{
	out_add(o, "%s, %s driver, CUDA %d.%d; %s memory", result->gpu, result->driver, result->driver_version / 1000,
		result->driver_version % 1000 / 10, gpul_mem_kind_name(result->kind));
	if (result->node >= 0)
		out_add(o, " on node %d", result->node);
	out_add(o, "; CPU %u", result->cpu);
	if (r->batch)
		out_add(o, "; batches of %u", r->batch);
	out_add(o, "; the median of %u run%s\n", r->repeat, r->repeat == 1 ? "" : "s");
	if (result->interprets)
		out_add(o, "The software driver interprets kernels: compare these figures only with each other.\n");
	if (result->node >= 0 && result->cpu_node != (unsigned)result->node)
		out_add(o, "CPU %u is on node %u, the memory is on another node: choose a CPU with --cpu.\n", result->cpu,
			result->cpu_node);
	if (r->n_left)
		out_add(o, "Left out: %u pair%s of --sizes and --parallel with more threads than slots.\n", r->n_left,
			r->n_left == 1 ? "" : "s");
}

/* ---- throughput ------------------------------------------------------------------ */

static void add_throughput_row(const struct fifo_row *row, bool beside_peer, struct out *o)
{
	const struct fifo_peer *peer = beside_peer ? fifo_peer_of(row->config) : NULL;

	out_add(o, "%7u%9u%11llu", row->config.size, row->config.parallel, (unsigned long long)row->triggers);
	for (int op = 0; op < FIFO_N_OPS; op++) {
		add_millions(o, row->rate[op].median / 1e6, op % 2 ? CELL - 3 : CELL);
		if (op % 2 && beside_peer)
			add_millions(o, !peer ? 0 : op == FIFO_RELEASE ? peer->push : peer->push_sync, CELL);
	}
	out_add(o, "\n");
}

static void add_throughput(const struct fifo_bench_result *result, enum fifo_mode mode, struct out *o)
{
	const bool beside_peer = !result->interprets;
	bool any = false;

	out_add(o, "\n%s\nmillion triggers per second%*s%*s\n", about_mode[mode], 9, "push", beside_peer ? CELL + 33 : 33,
		"push + sync each");
	out_add(o, "  slots  threads  each push");
	for (int i = 0; i < 2; i++) {
		out_add(o, "%*s%*s", CELL, "relaxed", CELL - 3, "release");
		if (beside_peer)
			out_add(o, "%*s*", CELL - 1, fifo_peer_name);
	}
	out_add(o, "\n");
	for (unsigned i = 0; i < result->n_rows; i++) {
		if (result->row[i].mode != mode)
			continue;
		add_throughput_row(&result->row[i], beside_peer, o);
		any = any || fifo_peer_of(result->row[i].config);
	}
	if (beside_peer && any)
		out_add(o, "  * %s.\n    Its push has release order.\n", fifo_peer_about);
}

/* ---- latency --------------------------------------------------------------------- */

static void add_latency_row(const struct fifo_row *row, struct out *o)
{
	const struct fifo_latency *both[] = { &row->latency.to_pop, &row->latency.to_sync };

	out_add(o, "%7u%9u%11llu", row->config.size, row->config.parallel, (unsigned long long)row->latency.n);
	for (int i = 0; i < 2; i++)
		for (int p = 0; p < FIFO_N_PERCENTILES; p++)
			output_number(o, (double)both[i]->ns[p] / 1000, p ? 8 : 10, 2);
	out_add(o, "\n");
}

static void add_latency(const struct fifo_bench_result *result, enum fifo_mode mode, struct out *o)
{
	double bound_ns = 0;

	out_add(o, "\n%s, latency of push release + sync each, us\n", fifo_mode_names[mode]);
	out_add(o, "%27s%26s%42s\n", "", "push to pop", "push to sync");
	out_add(o, "  slots  threads   triggers");
	for (int i = 0; i < 2; i++)
		out_add(o, "%10s%8s%8s%8s%8s", "50 %", "90 %", "99 %", "99.9 %", "max");
	out_add(o, "\n");
	for (unsigned i = 0; i < result->n_rows; i++) {
		if (result->row[i].mode != mode)
			continue;
		add_latency_row(&result->row[i], o);
		if (result->row[i].latency.to_pop_bound_ns > bound_ns)
			bound_ns = result->row[i].latency.to_pop_bound_ns;
	}
	out_add(o, "  Push to pop compares two clocks; its error is at most %.2f us.\n", bound_ns / 1000);
}

/* ---- warps ----------------------------------------------------------------------- */

static void add_warps(const struct fifo_bench_result *result, struct out *o)
{
	out_add(o, "\nwarp push, relaxed: 32 triggers at a time into %d slots; each is read and checked\n", FIFO_WARP_SLOTS);
	out_add(o, "   mode    warps    triggers   million per second\n");
	for (unsigned i = 0; i < result->n_warps; i++) {
		const struct fifo_warp_row *row = &result->warp[i];

		out_add(o, "%7s%9u%12llu", fifo_mode_names[row->mode], row->warps, (unsigned long long)row->slots);
		add_millions(o, row->rate.median / 1e6, 19);
		out_add(o, "\n");
	}
}

void fifo_bench_text(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o)
{
	add_head(r, result, o);
	for (int mode = 0; mode < FIFO_N_MODES; mode++) {
		if (!r->mode[mode])
			continue;
		add_throughput(result, (enum fifo_mode)mode, o);
		add_latency(result, (enum fifo_mode)mode, o);
	}
	add_warps(result, o);
}
