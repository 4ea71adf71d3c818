/* nvjitlink.c — see nvjitlink_internal.h: one link, and its log.  Seen with CUDA 13.0:
 *
 *     input that is not relocatable    success, and nothing of it in the result
 *     a symbol defined twice           success, and a line in the error log
 *     failure                          sizes of a result are told all the same
 *     -ptx                             every input must be LTO code
 *
 * so link.c looks at the inputs before and at the result after; the error log counts here. */
#include "loader/nvjitlink_internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/advice.h"
#include "loader/demangle.h"
#include "loader/link.h"

static bool has_lto(const gpul_link_input *inputs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (inputs[i].kind == GPUL_IMAGE_LTO)
			return true;
	return false;
}

/* ---- nvJitLink's words ----------------------------------------------------------------- */

typedef int log_size(void *handle, size_t *bytes);
typedef int log_text(void *handle, void *log);

/* NULL: no memory, or nothing was said. */
static char *fetch_log(void *handle, log_size *size_of, log_text *get)
{
	size_t bytes = 0;
	char *log;

	if (size_of(handle, &bytes) || bytes == 0)
		return NULL;
	log = calloc(1, bytes + 1);
	if (log && (get(handle, log) || !*log)) {
		free(log);
		return NULL;
	}
	return log;
}

/* The line to show: the first that tells an error; else the first. */
static const char *telling_line(const char *log)
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

/* "Undefined reference to '_Z5twicei' in 'f.o'", with the name as it is written in C++. */
static gpul_status undefined(const char *line, int n_bytes, gpul_error *err)
{
	char name[256], input[160];
	const char *at = memmem(line, (size_t)n_bytes, "Undefined reference to '", 24);
	char *demangled;
	gpul_status st;

	if (!at || sscanf(at, "Undefined reference to '%255[^']' in '%159[^']'", name, input) != 2)
		return GPUL_OK;
	demangled = gpul_demangle(name);
	st = gpul_fail(err, GPUL_EFORMAT, 0,
		       "%.80s refers to %.90s, which no file defines: give the file that does",
		       input, demangled ? demangled : name);
	free(demangled);
	return st;
}

/* Line number of an input: "ptxas application ptx input, line 29; error   : Unknown ...".  Which of
 * the inputs it was, another line of the log says: "JIT the PTX (bad.ptx)". */
static gpul_status in_ptx(const char *log, const char *line, int n_bytes,
			  const gpul_link_input *inputs, size_t n, gpul_error *err)
{
	const char *where = memmem(line, (size_t)n_bytes, ", line ", 7);
	const char *whose = strstr(log, "JIT the PTX (");
	const char *said = where ? memchr(where, ';', (size_t)(line + n_bytes - where)) : NULL;
	unsigned number;

	if (!said || !whose || sscanf(where, ", line %u", &number) != 1)
		return GPUL_OK;
	whose += 13;
	n_bytes -= (int)(said + 2 - line);
	for (size_t i = 0; i < n; i++) {
		size_t n_name = strlen(inputs[i].name);
		const char *text = inputs[i].bytes, *end = text + inputs[i].n_bytes;

		if (inputs[i].kind != GPUL_IMAGE_PTX || strncmp(whose, inputs[i].name, n_name))
			continue;
		for (unsigned k = 1; k < number && text; k++) {
			text = memchr(text, '\n', (size_t)(end - text));
			text = text ? text + 1 : NULL;
		}
		text = text ? text + strspn(text, " \t") : "";
		return gpul_fail(err, GPUL_EFORMAT, 0, "%.60s:%u: %.*s\n%.*s", inputs[i].name,
				 number, n_bytes < 90 ? n_bytes : 90, said + 2,
				 (int)(strcspn(text, "\r\n") < 80 ? strcspn(text, "\r\n") : 80),
				 text);
	}
	return GPUL_OK;
}

static gpul_status refuse(const struct nvjitlink *lib, int result, const char *log,
			  const gpul_link_input *inputs, size_t n, gpul_error *err)
{
	const char *line = log ? telling_line(log) : "";
	int n_bytes = (int)strcspn(line, "\n");
	gpul_status st;

	if (!*line)
		return gpul_fail(err, GPUL_EFORMAT, result,
				 "nvJitLink %u.%u refused, with result %d and no word", lib->major,
				 lib->minor, result);
	st = undefined(line, n_bytes, err);
	if (!st)
		st = in_ptx(log, line, n_bytes, inputs, n, err);
	return st ? st
		  : gpul_fail(err, GPUL_EFORMAT, result, "nvJitLink %u.%u: %.*s", lib->major,
			      lib->minor, n_bytes, line);
}

