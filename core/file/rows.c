/* rows.c — reads rows with columns separated by commas. */
#include "core/file/rows.h"

#include <stdlib.h>
#include <string.h>

#include "core/file/file.h"

gpul_status gpul_rows_fail(const gpul_rows *r, const char *column, const char *found, const char *expected)
{
	return gpul_fail(r->err, GPUL_EFORMAT, 0, "%s:%u: %s '%.40s': %s", r->path, r->line, column, found, expected);
}

gpul_status gpul_rows_number(const gpul_rows *r, const char *column, const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	uint64_t n = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9' && n < UINT64_MAX / 10 - 1; at++)
		n = 10 * n + (uint64_t)(*at - '0');
	if (at == text || *at)
		return gpul_rows_fail(r, column, text, "expected a decimal number");
	if (n < least || n > most)
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%s:%u: %s '%.40s': expected a number from %llu to %llu", r->path, r->line,
				 column, text, (unsigned long long)least, (unsigned long long)most);
	*out = n;
	return GPUL_OK;
}

gpul_status gpul_rows_decimal(const gpul_rows *r, const char *column, const char *text, double *out)
{
	char *end = NULL;
	const double n = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;

	if (!(n >= 0 && n < 1e15) || *end)
		return gpul_rows_fail(r, column, text, "expected a number of at least 0");
	*out = n;
	return GPUL_OK;
}

gpul_status gpul_rows_text(const gpul_rows *r, const char *column, const char *text, char *out, size_t out_bytes)
{
	const size_t n = strlen(text);

	if (n == 0 || n >= out_bytes)
		return gpul_rows_fail(r, column, text, n ? "the text is too long" : "the column is empty");
	memcpy(out, text, n + 1);
	return GPUL_OK;
}

/* Divide a line at its commas.  Returns the number of fields; fields after the first GPUL_ROWS_MAX_COLUMNS are counted, but not stored. */
static unsigned split(char *line, char **field)
{
	unsigned n = 0;

	for (char *at = line; at; n++) {
		char *comma = strchr(at, ',');

		if (comma)
			*comma = 0;
		if (n < GPUL_ROWS_MAX_COLUMNS)
			field[n] = at;
		at = comma ? comma + 1 : NULL;
	}
	return n;
}

static unsigned n_columns(const char *header)
{
	unsigned n = 1;

	for (const char *at = header; *at; at++)
		n += *at == ',';
	return n;
}

static gpul_status read_line(const gpul_rows *r, const char *at, size_t n_bytes, const char *header, gpul_row_fn *row, void *context)
{
	char line[GPUL_ROWS_MAX_LINE + 1], *field[GPUL_ROWS_MAX_COLUMNS];
	unsigned n;

	if (n_bytes > GPUL_ROWS_MAX_LINE || memchr(at, 0, n_bytes))
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%s:%u: the line is longer than %d bytes, or contains a NUL byte", r->path,
				 r->line, GPUL_ROWS_MAX_LINE);
	memcpy(line, at, n_bytes);
	line[n_bytes] = 0;
	if (r->line == 1)
		return !strcmp(line, header)
			       ? GPUL_OK
			       : gpul_fail(r->err, GPUL_EFORMAT, 0, "%s:1: the first line must be this header: %.180s", r->path, header);
	n = split(line, field);
	if (n != n_columns(header))
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%s:%u: the line has %u columns instead of %u: %.160s", r->path, r->line, n,
				 n_columns(header), header);
	return row(r, field, context);
}

gpul_status gpul_rows_read(const char *path, const char *header, gpul_row_fn *row, void *context, gpul_error *err)
{
	gpul_rows r = { .path = path, .err = err };
	gpul_file f;
	gpul_status st = gpul_file_open(path, &f, err);

	if (st)
		return st;
	for (size_t at = 0; !st && at < f.n_bytes;) {
		const char *line = (const char *)f.bytes + at, *end = memchr(line, '\n', f.n_bytes - at);
		const size_t n = end ? (size_t)(end - line) : f.n_bytes - at;

		r.line++;
		st = read_line(&r, line, n, header, row, context);
		at += n + 1;
	}
	gpul_file_close(&f);
	return st;
}
