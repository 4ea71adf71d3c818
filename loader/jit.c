/* jit.c — loads PTX into the driver, and explains a failure: the line of the PTX that the JIT's
 * message names, or versions that do not match. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "loader/advice/advice.h"
#include "loader/loader_internal.h"
#include "loader/link/ptxas_options.h"

#define LOG_BYTES 4096

/* Return line `number` of text (from 1), without leading blanks; *n_bytes is 0 if text has fewer lines. */
static const char *source_line(const char *text, unsigned number, int *n_bytes)
{
	for (; number > 1 && *text; number--) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	text += strspn(text, " \t");
	*n_bytes = (int)strcspn(text, "\r\n");
	return text;
}

/* Return the first line of the log that reports an error, such as "ptxas application ptx input, line
 *   12; error : Unknown symbol 'x'"; else the first line. */
static const char *error_line(const char *log, int *n_bytes)
{
	const char *best = log + strspn(log, "\r\n");

	for (const char *p = log; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t n = strcspn(p, "\n");

		if (memmem(p, n, "error", 5) || memmem(p, n, "fatal", 5)) {
			best = p;
			break;
		}
	}
	*n_bytes = (int)strcspn(best, "\r\n");
	return best;
}

static gpul_status fail_with_log(CUresult r, const char *log, const char *text, const char *name, gpul_error *err)
{
	int n_message, n_source = 0;
	const char *message = error_line(log, &n_message), *source = "", *at;
	char place[32] = "";
	unsigned line;

	if (strncmp(message, name, strlen(name)) == 0) /* the software driver writes "name:line: message" */
		return gpul_fail(err, GPUL_ECUDA, (int)r, "%.*s", n_message, message);
	at = memmem(message, (size_t)n_message, ", line ", 7);
	if (at && sscanf(at, ", line %u", &line) == 1) {
		const char *rest = memchr(at, ';', (size_t)(message + n_message - at));

		source = source_line(text, line, &n_source);
		snprintf(place, sizeof place, ":%u", line);
		if (rest) {
			rest += 1 + strspn(rest + 1, " ");
			n_message -= (int)(rest - message);
			message = rest;
		}
	}
	if (n_source > 90)
		n_source = 90;
	if (n_message > 100)
		n_message = 100;
	return gpul_fail(err, GPUL_ECUDA, (int)r, "%s%s: %.*s%s%.*s", name, place, n_message, message, n_source ? "\n" : "", n_source,
			 source);
}

static gpul_status explain_failure(const gpul_module *m, CUresult r, const char *log, const char *text, const char *name, gpul_error *err)
{
	const gpul_ptx_module *x = m->ptx;

	if (strncmp(log, name, strlen(name)) == 0) /* the driver's message starts with "name:line", so add nothing */
		return fail_with_log(r, log, text, name, err);
	if (r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
		return gpul_fail(err, GPUL_ECUDA, (int)r,
				 "the PTX version of %.60s is %u.%u, newer than the %s driver (CUDA %d.%d) supports: update the "
				 "driver, or compile with an older toolkit",
				 name, x->version_major, x->version_minor, m->drv->name, m->drv->version / 1000,
				 m->drv->version % 1000 / 10);
	if ((r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_INVALID_PTX) &&
	    (x->sm > m->limits.cc || (x->sm_suffix == 'a' && x->sm != m->limits.cc)))
		return gpul_fail(err, GPUL_ECUDA, (int)r,
				 "%.60s is for sm_%u%.1s, but the device is sm_%u: compile with -arch=sm_%u or lower", name, x->sm,
				 (const char[]){ x->sm_suffix, 0 }, m->limits.cc, m->limits.cc);
	if (log[strspn(log, " \r\n")])
		return fail_with_log(r, log, text, name, err);
	return gpul_cu_status(m->drv, err, r, "cuLibraryLoadData");
}

/* Convert the PTX's ptxas options; options that the driver lacks are logged. */
static void find_ptxas_options(const gpul_code *code, gpul_ptxas_options *out)
{
	const char *text = code->options;
	size_t n = code->options_bytes;

	if (!text)
		text = gpul_ptxas_options_in(code->bytes, code->n_bytes, &n);
	gpul_ptxas_options_parse(text ? text : "", text ? n : 0, out);
	if (*out->unknown)
		gpul_log(GPUL_LOG_INFO, "loader", "%s: ptxas options that the driver's compiler does not have: %s", code->name,
			 out->unknown);
}

gpul_status gpul_jit_load(gpul_module *m, const gpul_code *code, const gpul_load_options *options, gpul_error *err)
{
	char log[LOG_BYTES] = "", info[LOG_BYTES] = "";
	/* cuLibraryLoadData expects the buffer size as a number that is cast to a pointer. */
	void *room = (void *)(uintptr_t)LOG_BYTES;
	CUjit_option keys[5 + GPUL_PTXAS_MAX] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
						  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE };
	void *values[5 + GPUL_PTXAS_MAX] = { log, room, info, room, (void *)(uintptr_t)1 };
	unsigned n = options && options->verbose_log ? 5 : 2;
	gpul_ptxas_options more;
	CUmodule compiled;
	gpul_status st;
	CUresult r;

	find_ptxas_options(code, &more);
	for (unsigned i = 0; i < more.n; i++, n++) {
		keys[n] = more.keys[i];
		values[n] = more.values[i];
	}
	if (m->drv->name_images)
		m->drv->name_images(code->name);
	r = m->drv->cuLibraryLoadData(&m->library, code->bytes, keys, values, n, NULL, NULL, 0);
	if (r == CUDA_SUCCESS) /* NVIDIA's driver may compile the PTX, and write the log, only in this call */
		r = m->drv->cuLibraryGetModule(&compiled, m->library);

	log[sizeof log - 1] = info[sizeof info - 1] = '\0';
	gpul_log_lines(GPUL_LOG_INFO, "loader", info);
	if (r == CUDA_SUCCESS)
		return GPUL_OK;
	st = explain_failure(m, r, log, code->bytes, code->name, err);
	gpul_advise(err);
	return st;
}
