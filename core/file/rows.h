/* rows.h — reads a text file of rows with columns separated by commas, such as the tables that gpuload writes.
 *
 *     gpul_rows_read(path, "name,ranks,us", add, context, err)
 *         first line: must be the header         each further line ──> add(): fields as texts ─ gpul_rows_number() ...
 *
 * Fields cannot be quoted, so they cannot contain a comma.  Every message starts with the file and the line. */
#ifndef GPULOAD_CORE_FILE_ROWS_H
#define GPULOAD_CORE_FILE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_ROWS_MAX_COLUMNS = 32, GPUL_ROWS_MAX_LINE = 511 };

/* The position of the reader, for messages. */
typedef struct gpul_rows {
	const char *path;
	unsigned line; /* number of the current line, from 1 */
	gpul_error *err;
} gpul_rows;

/* Receives the fields of a row, one for each column of the header; they are valid during the call. */
typedef gpul_status gpul_row_fn(const gpul_rows *r, char *const *field, void *context);

/** Read a file, and call a function for each of its rows.
 *
 * @path     as for gpul_file_open()
 * @header   the first line: the names of the columns, at most GPUL_ROWS_MAX_COLUMNS
 * @row      called for each further line; reading ends when it fails
 * @context  passed to row
 * Errors  those of gpul_file_open() and of row; GPUL_EFORMAT the header differs, or a line has a wrong number of columns or is
 *         too long */
gpul_status gpul_rows_read(const char *path, const char *header, gpul_row_fn *row, void *context, gpul_error *err);

/* Fail with GPUL_EFORMAT; the message has the file and line, the column, the text found there, and what was expected. */
gpul_status gpul_rows_fail(const gpul_rows *r, const char *column, const char *found, const char *expected);

/* Parse a field; GPUL_EFORMAT: it is invalid.  A number is an integer from least to most.  A decimal is at least 0, and less than
 * 1e15.  A text has at least 1 and at most out_bytes - 1 bytes, and is copied. */
gpul_status gpul_rows_number(const gpul_rows *r, const char *column, const char *text, uint64_t least, uint64_t most, uint64_t *out);
gpul_status gpul_rows_decimal(const gpul_rows *r, const char *column, const char *text, double *out);
gpul_status gpul_rows_text(const gpul_rows *r, const char *column, const char *text, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif

#endif