/* ---- nvJitLink ------------------------------------------------------------------------- */

enum { MOST_OWN = 4 };

static size_t count(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

static gpul_status start(const struct nvjitlink *lib, const gpul_link_options *o, bool lto,
			 void **handle, gpul_error *err)
{
	size_t n_more = count(o->arguments), n = 0;
	const char **words = calloc(n_more + MOST_OWN, sizeof *words);
	char arch[32];
	int result;

	if (!words)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the linker's options");
	snprintf(arch, sizeof arch, "-arch=sm_%u%.1s", o->cc, (const char[]){ o->suffix, 0 });
	words[n++] = arch;
	if (lto)
		words[n++] = "-lto";
	if (lto && o->to_ptx)
		words[n++] = "-ptx";
	for (size_t i = 0; i < n_more; i++)
		words[n++] = o->arguments[i];
	result = lib->nvJitLinkCreate(handle, (uint32_t)n, words);
	free(words);
	if (result == NVJITLINK_ERROR_UNSUPPORTED_ARCH)
		return gpul_fail(err, GPUL_EUNSUPPORTED, result,
				 "nvJitLink %u.%u cannot link for sm_%u%.1s: a toolkit that knows "
				 "this device is needed",
				 lib->major, lib->minor, o->cc, (const char[]){ o->suffix, 0 });
	return GPUL_OK; /* of other troubles the log tells, once there is a handle */
}

static gpul_status take_result(const struct nvjitlink *lib, void *handle, bool ptx,
			       gpul_linked *out, gpul_error *err)
{
	size_t n = 0;
	int result = ptx ? lib->nvJitLinkGetLinkedPtxSize(handle, &n)
			 : lib->nvJitLinkGetLinkedCubinSize(handle, &n);

	out->bytes = result ? NULL : malloc(n + 1);
	if (out->bytes)
		result = ptx ? lib->nvJitLinkGetLinkedPtx(handle, out->bytes)
			     : lib->nvJitLinkGetLinkedCubin(handle, out->bytes);
	if (!out->bytes || result)
		return gpul_fail(err, GPUL_ENOMEM, result, "no memory for %zu linked bytes", n);
	((char *)out->bytes)[n] = '\0';
	out->kind = ptx ? GPUL_IMAGE_PTX : GPUL_IMAGE_CUBIN;
	out->n_bytes = ptx ? strlen(out->bytes) : n;
	return GPUL_OK;
}

/* LTO code comes bare, or in a fatbin, out of which only nvJitLink can read it. */
static int type_of(const gpul_link_input *in)
{
	static const unsigned char fatbin[4] = { 0x50, 0xed, 0x55, 0xba };

	if (in->kind == GPUL_IMAGE_PTX)
		return NVJITLINK_INPUT_PTX;
	if (in->kind == GPUL_IMAGE_CUBIN)
		return NVJITLINK_INPUT_CUBIN;
	return in->n_bytes > 4 && memcmp(in->bytes, fatbin, 4) == 0 ? NVJITLINK_INPUT_FATBIN
								    : NVJITLINK_INPUT_LTOIR;
}

static void add_all(const struct nvjitlink *lib, void *handle, const gpul_link_input *inputs,
		    size_t n)
{
	for (size_t i = 0; i < n; i++) /* what is refused stands in the log, with its name */
		lib->nvJitLinkAddData(handle, type_of(&inputs[i]), inputs[i].bytes,
				      inputs[i].n_bytes + (inputs[i].kind == GPUL_IMAGE_PTX),
				      inputs[i].name);
}

gpul_status nvjitlink_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *o,
			   gpul_linked *out, gpul_error *err)
{
	bool lto = has_lto(inputs, n);
	const struct nvjitlink *lib;
	void *handle = NULL;
	char *errors;
	gpul_status st = nvjitlink_open(&lib, err);
	int result;

	if (st)
		return st;
	st = start(lib, o, lto, &handle, err);
	if (st)
		goto destroy;
	add_all(lib, handle, inputs, n);
	result = lib->nvJitLinkComplete(handle);
	errors = fetch_log(handle, lib->nvJitLinkGetErrorLogSize, lib->nvJitLinkGetErrorLog);
	if (result || (errors && strstr(errors, "rror"))) { /* success is not to be trusted alone */
		out->log = errors;
		st = refuse(lib, result, errors, inputs, n, err);
		goto destroy;
	}
	free(errors);
	out->log = fetch_log(handle, lib->nvJitLinkGetInfoLogSize, lib->nvJitLinkGetInfoLog);
	st = take_result(lib, handle, lto && o->to_ptx, out, err);
destroy:
	if (handle)
		lib->nvJitLinkDestroy(&handle);
	return st;
}
