/* comm_sparse_text.c — prints the result of gpuload comm sparse-allreduce as a table or as JSON. */
#include "cli/comm/sparse/comm_sparse.h"
#include "cli/lib/json/cli_json.h"

bool sparse_result_wrong(const struct sparse_result *r)
{
	for (unsigned i = 0; i < r->n_rows; i++) {
		const struct sparse_row *row = &r->rows[i];

		if (row->sparse.wrong || row->dense.wrong || row->sparse.differs || row->dense.differs)
			return true;
	}
	return false;
}

double sparse_speedup(const struct sparse_row *row)
{
	return row->sparse.us > 0 ? row->dense.us / row->sparse.us : 0;
}

/* ---- text ------------------------------------------------------------------------------------------------------------ */

void sparse_text_head(const struct sparse_result *r, struct out *o)
{
	const struct sparse_request *q = &r->q;

	out_add(o,
		"# gpuload comm sparse-allreduce: %d rank%s (%s), %s driver; blocks of %u elements; %d warm-up call%s, %d timed call%s, %s\n",
		r->n_ranks, r->n_ranks == 1 ? "" : "s", r->launcher, r->driver, q->options.block, q->warmups, q->warmups == 1 ? "" : "s",
		q->iterations, q->iterations == 1 ? "" : "s", q->check ? "data checked" : "data not checked");
	for (int rank = 0; rank < r->n_ranks; rank++)
		out_add(o, "#  rank %2d  pid %6d  device %2d  %s\n", rank, r->about[rank].pid, r->about[rank].device, r->about[rank].name);
	out_add(o, "#  sparse: %s\n", r->path);
	if (r->n_ranks > 1)
		out_add(o, "#  dense: gpuload comm allreduce --transport %s\n",
			gpul_comm_transport_name((gpul_comm_transport)r->about[0].paths[1].transport));
	if (r->interprets)
		out_text(o, "#  The software driver interprets kernels: compare these times only with each other.\n");
	out_add(o, "#\n#%58s%-30s%-26s\n", "", "            sparse", "           dense");
	out_add(o, "#%11s%13s%8s%8s%9s%9s%10s%9s%12s%7s%10s%9s%7s%9s\n", "size", "count", "type", "redop", "density", "found", "time",
		"busbw", "sent", "#wrong", "time", "busbw", "#wrong", "speed-up");
	out_add(o, "#%11s%13s%8s%8s%9s%9s%10s%9s%12s%7s%10s%9s%7s%9s\n", "(B)", "(elements)", "", "", "(%)", "(%)", "(us)", "(GB/s)", "(B)",
		"", "(us)", "(GB/s)", "", "");
}

void sparse_text_row(const struct sparse_result *r, const struct sparse_row *row, struct out *o)
{
	out_add(o, " %11zu%13zu%8s%8s%9.4g%9.3g", row->bytes, row->count, gpul_comm_dtype_name(r->q.dtype), gpul_comm_op_name(r->q.op),
		row->percent, 100 * row->report.density);
	comm_text_time(o, row->sparse.us);
	if (row->report.dense)
		out_add(o, "%9.2f%12s", row->sparse.bus_gb_s, "dense");
	else
		out_add(o, "%9.2f%12llu", row->sparse.bus_gb_s, (unsigned long long)row->report.sent_bytes);
	comm_text_wrong(&row->sparse, r->q.check, o);
	comm_text_time(o, row->dense.us);
	out_add(o, "%9.2f", row->dense.bus_gb_s);
	comm_text_wrong(&row->dense, r->q.check, o);
	out_add(o, "%9.2f\n", sparse_speedup(row));
}

void sparse_text_end(const struct sparse_result *r, struct out *o)
{
	uint64_t wrong = 0;
	bool differs = false;

	for (unsigned i = 0; i < r->n_rows; i++) {
		wrong += r->rows[i].sparse.wrong + r->rows[i].dense.wrong;
		differs = differs || r->rows[i].sparse.differs || r->rows[i].dense.differs;
	}
	comm_text_verdict(wrong, differs, r->q.check, o);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

static void add_row(const struct sparse_result *r, const struct sparse_row *row, struct json *j)
{
	json_begin(j, NULL, '{');
	json_u64(j, "bytes", row->bytes);
	json_u64(j, "count", row->count);
	json_double(j, "density_percent", row->percent);
	json_double(j, "density_found_percent", 100 * row->report.density);
	json_u64(j, "n_blocks", row->report.n_blocks);
	json_u64(j, "n_blocks_summed", row->report.n_summed);
	json_bool(j, "fell_back_to_dense", row->report.dense);
	json_u64(j, "sent_bytes", row->report.sent_bytes);
	comm_json_figures(&row->sparse, r->q.check, "sparse", j);
	comm_json_figures(&row->dense, r->q.check, "dense", j);
	json_double(j, "speedup", sparse_speedup(row));
	json_end(j, '}');
}

void sparse_json(const struct sparse_result *r, struct json *j)
{
	json_begin(j, NULL, '{');
	json_text(j, "collective", "sparse-allreduce");
	json_i64(j, "n_ranks", r->n_ranks);
	json_text(j, "launcher", r->launcher);
	json_text(j, "driver", r->driver);
	json_bool(j, "interprets", r->interprets);
	json_text(j, "dtype", gpul_comm_dtype_name(r->q.dtype));
	json_text(j, "op", gpul_comm_op_name(r->q.op));
	json_u64(j, "block", r->q.options.block);
	json_u64(j, "dense_above_percent", r->q.options.percent);
	json_i64(j, "warmup", r->q.warmups);
	json_i64(j, "iters", r->q.iterations);
	json_bool(j, "checked", r->q.check);
	json_text(j, "sparse_path", r->path);
	if (r->n_ranks > 1)
		json_text(j, "dense_transport", gpul_comm_transport_name((gpul_comm_transport)r->about[0].paths[1].transport));
	else
		json_null(j, "dense_transport");
	json_begin(j, "rows", '[');
	for (unsigned i = 0; i < r->n_rows; i++)
		add_row(r, &r->rows[i], j);
	json_end(j, ']');
	json_bool(j, "ok", !sparse_result_wrong(r));
	json_end(j, '}');
}
