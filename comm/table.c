/* table.c — reads a file of measured choices. */
#include "comm/table.h"

#include <stdlib.h>
#include <string.h>

#include "comm/comm_internal.h"
#include "core/file.h"

enum { N_FIELDS = 12, MAX_ROWS = 100000, MAX_LINE_BYTES = 512 };

/* Where the reader is. */
struct reader {
	const char *path;
	unsigned line;
	gpul_error *err;
};

/* Fail with the place and what is expected there. */
static gpul_status fail_at(const struct reader *r, const char *column, const char *found, const char *expected)
{
	return gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:%u: %s '%.40s': %s", r->path, r->line, column, found, expected);
}

static gpul_status parse_text(const struct reader *r, const char *column, const char *text, char *out, size_t out_bytes)
{
	const size_t n = strlen(text);

	if (n == 0 || n >= out_bytes)
		return fail_at(r, column, text, n ? "the text is too long" : "a text is missing");
	memcpy(out, text, n + 1);
	return GPUL_OK;
}

static gpul_status parse_number(const struct reader *r, const char *column, const char *text, uint64_t least, uint64_t most,
				uint64_t *out)
{
	uint64_t n = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9' && n < UINT64_MAX / 10 - 1; at++)
		n = 10 * n + (uint64_t)(*at - '0');
	if (at == text || *at)
		return fail_at(r, column, text, "a decimal number is expected");
	if (n < least || n > most)
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:%u: %s %.40s: a number from %llu to %llu is expected", r->path, r->line,
				 column, text, (unsigned long long)least, (unsigned long long)most);
	*out = n;
	return GPUL_OK;
}

static gpul_status parse_time(const struct reader *r, const char *text, double *out)
{
	char *end;

	*out = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;
	return *out >= 0 && *out < 1e12 && !*end ? GPUL_OK : fail_at(r, "us", text, "a time in microseconds is expected");
}

static bool parse_call(const char *text, gpul_comm_call *out)
{
	for (int call = 0; call < GPUL_COMM_N_CALLS; call++)
		if (!strcmp(text, gpul_comm_call_name((gpul_comm_call)call))) {
			*out = (gpul_comm_call)call;
			return true;
		}
	return false;
}

static gpul_status parse_names(const struct reader *r, char *const *field, gpul_comm_table_row *out)
{
	if (!gpul_comm_transport_parse(field[2], &out->transport) || out->transport == GPUL_COMM_TRANSPORT_AUTO)
		return fail_at(r, "transport", field[2], "device, host or net is expected");
	if (!parse_call(field[3], &out->call))
		return fail_at(r, "call", field[3], "sendrecv, alltoall, allreduce, reducescatter, allgather or broadcast is expected");
	if (!gpul_comm_algo_parse(field[5], &out->algo) || out->algo == GPUL_COMM_ALGO_AUTO)
		return fail_at(r, "algorithm", field[5], "ring, oneshot, direct, tree or twolevel is expected");
	if (!gpul_comm_proto_parse(field[6], &out->proto) || out->proto == GPUL_COMM_PROTO_AUTO)
		return fail_at(r, "protocol", field[6], "ll, ll128 or simple is expected");
	if (!gpul_comm_plan_exists(out->call, out->algo, out->proto))
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:%u: there is no %s with algorithm %s and protocol %s", r->path, r->line,
				 field[3], field[5], field[6]);
	return GPUL_OK;
}

static gpul_status parse_row(const struct reader *r, char *const *field, gpul_comm_table_row *out)
{
	uint64_t n_ranks = 0, n_blocks = 0, n_threads = 0;
	gpul_status st = parse_text(r, "device", field[0], out->device, sizeof out->device);

	st = st ? st : parse_number(r, "ranks", field[1], 2, GPUL_COMM_MAX_PEERS, &n_ranks);
	st = st ? st : parse_names(r, field, out);
	st = st ? st : parse_number(r, "up_to_bytes", field[4], 1, UINT64_MAX / 16, &out->max_bytes);
	st = st ? st : parse_number(r, "blocks", field[7], 1, GPUL_COMM_MAX_BLOCKS, &n_blocks);
	st = st ? st : parse_number(r, "threads", field[8], 32, 1024, &n_threads);
	if (!st && n_threads % 32)
		st = fail_at(r, "threads", field[8], "a multiple of 32 is expected");
	st = st ? st : parse_time(r, field[9], &out->us);
	st = st ? st : parse_text(r, "host", field[10], out->host, sizeof out->host);
	st = st ? st : parse_text(r, "date", field[11], out->date, sizeof out->date);
	out->n_ranks = (int)n_ranks;
	out->n_blocks = (unsigned)n_blocks;
	out->n_threads = (unsigned)n_threads;
	return st;
}

