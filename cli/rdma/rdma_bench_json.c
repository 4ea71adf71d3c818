/* rdma_bench_json.c — prints the result of gpuload rdma bench as JSON. */
#include "cli/lib/json/cli_json.h"
#include "cli/rdma/rdma_bench.h"

static void add_figures(struct json *j, const char *key, const struct rdma_figures *f)
{
	const double ns = f->ns ? (double)f->ns : 1;

	if (!f->messages) { /* mode basic measures no times */
		json_null(j, key);
		return;
	}
	json_begin(j, key, '{');
	json_double(j, "gbit_per_s", (double)f->bytes * 8 / ns);
	json_double(j, "gb_per_s", (double)f->bytes / ns);
	json_double(j, "messages_per_s", (double)f->messages * 1e9 / ns);
	json_u64(j, "messages", f->messages);
	json_double(j, "seconds", ns / 1e9);
	if (f->p50_ns) {
		json_double(j, "p50_us", (double)f->p50_ns / 1e3);
		json_double(j, "p99_us", (double)f->p99_ns / 1e3);
	} else {
		json_null(j, "p50_us");
		json_null(j, "p99_us");
	}
	json_end(j, '}');
}

static void add_end(struct json *j, const char *key, const struct rdma_end *e)
{
	json_begin(j, key, '{');
	json_text(j, "backend", e->backend);
	json_text(j, "device", e->device);
	json_text(j, "why", e->why);
	json_text(j, "memory", e->memory);
	json_text(j, "host", e->host);
	json_i64(j, "pid", e->pid);
	json_end(j, '}');
}

static void add_conn(struct json *j, const gpul_rdma_conn_info *c)
{
	json_begin(j, "connection", '{');
	json_text(j, "peer", c->peer);
	json_u64(j, "qps", c->n_qps);
	json_u64(j, "depth", c->depth);
	json_u64(j, "segment_bytes", c->segment_bytes);
	json_double(j, "notice_ms", (double)c->notice_ns / 1e6);
	json_double(j, "fabric_notice_ms", (double)c->fabric_notice_ns / 1e6);
	json_bool(j, "staged", c->staged);
	json_end(j, '}');
}

void rdma_bench_json(const struct rdma_bench_result *r, struct json *j)
{
	json_begin(j, NULL, '{');
	json_text(j, "end", r->client ? "client" : "server");
	json_text(j, "mode", rdma_mode_names[r->shape.mode]);
	json_u64(j, "flows", r->shape.n_flows);
	json_u64(j, "messages_per_receive", r->shape.n_parts);
	json_u64(j, "requests", r->shape.n_requests);
	json_bool(j, "flush", r->shape.flush);
	json_u64(j, "threads", r->n_threads);
	add_end(j, "here", &r->here);
	add_end(j, "there", &r->there);
	add_conn(j, &r->conn);
	json_begin(j, "rows", '[');
	for (unsigned i = 0; i < r->n_rows; i++) {
		const struct rdma_row *row = &r->row[i];

		json_begin(j, NULL, '{');
		json_u64(j, "bytes", row->bytes);
		json_u64(j, "iterations", row->iterations);
		json_u64(j, "requests", row->window);
		json_u64(j, "messages_per_receive", row->n_parts);
		add_figures(j, "here", &row->here);
		if (r->client)
			add_figures(j, "there", &row->there);
		json_u64(j, "checked_bytes", row->checked);
		json_end(j, '}');
	}
	json_end(j, ']');
	reliable_stats_json(r->reliable, r->shape.n_flows, j);
	json_end(j, '}');
}
