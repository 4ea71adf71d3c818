/* comm_measure.c — measures a command's sizes one after the other; rank 0 prints a row as soon as it is measured. */
#include <stdio.h>
#include <string.h>

#include "cli/comm/trace/comm_trace.h"

/* List the sizes without duplicates: several small sizes can be rounded to the same number of elements. */
static unsigned list_sizes(const struct comm_request *q, int n_ranks, size_t bytes[COMM_MOST_ROWS])
{
	size_t last = 0;
	unsigned n = 0;

	for (size_t size = q->min_bytes; size <= q->max_bytes && n < COMM_MOST_ROWS; size *= q->factor) {
		const struct comm_shape s = comm_shape_of(q->call, q->dtype, 0, n_ranks, size);

		if (s.bytes > last)
			bytes[n++] = last = s.bytes;
		if (size > SIZE_MAX / q->factor)
			break;
	}
	return n;
}

static gpul_status print_row(struct comm_rank *r, const struct comm_result *result, const struct comm_row *row, gpul_error *err)
{
	struct out o = { 0 };

	if (r->job.rank || result->q.json || result->q.explain)
		return GPUL_OK;
	comm_text_row(result, row, &o);
	return comm_rank_print(r, &o, err);
}

static void add_rates(const struct comm_result *result, const struct comm_row *row, struct comm_figures *f)
{
	f->measured = true;
	f->algo_gb_s = f->us > 0 ? (double)row->bytes / f->us / 1e3 : 0;
	f->bus_gb_s = f->algo_gb_s * comm_bus_factor(result->q.call, result->n_ranks);
}

static gpul_status measure_row(struct comm_rank *r, struct comm_result *result, struct comm_row *row, gpul_error *err)
{
	const struct comm_request *q = &result->q;
	const struct comm_shape s = comm_shape_of(q->call, q->dtype, r->job.rank, r->job.size, row->bytes);
	gpul_status st = GPUL_OK;

	for (unsigned in = 0; !st && in < 2; in++) {
		struct comm_figures *f = &row->figures[in];

		if (in ? !q->in_place : !q->out_of_place)
			continue;
		if (q->check)
			st = comm_check_call(r, &s, q, in, 2 * (uint64_t)(row - result->row) + in + 1, f, err);
		st = st ? st : comm_time_calls(r, &s, q, in, f, err);
		if (!st)
			add_rates(result, row, f);
	}
	return st;
}

/* Return the plan of the measured call.  Without groups, it is the plan of each send. */
static gpul_comm_plan plan_of(const struct comm_rank *r, const struct comm_request *q, const struct comm_shape *s)
{
	return q->ungrouped ? gpul_comm_plan_for(r->comm, GPUL_COMM_SENDRECV, s->send_bytes / s->n_parts)
			    : gpul_comm_plan_for(r->comm, q->call, s->bytes);
}

gpul_status comm_measure(struct comm_rank *r, void *argument, gpul_error *err)
{
	struct comm_result *result = argument;
	const struct comm_request *q = &result->q;
	size_t bytes[COMM_MOST_ROWS];
	const unsigned n = list_sizes(q, r->job.size, bytes);
	gpul_status st = q->explain || n == 0 ? GPUL_OK : comm_rank_allocate(r, bytes[n - 1], !q->no_register, err);

	if (!st && q->trace)
		st = comm_trace_create(r, &r->tracer, err);
	for (unsigned i = 0; !st && i < n && !atomic_load(&r->stop); i++) {
		const struct comm_shape s = comm_shape_of(q->call, q->dtype, r->job.rank, r->job.size, bytes[i]);
		struct comm_row *row = &result->row[i];

		*row = (struct comm_row){ .bytes = s.bytes, .count = s.count, .plan = plan_of(r, q, &s) };
		(void)snprintf(row->reason, sizeof row->reason, "%s", row->plan.reason);
		if (!q->explain)
			st = measure_row(r, result, row, err);
		if (!st) {
			result->n_rows = i + 1;
			st = print_row(r, result, row, err);
		}
		atomic_store(&r->permille, 1000 * (i + 1) / n);
	}
	return st || !q->trace ? st : comm_trace_finish(r, result, err);
}