/* Cut a line at its commas. */
static gpul_status split_line(const struct reader *r, char *line, char **field)
{
	unsigned n = 0;

	for (char *at = line; at; n++) {
		char *comma = strchr(at, ',');

		if (comma)
			*comma = 0;
		if (n < N_FIELDS)
			field[n] = at;
		at = comma ? comma + 1 : NULL;
	}
	return n == N_FIELDS ? GPUL_OK
			     : gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:%u: %u columns instead of %d: " GPUL_COMM_TABLE_HEADER, r->path,
					 r->line, n, N_FIELDS);
}

static bool same_call(const gpul_comm_table_row *a, const gpul_comm_table_row *b)
{
	return a->call == b->call && a->n_ranks == b->n_ranks && a->transport == b->transport && !strcmp(a->device, b->device);
}

/* The rows of a call must be in order, so that it is clear which one is for a size. */
static gpul_status check_order(const struct reader *r, const gpul_comm_table *t, const gpul_comm_table_row *row)
{
	for (size_t i = t->n_rows; i-- > 0;)
		if (same_call(&t->rows[i], row))
			return t->rows[i].max_bytes < row->max_bytes
				       ? GPUL_OK
				       : gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:%u: up_to_bytes %llu of %s is not greater than the %llu of "
						   "an earlier row for the same device and ranks", r->path, r->line,
						   (unsigned long long)row->max_bytes, gpul_comm_call_name(row->call),
						   (unsigned long long)t->rows[i].max_bytes);
	return GPUL_OK;
}

static gpul_status add_row(const struct reader *r, gpul_comm_table *t, const gpul_comm_table_row *row)
{
	gpul_comm_table_row *more = t->rows;

	if ((t->n_rows & (t->n_rows - 1)) == 0) {  /* full: the room doubles */
		more = realloc(t->rows, (t->n_rows ? 2 * t->n_rows : 1) * sizeof *more);
		if (!more || t->n_rows > MAX_ROWS)
			return gpul_fail(r->err, GPUL_ENOMEM, 0, "no memory for the table %.100s", r->path);
	}
	t->rows = more;
	t->rows[t->n_rows++] = *row;
	return GPUL_OK;
}

static gpul_status read_line(const struct reader *r, const char *at, size_t n, gpul_comm_table *t)
{
	char line[MAX_LINE_BYTES], *field[N_FIELDS];
	gpul_comm_table_row row = { 0 };
	gpul_status st;

	if (n >= sizeof line || memchr(at, 0, n))
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:%u: not a line of a table", r->path, r->line);
	memcpy(line, at, n);
	line[n] = 0;
	if (r->line == 1)
		return strcmp(line, GPUL_COMM_TABLE_HEADER) == 0
			       ? GPUL_OK
			       : gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s:1: the first line must be " GPUL_COMM_TABLE_HEADER, r->path);
	st = split_line(r, line, field);
	st = st ? st : parse_row(r, field, &row);
	st = st ? st : check_order(r, t, &row);
	return st ? st : add_row(r, t, &row);
}

gpul_status gpul_comm_table_read(const char *path, gpul_comm_table *out, gpul_error *err)
{
	struct reader r = { .path = path, .err = err };
	gpul_comm_table t = { 0 };
	gpul_file f;
	gpul_status st = gpul_file_open(path, &f, err);
	size_t at = 0;

	*out = t;
	if (st)
		return st;
	while (!st && at < f.n_bytes) {
		const char *line = (const char *)f.bytes + at, *end = memchr(line, '\n', f.n_bytes - at);
		const size_t n = end ? (size_t)(end - line) : f.n_bytes - at;

		r.line++;
		st = read_line(&r, line, n, &t);
		at += n + 1;
	}
	gpul_file_close(&f);
	if (st)
		gpul_comm_table_free(&t);
	else
		*out = t;
	return st;
}

void gpul_comm_table_free(gpul_comm_table *t)
{
	free(t->rows);
	*t = (gpul_comm_table){ 0 };
}
