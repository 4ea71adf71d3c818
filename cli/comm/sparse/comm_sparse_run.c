/* comm_sparse_run.c — measures sparse and dense all-reduces of the same data. */
#include <stdio.h>
#include <string.h>

#include "cli/comm/comm_data.h"
#include "cli/comm/sparse/comm_sparse.h"
#include "core/clock.h"

enum { PIECE_BYTES = 1 << 20 };

struct bench {
	struct comm_rank *r;
	struct sparse_result *result;
	gpul_comm_mesh *mesh;
	gpul_comm_sparse *sparse;
};

/* ---- data ------------------------------------------------------------------------------------------------------------ */

static struct sparse_data data_of(const struct bench *b, const struct sparse_row *row)
{
	const struct sparse_request *q = &b->result->q;

	return (struct sparse_data){ .seed = (uint64_t)(row - b->result->rows) + 1,
				     .percent = row->percent,
				     .block = q->options.block,
				     .dtype = q->dtype,
				     .op = q->op,
				     .n_ranks = b->r->job.size };
}

static gpul_status fill(const struct bench *b, const struct sparse_row *row, gpul_error *err)
{
	struct comm_rank *r = b->r;
	const struct sparse_data data = data_of(b, row);
	const size_t element = gpul_comm_dtype_bytes(data.dtype);
	gpul_status st = gpul_cu(r->drv, err, cuMemsetD8Async(r->recv, 0xff, row->bytes, r->stream));

	for (size_t at = 0; !st && at < row->bytes; at += PIECE_BYTES) {
		const size_t n = row->bytes - at < PIECE_BYTES ? row->bytes - at : PIECE_BYTES;

		sparse_data_fill(&data, r->job.rank, at / element, n / element, r->staging);
		st = gpul_cu(r->drv, err, cuMemcpyHtoDAsync(r->send + at, r->staging, n, r->stream));
		st = st ? st : gpul_cu(r->drv, err, cuStreamSynchronize(r->stream));
	}
	return st;
}

/* Count the wrong elements in the results of all ranks, and compare the ranks' results with each other by a hash. */
static gpul_status check(const struct bench *b, const struct sparse_row *row, struct comm_figures *out, gpul_error *err)
{
	struct comm_rank *r = b->r;
	const struct sparse_data data = data_of(b, row);
	const size_t element = gpul_comm_dtype_bytes(data.dtype);
	uint64_t mine[2] = { 0, 0 }, all[GPUL_COMM_MAX_RANKS][2];
	gpul_status st = GPUL_OK;

	for (size_t at = 0; !st && at < row->bytes && !atomic_load(&r->stop); at += PIECE_BYTES) {
		const size_t n = row->bytes - at < PIECE_BYTES ? row->bytes - at : PIECE_BYTES;

		st = gpul_cu(r->drv, err, cuMemcpyDtoHAsync(r->staging, r->recv + at, n, r->stream));
		st = st ? st : gpul_cu(r->drv, err, cuStreamSynchronize(r->stream));
		if (!st) {
			mine[0] += sparse_data_check(&data, at / element, n / element, r->staging);
			mine[1] = comm_data_hash(mine[1], r->staging, n);
		}
	}
	st = st ? st : gpul_boot_allgather(r->boot, mine, sizeof mine, all, COMM_MEET_MS, err);
	for (int k = 0; !st && k < r->job.size; k++) {
		out->wrong += all[k][0];
		out->differs = out->differs || all[k][1] != all[0][1];
	}
	return st;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

static gpul_status call_sparse(const struct bench *b, struct sparse_row *row, unsigned n, gpul_error *err)
{
	struct comm_rank *r = b->r;
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < n && !atomic_load(&r->stop); i++)
		st = gpul_comm_sparse_allreduce(b->sparse, r->send, r->recv, row->count, b->result->q.dtype, b->result->q.op, r->stream,
						&row->report, err);
	return st ? st : gpul_comm_wait(r->comm, r->stream, err);
}

static gpul_status time_sparse(const struct bench *b, struct sparse_row *row, gpul_error *err)
{
	const struct sparse_request *q = &b->result->q;
	uint64_t begin, all[GPUL_COMM_MAX_RANKS];
	gpul_status st = call_sparse(b, row, (unsigned)q->warmups, err);

	st = st ? st : comm_start_together(b->r, err);
	begin = gpul_clock_ns();
	st = st ? st : call_sparse(b, row, (unsigned)q->iterations, err);
	st = st ? st : comm_exchange_times(b->r, (double)(gpul_clock_ns() - begin) / 1e3 / q->iterations, &row->sparse, err);
	st = st ? st : gpul_boot_allgather(b->r->boot, &row->report.sent_bytes, sizeof(uint64_t), all, COMM_MEET_MS, err);
	row->report.sent_bytes = 0;
	for (int k = 0; !st && k < b->r->job.size; k++)
		row->report.sent_bytes += all[k] / (uint64_t)b->r->job.size;
	return st;
}

