/* nvjitlink_explain.c — turns the log of a failed link into an error, with the symbol's name as in C++, or the line of the PTX. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"
#include "loader/link/link.h"
#include "loader/link/nvjitlink_internal.h"

/* Return the first line that reports an error; else the first line. */
static const char *error_line(const char *log)
{
	const char *at = strstr(log, "error   :");

	if (!at)
		at = strstr(log, "fatal   :");
	if (!at)
		return log;
	while (at > log && at[-1] != '\n')
		at--;
	return at;
}

/* Explain "Undefined reference to '_Z5twicei' in 'f.o'", or, for LTO code, "Unresolved extern function
 * '_Z5twicei'", with the name as in C++.  GPUL_OK: line is another message. */
static gpul_status explain_undefined(const char *line, int n_bytes, gpul_error *err)
{
	char name[256], input[160];
	const char *at = memmem(line, (size_t)n_bytes, "Undefined reference to '", 24);
	const char *unresolved = memmem(line, (size_t)n_bytes, "Unresolved extern ", 18);
	char *demangled;
	gpul_status st;

	if (at && sscanf(at, "Undefined reference to '%255[^']' in '%159[^']'", name, input) != 2)
		return GPUL_OK;
	if (!at && (!unresolved || sscanf(unresolved, "Unresolved extern %*s '%255[^']'", name) != 1))
		return GPUL_OK;
	if (!at) /* LTO compiles all inputs together, so the error does not name an input */
		snprintf(input, sizeof input, "the code");
	demangled = gpul_demangle(name);
	st = gpul_fail(err, GPUL_EFORMAT, 0, "%.80s refers to %.90s, which no input defines: add the file that does", input,
		       demangled ? demangled : name);
	free(demangled);
	return st;
}

/* Explain "ptxas application ptx input, line 29; error   : Unknown ..." with the text of that line of the PTX.  Another line of the
 * log names the input: "JIT the PTX (bad.ptx)".  GPUL_OK: `line` is another message. */
static gpul_status explain_ptx(const char *log, const char *line, int n_bytes, const gpul_link_input *inputs, size_t n, gpul_error *err)
{
	const char *where = memmem(line, (size_t)n_bytes, ", line ", 7);
	const char *input = strstr(log, "JIT the PTX (");
	const char *message = where ? memchr(where, ';', (size_t)(line + n_bytes - where)) : NULL;
	unsigned number;

	if (!message || !input || sscanf(where, ", line %u", &number) != 1)
		return GPUL_OK;
	input += 13;
	n_bytes -= (int)(message + 2 - line);
	for (size_t i = 0; i < n; i++) {
		size_t n_name = strlen(inputs[i].name);
		const char *text = inputs[i].bytes, *end = text + inputs[i].n_bytes;

		if (inputs[i].kind != GPUL_IMAGE_PTX || strncmp(input, inputs[i].name, n_name))
			continue;
		for (unsigned k = 1; k < number && text; k++) {
			text = memchr(text, '\n', (size_t)(end - text));
			text = text ? text + 1 : NULL;
		}
		text = text ? text + strspn(text, " \t") : "";
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s:%u: %.*s\n%.*s", inputs[i].name, number, n_bytes < 90 ? n_bytes : 90,
				 message + 2, (int)(strcspn(text, "\r\n") < 80 ? strcspn(text, "\r\n") : 80), text);
	}
	return GPUL_OK;
}

gpul_status nvjitlink_explain(const struct nvjitlink *lib, int result, const char *log, const gpul_link_input *inputs, size_t n,
			      gpul_error *err)
{
	const char *line = log ? error_line(log) : "";
	int n_bytes = (int)strcspn(line, "\n");
	gpul_status st;

	if (!log || !*line)
		return gpul_fail(err, GPUL_EFORMAT, result, "nvJitLink %u.%u failed with result %d and an empty log", lib->major,
				 lib->minor, result);
	st = explain_undefined(line, n_bytes, err);
	if (!st)
		st = explain_ptx(log, line, n_bytes, inputs, n, err);
	return st ? st : gpul_fail(err, GPUL_EFORMAT, result, "nvJitLink %u.%u: %.*s", lib->major, lib->minor, n_bytes, line);
}
