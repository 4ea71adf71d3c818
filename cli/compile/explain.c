/* explain.c — gpuload explain: advice for messages of nvcc, ptxas, nvlink and host linkers. */
#include "cli/compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "loader/advice/advice.h"

/* Print a line with its advice, unless the same advice was printed last: linkers repeat a message for each object.
 * False: the line is not a known message. */
static bool explain_line(const char *line, size_t n_bytes, char last[GPUL_ADVICE_BYTES])
{
	char buf[GPUL_ADVICE_BYTES], *copy = strndup(line, n_bytes);
	const char *advice = copy ? gpul_advice(copy, buf) : NULL;

	if (advice && strcmp(advice, last) != 0) {
		printf("%s\n    %s\n", copy, advice);
		memcpy(last, buf, sizeof buf);
	}
	free(copy);
	return advice != NULL;
}

static gpul_status explain_text(const char *text, size_t n_bytes, const char *path, gpul_error *err)
{
	char last[GPUL_ADVICE_BYTES] = "";
	size_t n_known = 0;

	for (size_t at = 0; at < n_bytes;) {
		const char *line = text + at, *end = memchr(line, '\n', n_bytes - at);
		size_t n = end ? (size_t)(end - line) : n_bytes - at;

		n_known += explain_line(line, n, last);
		at += n + 1;
	}
	if (n_known == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: contains no known error message", path);
	return GPUL_OK;
}

static int cmd_explain(const struct cli_args *args, gpul_error *err)
{
	const char *path = args->n_operands ? args->operands[0] : "/dev/stdin";
	gpul_file file = { 0 };
	gpul_status st;

	if (args->n_operands > 1) {
		gpul_fail(err, GPUL_EINVAL, 0, "explain accepts one LOG; see gpuload help explain");
		return CLI_USAGE;
	}
	st = gpul_file_open(path, &file, err);
	if (!st)
		st = explain_text(file.bytes, file.n_bytes, path, err);
	gpul_file_close(&file);
	return st ? cli_exit_code(st) : CLI_DONE;
}

const struct cli_cmd cli_explain = {
	"explain", "[LOG]", "explain error messages of nvcc, ptxas and linkers",
	"Reads the output of a build from LOG or from stdin, and prints each known message with\n"
	"advice on what to do:\n"
	"\n"
	"    make 2>&1 | gpuload explain\n"
	"\n"
	"Exit status: 0 advice was printed; 1 LOG contains no known message or cannot be read.\n",
	cli_no_opts, cmd_explain, CLI_FILES, NULL,
};
