/* table.c — reads a tuning table: a file of measured choices. */
#include "comm/table.h"

#include <stdlib.h>
#include <string.h>

#include "comm/comm_internal.h"
#include "core/file/rows.h"

enum { MAX_ROWS = 100000 };

static gpul_status parse_names(const gpul_rows *r, char *const *field, gpul_comm_table_row *out)
{
	if (!gpul_comm_transport_parse(field[2], &out->transport) || out->transport == GPUL_COMM_TRANSPORT_AUTO)
		return gpul_rows_fail(r, "transport", field[2], "expected device, host or net");
	if (!gpul_comm_call_parse(field[3], &out->call))
		return gpul_rows_fail(r, "call", field[3], GPUL_COMM_LIST_ALL " is expected");
	if (!gpul_comm_algo_parse(field[5], &out->algo) || out->algo == GPUL_COMM_ALGO_AUTO)
		return gpul_rows_fail(r, "algorithm", field[5], "expected ring, oneshot, direct, tree or twolevel");
	if (!gpul_comm_proto_parse(field[6], &out->proto) || out->proto == GPUL_COMM_PROTO_AUTO)
		return gpul_rows_fail(r, "protocol", field[6], "expected ll, ll128 or simple");
	if (!gpul_comm_plan_exists(out->call, out->algo, out->proto))
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:%u: there is no %s with algorithm %s and protocol %s", r->path, r->line,
				 field[3], field[5], field[6]);
	return GPUL_OK;
}

static gpul_status parse_row(const gpul_rows *r, char *const *field, gpul_comm_table_row *out)
{
	uint64_t n_ranks = 0, n_blocks = 0, n_threads = 0;
	gpul_status st = gpul_rows_text(r, "device", field[0], out->device, sizeof out->device);

	st = st ? st : gpul_rows_number(r, "ranks", field[1], 2, GPUL_COMM_MAX_PEERS, &n_ranks);
	st = st ? st : parse_names(r, field, out);
	st = st ? st : gpul_rows_number(r, "up_to_bytes", field[4], 1, UINT64_MAX / 16, &out->max_bytes);
	st = st ? st : gpul_rows_number(r, "blocks", field[7], 1, GPUL_COMM_MAX_BLOCKS, &n_blocks);
	st = st ? st : gpul_rows_number(r, "threads", field[8], 32, 1024, &n_threads);
	if (!st && n_threads % 32)
		st = gpul_rows_fail(r, "threads", field[8], "expected a multiple of 32");
	st = st ? st : gpul_rows_decimal(r, "us", field[9], &out->us);
	st = st ? st : gpul_rows_text(r, "host", field[10], out->host, sizeof out->host);
	st = st ? st : gpul_rows_text(r, "date", field[11], out->date, sizeof out->date);
	out->n_ranks = (int)n_ranks;
	out->n_blocks = (unsigned)n_blocks;
	out->n_threads = (unsigned)n_threads;
	return st;
}

static bool same_call(const gpul_comm_table_row *a, const gpul_comm_table_row *b)
{
	return a->call == b->call && a->n_ranks == b->n_ranks && a->transport == b->transport && !strcmp(a->device, b->device);
}

/* Check that the entries of a call are in ascending order of size, so that exactly one entry applies to each size. */
static gpul_status check_order(const gpul_rows *r, const gpul_comm_table *t, const gpul_comm_table_row *row)
{
	for (size_t i = t->n_rows; i-- > 0;)
		if (same_call(&t->rows[i], row))
			return t->rows[i].max_bytes < row->max_bytes
				       ? GPUL_OK
				       : gpul_fail(r->err, GPUL_EFORMAT, 0,
						   "%.100s:%u: up_to_bytes %llu of %s is not greater than the %llu of "
						   "an earlier row for the same device and ranks",
						   r->path, r->line, (unsigned long long)row->max_bytes, gpul_comm_call_name(row->call),
						   (unsigned long long)t->rows[i].max_bytes);
	return GPUL_OK;
}

static gpul_status add_row(const gpul_rows *r, gpul_comm_table *t, const gpul_comm_table_row *row)
{
	gpul_comm_table_row *more = t->rows;

	if ((t->n_rows & (t->n_rows - 1)) == 0) { /* the array is full: double it */
		more = realloc(t->rows, (t->n_rows ? 2 * t->n_rows : 1) * sizeof *more);
		if (!more || t->n_rows > MAX_ROWS)
			return gpul_fail(r->err, GPUL_ENOMEM, 0, "no memory for the table %.100s", r->path);
	}
	t->rows = more;
	t->rows[t->n_rows++] = *row;
	return GPUL_OK;
}

static gpul_status take_row(const gpul_rows *r, char *const *field, void *context)
{
	gpul_comm_table *t = context;
	gpul_comm_table_row row = { 0 };
	gpul_status st = parse_row(r, field, &row);

	st = st ? st : check_order(r, t, &row);
	return st ? st : add_row(r, t, &row);
}

gpul_status gpul_comm_table_read(const char *path, gpul_comm_table *out, gpul_error *err)
{
	gpul_status st;

	*out = (gpul_comm_table){ 0 };
	st = gpul_rows_read(path, GPUL_COMM_TABLE_HEADER, take_row, out, err);
	if (st)
		gpul_comm_table_free(out);
	return st;
}

void gpul_comm_table_free(gpul_comm_table *t)
{
	free(t->rows);
	*t = (gpul_comm_table){ 0 };
}