static gpul_status run_dense(const struct bench *b, struct sparse_row *row, gpul_error *err)
{
	const struct sparse_request *q = &b->result->q;
	const struct comm_request request = {
		.call = GPUL_COMM_ALLREDUCE, .dtype = q->dtype, .op = q->op, .iterations = q->iterations, .warmups = q->warmups
	};
	const struct comm_shape shape = comm_shape_of(GPUL_COMM_ALLREDUCE, q->dtype, b->r->job.rank, b->r->job.size, row->bytes);

	return comm_time_calls(b->r, &shape, &request, false, &row->dense, err);
}

static gpul_status measure_row(const struct bench *b, struct sparse_row *row, gpul_error *err)
{
	const struct sparse_request *q = &b->result->q;
	struct comm_figures *of[] = { &row->sparse, &row->dense };
	gpul_status st = fill(b, row, err);

	if (q->check) {
		st = st ? st : call_sparse(b, row, 1, err);
		st = st ? st : check(b, row, &row->sparse, err);
	}
	st = st ? st : time_sparse(b, row, err);
	st = st ? st : run_dense(b, row, err);
	if (q->check)
		st = st ? st : check(b, row, &row->dense, err);
	for (unsigned i = 0; i < 2; i++) {
		of[i]->measured = true;
		of[i]->algo_gb_s = of[i]->us > 0 ? (double)row->bytes / of[i]->us / 1e3 : 0;
		of[i]->bus_gb_s = of[i]->algo_gb_s * comm_bus_factor(GPUL_COMM_ALLREDUCE, b->r->job.size);
	}
	return st;
}

/* ---- all rows --------------------------------------------------------------------------------------------------------- */

/* Print the head of the table, or a row. */
static gpul_status print(struct comm_rank *r, const struct sparse_result *result, const struct sparse_row *row, gpul_error *err)
{
	struct out o = { 0 };

	if (r->job.rank || result->q.json)
		return GPUL_OK;
	if (row)
		sparse_text_row(result, row, &o);
	else
		sparse_text_head(result, &o);
	return comm_rank_print(r, &o, err);
}

static void list_rows(struct sparse_result *result)
{
	const struct sparse_request *q = &result->q;
	size_t last = 0;

	for (size_t size = q->min_bytes; size <= q->max_bytes; size *= q->factor) {
		const struct comm_shape s = comm_shape_of(GPUL_COMM_ALLREDUCE, q->dtype, 0, result->n_ranks, size);

		for (unsigned i = 0; s.bytes > last && i < q->n_percent && result->n_rows < SPARSE_MOST_ROWS; i++)
			result->rows[result->n_rows++] = (struct sparse_row){ .bytes = s.bytes,
									      .count = s.count,
									      .percent = q->percent[i] };
		last = s.bytes;
		if (size > SIZE_MAX / q->factor)
			break;
	}
}

static gpul_status open_sparse(struct bench *b, gpul_error *err)
{
	struct comm_rank *r = b->r;
	gpul_comm_mesh_desc desc = { .rdma = b->result->q.place.net };
	gpul_comm_sparse_options options = b->result->q.options;
	gpul_rdma_device_info about;
	gpul_status st;

	options.comm = r->comm;
	options.timeout_ms = b->result->q.place.timeout_ms;
	options.gpu_direct = desc.rdma.gpu_direct;
	if (options.gpu_direct != GPUL_RDMA_GPU_DIRECT_NO) {
		desc.rdma.device.drv = r->drv;
		desc.rdma.device.gpu = gpul_comm_device(r->comm);
	}
	desc.rdma.gpu_direct = GPUL_RDMA_GPU_DIRECT_YES; /* lab/sparse itself stages data in host memory if necessary */
	st = gpul_comm_mesh_create(r->boot, &desc, COMM_MEET_MS, &b->mesh, err);
	st = st ? st : gpul_comm_sparse_create(r->drv, gpul_comm_device(r->comm), r->boot, b->mesh, &options, &b->sparse, err);
	if (st)
		return st;
	gpul_rdma_about(gpul_comm_mesh_rdma(b->mesh), &about);
	(void)snprintf(b->result->path, sizeof b->result->path, "%s, %.60s, %s", about.backend, about.name,
		       gpul_comm_sparse_memory(b->sparse));
	return GPUL_OK;
}

gpul_status sparse_measure(struct comm_rank *r, void *argument, gpul_error *err)
{
	struct bench b = { .r = r, .result = argument };
	struct sparse_result *result = b.result;
	unsigned n;
	gpul_status st = open_sparse(&b, err);

	list_rows(result);
	n = result->n_rows;
	result->n_rows = 0;
	st = st ? st : comm_rank_allocate(r, result->rows[n - 1].bytes, true, err);
	st = st ? st : print(r, result, NULL, err);
	for (unsigned i = 0; !st && i < n && !atomic_load(&r->stop); i++) {
		st = measure_row(&b, &result->rows[i], err);
		result->n_rows += !st;
		st = st ? st : print(r, result, &result->rows[i], err);
		atomic_store(&r->permille, 1000 * (i + 1) / n);
	}
	st = st ? st : gpul_boot_barrier(r->boot, COMM_MEET_MS, err);
	gpul_comm_sparse_destroy(b.sparse);
	gpul_comm_mesh_destroy(b.mesh);
	return st;
}
