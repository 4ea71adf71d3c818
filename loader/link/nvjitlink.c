/* nvjitlink.c — see nvjitlink_internal.h: one link, and its log.  Seen with CUDA 13.0:
 *
 *     input that is not relocatable    success, and nothing of it in the result
 *     a symbol defined twice           success, and a line in the error log
 *     failure                          sizes of a result are told all the same
 *     -ptx                             every input must be LTO code
 *
 * so link.c looks at the inputs before and at the result after; the error log counts here. */
#include "loader/link/nvjitlink_internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/link/link.h"

/* ---- one link, wherever ------------------------------------------------------------------- */

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

static void add_all(const struct nvjitlink_task *t, void *handle)
{
	const gpul_link_input *in = t->inputs;

	for (size_t i = 0; i < t->n_inputs; i++) /* what is refused stands in the log, by its name */
		t->lib->nvJitLinkAddData(handle, type_of(&in[i]), in[i].bytes,
					 in[i].n_bytes + (in[i].kind == GPUL_IMAGE_PTX),
					 in[i].name);
}

static void take_result(const struct nvjitlink_task *t, void *handle,
			struct nvjitlink_outcome *out)
{
	const struct nvjitlink *lib = t->lib;
	int (*size_of)(void *, size_t *) = t->ptx ? lib->nvJitLinkGetLinkedPtxSize
						  : lib->nvJitLinkGetLinkedCubinSize;
	int (*get)(void *, void *) = t->ptx ? lib->nvJitLinkGetLinkedPtx
					    : lib->nvJitLinkGetLinkedCubin;
	size_t n = 0;

	if (size_of(handle, &n))
		return;
	out->result = malloc(n + 1);
	if (!out->result || get(handle, out->result))
		return;
	((char *)out->result)[n] = '\0';
	out->result_bytes = t->ptx ? strlen(out->result) : n;
}

void nvjitlink_run(const struct nvjitlink_task *t, struct nvjitlink_outcome *out)
{
	const struct nvjitlink *lib = t->lib;
	void *handle = NULL;

	out->created = lib->nvJitLinkCreate(&handle, t->n_words, t->words);
	if (!handle)
		return;
	if (!out->created) { /* it dies of being used after an option that it does not know */
		add_all(t, handle);
		out->completed = lib->nvJitLinkComplete(handle);
	}
	out->errors = fetch_log(handle, lib->nvJitLinkGetErrorLogSize, lib->nvJitLinkGetErrorLog);
	out->info = fetch_log(handle, lib->nvJitLinkGetInfoLogSize, lib->nvJitLinkGetInfoLog);
	if (!out->created && !out->completed)
		take_result(t, handle, out);
	lib->nvJitLinkDestroy(&handle);
}

void nvjitlink_outcome_free(struct nvjitlink_outcome *o)
{
	free(o->errors);
	free(o->info);
	free(o->result);
	*o = (struct nvjitlink_outcome){ 0 };
}

/* ---- asked for, and answered ---------------------------------------------------------------- */

enum { MOST_OWN = 3 }; /* -arch, -lto, -ptx */

static bool has_lto(const gpul_link_input *inputs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (inputs[i].kind == GPUL_IMAGE_LTO)
			return true;
	return false;
}

static size_t count(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

/* Who is asked, and how; words has room. */
static void make_task(const gpul_link_options *o, struct nvjitlink_task *t, const char **words,
		      char arch[32])
{
	bool lto = has_lto(t->inputs, t->n_inputs);
	size_t n_more = count(o->arguments);

	t->words = words;
	t->ptx = lto && o->to_ptx;
	snprintf(arch, 32, "-arch=sm_%u%.1s", o->cc, (const char[]){ o->suffix, 0 });
	words[t->n_words++] = arch;
	if (lto)
		words[t->n_words++] = "-lto";
	if (t->ptx)
		words[t->n_words++] = "-ptx";
	for (size_t i = 0; i < n_more; i++)
		words[t->n_words++] = o->arguments[i];
}

static gpul_status judge(const struct nvjitlink_task *t, const gpul_link_options *o,
			 struct nvjitlink_outcome *got, gpul_linked *out, gpul_error *err)
{
	int result = got->created ? got->created : got->completed;
	bool complains = got->errors && strstr(got->errors, "rror");

	if (got->created == NVJITLINK_ERROR_UNSUPPORTED_ARCH)
		return gpul_fail(err, GPUL_EUNSUPPORTED, result,
				 "nvJitLink %u.%u cannot link for %s: a toolkit that knows this "
				 "device is needed",
				 t->lib->major, t->lib->minor, t->words[0] + strlen("-arch="));
	if (result || complains) { /* success alone is not to be trusted */
		out->log = got->errors;
		got->errors = NULL;
		return nvjitlink_explain(t->lib, result, out->log, t->inputs, t->n_inputs, err);
	}
	if (!got->result)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for what nvJitLink made");
	out->kind = o->to_ptx ? GPUL_IMAGE_PTX : GPUL_IMAGE_CUBIN;
	out->bytes = got->result;
	out->n_bytes = got->result_bytes;
	out->log = got->info;
	got->result = NULL;
	got->info = NULL;
	return GPUL_OK;
}

gpul_status nvjitlink_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *o,
			   gpul_linked *out, gpul_error *err)
{
	const char **words = calloc(count(o->arguments) + MOST_OWN, sizeof *words);
	struct nvjitlink_task task = { .inputs = inputs, .n_inputs = n };
	struct nvjitlink_outcome got = { 0 };
	char arch[32];
	gpul_status st;

	if (!words)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the linker's options");
	st = nvjitlink_open(&task.lib, err);
	if (!st) {
		make_task(o, &task, words, arch);
		st = nvjitlink_run_apart(&task, &got, err);
	}
	if (!st)
		st = judge(&task, o, &got, out, err);
	nvjitlink_outcome_free(&got);
	free(words);
	return st;
}
