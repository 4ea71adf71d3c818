/* fifo_bench_json.c — prints the result of gpuload fifo bench as JSON. */
#include "cli/fifo/bench/fifo_bench.h"
#include "cli/lib/json/cli_json.h"

static void add_rate(struct json *j, const char *key, const struct samples_spread *rate)
{
	json_begin(j, key, '{');
	json_double(j, "median", rate->median);
	json_double(j, "least", rate->least);
	json_double(j, "most", rate->most);
	json_end(j, '}');
}

static void add_latency(struct json *j, const char *key, const struct fifo_latency *latency)
{
	static const char *const names[FIFO_N_PERCENTILES] = { "p50", "p90", "p99", "p99.9", "max" };

	json_begin(j, key, '{');
	for (int i = 0; i < FIFO_N_PERCENTILES; i++)
		json_i64(j, names[i], latency->ns[i]);
	json_end(j, '}');
}

static void add_row(struct json *j, const struct fifo_row *row)
{
	json_begin(j, NULL, '{');
	json_text(j, "mode", fifo_mode_names[row->mode]);
	json_u64(j, "size", row->config.size);
	json_u64(j, "parallel", row->config.parallel);
	json_u64(j, "lanes", row->lanes);
	json_u64(j, "triggers_each", row->triggers);
	json_begin(j, "per_s", '{');
	for (int op = 0; op < FIFO_N_OPS; op++)
		add_rate(j, fifo_op_names[op], &row->rate[op]);
	json_end(j, '}');
	json_begin(j, "latency", '{');
	json_u64(j, "triggers", row->latency.n);
	add_latency(j, "push_to_pop_ns", &row->latency.to_pop);
	json_double(j, "push_to_pop_wrong_by_ns_at_most", row->latency.to_pop_bound_ns);
	add_latency(j, "push_to_sync_ns", &row->latency.to_sync);
	json_end(j, '}');
	json_end(j, '}');
}

/* Write the rates of fifo_bench_peer.c as a separate member, because they were measured on another machine. */
static void add_peer(struct json *j)
{
	json_begin(j, "measured_elsewhere", '{');
	json_text(j, "name", fifo_peer_name);
	json_text(j, "about", fifo_peer_about);
	json_begin(j, "rows", '[');
	for (const struct fifo_peer *p = fifo_peers; p->config.size; p++) {
		json_begin(j, NULL, '{');
		json_u64(j, "size", p->config.size);
		json_u64(j, "parallel", p->config.parallel);
		json_double(j, "push_release_per_s", p->push * 1e6);
		json_double(j, "push_release_sync_per_s", p->push_sync * 1e6);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
}

static void add_warp(struct json *j, const struct fifo_warp_row *row)
{
	json_begin(j, NULL, '{');
	json_text(j, "mode", fifo_mode_names[row->mode]);
	json_u64(j, "size", FIFO_WARP_SLOTS);
	json_u64(j, "warps", row->warps);
	json_u64(j, "lanes", row->lanes);
	json_u64(j, "triggers", row->slots);
	add_rate(j, "per_s", &row->rate);
	json_end(j, '}');
}

void fifo_bench_json(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct json *j)
{
	json_begin(j, NULL, '{');
	json_text(j, "device", result->gpu);
	json_text(j, "driver", result->driver);
	json_i64(j, "driver_version", result->driver_version);
	json_text(j, "kind", gpul_mem_kind_name(result->kind));
	json_i64(j, "node", result->node);
	json_u64(j, "cpu", result->cpu);
	json_u64(j, "cpu_node", result->cpu_node);
	json_bool(j, "pinned", r->cpu >= 0);
	json_u64(j, "repeat", r->repeat);
	if (r->batch)
		json_u64(j, "batch", r->batch);
	else
		json_null(j, "batch");
	json_u64(j, "left_out", r->n_left);
	json_begin(j, "rows", '[');
	for (unsigned i = 0; i < result->n_rows; i++)
		add_row(j, &result->row[i]);
	json_end(j, ']');
	json_begin(j, "warp_push", '[');
	for (unsigned i = 0; i < result->n_warps; i++)
		add_warp(j, &result->warp[i]);
	json_end(j, ']');
	if (result->interprets)
		json_null(j, "measured_elsewhere");
	else
		add_peer(j);
	json_end(j, '}');
}
