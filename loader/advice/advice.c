/* advice.c — finds a message in the tables of known messages (known_internal.h). */
#include "loader/advice/advice.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"
#include "loader/advice/known_internal.h"

/* The texts that host linkers print before the name of a missing symbol: GNU ld, gold, lld, Microsoft's linker. */
static const char *const missing_symbol[] = { "undefined reference to `", "undefined reference to '",
					      "undefined symbol: ", "unresolved external symbol " };

/* For missing symbols with a prefix: the library that defines them.  The first row that matches is used. */
static const struct symbol_owner {
	const char *prefix, *advice;
} owners[] = {
	{ "__cudaRegisterFatBinary", "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
	{ "__cuda", "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
	{ "cuda", "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
	{ "curand", "add -lcurand to the link command" },
	{ "cublasLt", "add -lcublasLt to the link command" },
	{ "cublas", "add -lcublas to the link command" },
	{ "cufft", "add -lcufft to the link command" },
	{ "cusparse", "add -lcusparse to the link command" },
	{ "cusolver", "add -lcusolver to the link command" },
	{ "cudnn", "add -lcudnn to the link command" },
	{ "nccl", "add -lnccl to the link command" },
	{ "nvrtc", "add -lnvrtc to the link command" },
	{ "nvJitLink", "add -lnvJitLink to the link command" },
	{ "nvml", "add -lnvidia-ml to the link command" },
	{ "npp", "add the NPP library of the function, such as -lnppc or -lnppial, to the link command" },
	{ "cu", "if this is a call of the CUDA driver, add -lcuda to the link command; without a GPU use "
		"-L.../lib64/stubs" },
	{ "std::", "the code is C++: link with g++ or nvcc, or add -lstdc++ at the end of the link command" },
	{ "__gxx_personality", "the code is C++: link with g++ or nvcc, or add -lstdc++ at the end of the link command" },
	{ "", "no object or library of the link command defines %s: add the one that does, after the object that "
	      "uses it; for a C function called from C++, declare it extern \"C\"" },
};

/* Demangle the name that begins at `from`, and ends at the next quote or, if it is not quoted, at a blank; the caller frees it. */
static char *quoted_name(const char *from)
{
	bool quoted = strchr("'`\"", from[-1]) != NULL;
	char *mangled = strndup(from, strcspn(from, quoted ? "'\"\n" : "', \n:"));
	char *name = mangled ? gpul_demangle(mangled) : NULL;

	if (!name)
		return mangled;
	free(mangled);
	return name;
}

static const char *find_row(const struct gpul_known_table *t, const char *line, const char **name)
{
	if (t->where && !strstr(line, t->where))
		return NULL;
	for (size_t i = 0; i < t->n; i++) {
		const char *at = strstr(line, t->rows[i].part);

		*name = at ? at + strlen(t->rows[i].part) : NULL;
		if (at && strstr(*name, t->rows[i].and_part))
			return t->rows[i].advice;
	}
	return NULL;
}

static const char *find_missing_symbol(const char *line, const char **name)
{
	for (size_t i = 0; i < sizeof missing_symbol / sizeof *missing_symbol; i++) {
		const char *at = strstr(line, missing_symbol[i]);
		const struct symbol_owner *o = owners;

		if (!at)
			continue;
		*name = at + strlen(missing_symbol[i]);
		while (strncmp(*name, o->prefix, strlen(o->prefix)))
			o++; /* the loop ends at the last entry, whose empty prefix matches every name */
		return o->advice;
	}
	return NULL;
}

static const char *find_tool_message(const char *line, const char **name)
{
	static const struct gpul_known_table *const tables[] = { &gpul_known_ptx,  &gpul_known_ptxas, &gpul_known_compilers,
								 &gpul_known_nvcc, &gpul_known_link,  &gpul_known_nvlink };
	const char *advice = NULL;

	for (size_t i = 0; i < sizeof tables / sizeof *tables && !advice; i++)
		advice = find_row(tables[i], line, name);
	return advice ? advice : find_missing_symbol(line, name);
}

static const char *find_message_of_a_run(const char *line, const char **name)
{
	static const struct gpul_known_table *const tables[] = { &gpul_known_python, &gpul_known_nccl, &gpul_known_nccl_warning };
	const char *advice = NULL;

	for (size_t i = 0; i < sizeof tables / sizeof *tables && !advice; i++)
		advice = find_row(tables[i], line, name);
	return advice ? advice : gpul_known_cuda_error(line);
}

static const char *write_advice(const char *advice, const char *at, char buf[GPUL_ADVICE_BYTES])
{
	const char *hole = strstr(advice, "%s");
	char *name = hole ? quoted_name(at) : NULL;

	snprintf(buf, GPUL_ADVICE_BYTES, "%.*s%.70s%s", (int)(hole ? hole - advice : 0), advice, name ? name : "",
		 hole ? hole + 2 : advice);
	free(name);
	return buf;
}

static const char *advise_on_line(const char *line, bool of_a_run, char buf[GPUL_ADVICE_BYTES])
{
	const char *at = NULL, *advice = find_tool_message(line, &at);

	if (!advice && of_a_run)
		advice = find_message_of_a_run(line, &at);
	return advice ? write_advice(advice, at, buf) : NULL;
}

static const char *advise_on_text(const char *text, bool of_a_run, char buf[GPUL_ADVICE_BYTES])
{
	const char *advice = NULL;

	while (*text && !advice) {
		size_t n = strcspn(text, "\n");
		char *line = strndup(text, n);

		advice = line ? advise_on_line(line, of_a_run, buf) : NULL;
		free(line);
		text += n + (text[n] != '\0');
	}
	return advice;
}

const char *gpul_advice(const char *message, char buf[GPUL_ADVICE_BYTES])
{
	return advise_on_text(message, true, buf);
}

void gpul_advise(gpul_error *err)
{
	char advice[GPUL_ADVICE_BYTES];
	gpul_error longer = { 0 };

	if (!err || !advise_on_text(err->text, false, advice) || strstr(err->text, advice))
		return;
	(void)gpul_fail(&longer, err->status, err->native, "%s: %s", err->text, advice);
	*err = longer;
}
