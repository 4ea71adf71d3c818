/* bench_output.h — prints the results of a benchmark: a table or JSON on stdout, and a picture in a file.
 *
 *     struct output o = { .plot = q->plot, .force = q->force, .json = q->json };
 *     if (q->json) x_json(result, &o.text); else x_text(result, &o.text.out);
 *     if (q->plot) x_svg(result, &o.svg);
 *     return output_write(&o, err); */
#ifndef GPULOAD_CLI_LIB_BENCH_BENCH_OUTPUT_H
#define GPULOAD_CLI_LIB_BENCH_BENCH_OUTPUT_H

#include "cli/lib/json/cli_json.h"

struct output {
	const char *plot; /* file of the picture; "-": stdout; NULL: none; borrowed */
	bool force, json; /* force: replace an existing file; json: `text` contains a JSON object, to which a newline is added */
	struct json text; /* the JSON; for a table, only text.out is used */
	struct out svg;
};

/** Refuse a file that exists.  Call it before the measurement, because a later failure would lose the results.
 *
 * @path   the file; "-": stdout; NULL: none
 * @force  the file may exist
 * Errors  GPUL_ESYS native = EEXIST */
gpul_status output_check(const char *path, bool force, gpul_error *err);

/** Write a text to a file, and free it.
 *
 * @path   the file; "-" or NULL: stdout
 * @force  replace an existing file
 * @o      empty afterwards, even after a failure
 * @what   for the message about memory, such as "plot"
 * Errors  as out_flush() and new_file_write()
 * Threads one at a time */
gpul_status output_file(const char *path, bool force, struct out *o, const char *what, gpul_error *err);

/** Write the text, then the picture, and free both.
 *
 * @o  empty afterwards, even after a failure
 * Errors  as out_flush() and new_file_write()
 * Threads one at a time */
gpul_status output_write(struct output *o, gpul_error *err);

/* Append a number to a table: right-aligned, with three significant digits, but at most most_decimals decimals. */
void output_number(struct out *o, double x, int width, int most_decimals);

#endif
