/* compile_explain.c — gpuload explain: prints advice on messages of compilers, linkers, CUDA programs and NCCL. */
#include "cli/compile/cli_compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/file.h"
#include "loader/advice/advice.h"

struct explained {
	char last[GPUL_ADVICE_BYTES]; /* the advice that was printed last */
	size_t n_known, n_unknown;    /* lines with known and with unknown errors */
	char *first_unknown;          /* owned; NULL: none */
};

static bool has_any(const char *line, const char *const *parts)
{
	while (*parts && !strstr(line, *parts))
		parts++;
	return *parts != NULL;
}

/* True if a line reports an error in the format of compilers, linkers or NCCL, unless it is only a consequence of earlier errors. */
static bool reports_error(const char *line)
{
	static const char *const error[] = { "error", "Error", "ERROR", "fatal", "FATAL", "NCCL WARN", "undefined reference", NULL };
	static const char *const consequence[] = { "detected in the compilation of",
						   "Ptx assembly aborted",
						   "ld returned",
						   "make: ***",
						   "] Error ",
						   "build stopped",
						   "linker command failed",
						   " 0 errors",
						   NULL };

	return has_any(line, error) && !has_any(line, consequence);
}

/* Print a line and its advice.  Skip both if the advice was printed last, because linkers repeat a message for each object. */
static void explain_line(const char *line, size_t n_bytes, struct explained *e)
{
	char buf[GPUL_ADVICE_BYTES], *copy = strndup(line, n_bytes);
	const char *advice = copy ? gpul_advice(copy, buf) : NULL;

	if (advice)
		e->n_known++;
	if (advice && strcmp(advice, e->last) != 0) {
		printf("%s\n    %s\n", copy, advice);
		memcpy(e->last, buf, sizeof buf);
	}
	if (copy && !advice && reports_error(copy) && e->n_unknown++ == 0) {
		e->first_unknown = copy;
		return;
	}
	free(copy);
}

static gpul_status explain_text(const char *text, size_t n_bytes, const char *path, gpul_error *err)
{
	struct explained e = { 0 };
	gpul_status st = GPUL_OK;

	for (size_t at = 0; at < n_bytes;) {
		const char *line = text + at, *end = memchr(line, '\n', n_bytes - at);
		size_t n = end ? (size_t)(end - line) : n_bytes - at;

		explain_line(line, n, &e);
		at += n + 1;
	}
	if (e.n_known == 0)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%s: contains no known error message%s%.80s", path,
			       e.first_unknown ? "; unknown: " : "", e.first_unknown ? e.first_unknown : "");
	else if (e.n_unknown)
		printf("%zu more line%s may report an error that gpuload does not know; the first:\n    %s\n", e.n_unknown,
		       e.n_unknown == 1 ? "" : "s", e.first_unknown);
	free(e.first_unknown);
	return st;
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

/* clang-format off */
const struct cli_cmd cli_explain = {
	"explain", "[LOG]", "explain error messages of nvcc, linkers, CUDA and NCCL",
	"Reads the output of a build or of a program from LOG or from stdin, and prints each\n"
	"known message with advice on what to do: messages of nvcc, NVRTC, ptxas, nvlink, host\n"
	"linkers, CMake, the errors of the CUDA driver and runtime by name or text, also as\n"
	"PyTorch, CuPy and Numba print them, and NCCL's results and warnings:\n"
	"\n"
	"    make 2>&1 | gpuload explain\n"
	"    NCCL_DEBUG=WARN mpirun -n 4 ./train 2>&1 | gpuload explain\n"
	"\n"
	"Lines that look like errors but are unknown are counted, and the first one is printed.\n"
	"\n"
	"Exit status: 0 advice was printed; 1 LOG contains no known message or cannot be read.\n",
	cli_no_opts, cmd_explain, CLI_FILES, NULL,
};
/* clang-format on */
