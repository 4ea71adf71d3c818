/* bench_output.c — writes the text and the picture of a benchmark. */
#include "cli/lib/bench/bench_output.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/lib/new_file.h"

gpul_status output_check(const char *path, bool force, gpul_error *err)
{
	if (path && !force && strcmp(path, "-") != 0 && access(path, F_OK) == 0)
		return gpul_fail(err, GPUL_ESYS, EEXIST, "%s already exists; --force replaces it", path);
	return GPUL_OK;
}

gpul_status output_file(const char *path, bool force, struct out *o, const char *what, gpul_error *err)
{
	gpul_status st = o->failed ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the %s", what)
			 : path    ? new_file_write(path, NULL, 0, o->at, o->n, force, err)
				   : out_flush(o, err);

	out_free(o);
	return st;
}

gpul_status output_write(struct output *o, gpul_error *err)
{
	gpul_status st = o->json ? json_print(&o->text, err) : out_flush(&o->text.out, err);

	(void)fflush(stdout); /* a failure is reported by main.c */
	out_free(&o->text.out);
	if (!st && o->plot)
		return output_file(o->plot, o->force, &o->svg, "plot", err);
	out_free(&o->svg);
	return st;
}

void output_number(struct out *o, double x, int width, int most_decimals)
{
	const int decimals = x < 0.0995 ? 4 : x < 0.995 ? 3 : x < 9.995 ? 2 : x < 99.95 ? 1 : 0;

	out_add(o, "%*.*f", width, decimals < most_decimals ? decimals : most_decimals, x);
}
