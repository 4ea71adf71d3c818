/* nvjitlink_link.c — links with nvJitLink: the result comes from the cache, or from nvJitLink in a
 * child process.  Observed with CUDA 13.0:
 *
 *     input that is not relocatable    success, but nothing of it is in the result
 *     a symbol defined twice           success, and a line in the error log
 *     a failed link                    nvJitLink still reports a size of the result
 *     -ptx                             every input must be LTO code
 *
 * So loader_link.c checks the inputs before the link and the result after it, and this file treats an error in
 * the log as a failure.  Linking PTX to PTX (ptx/link/ptx_link.h) is not cached: it is faster than a cache look-up. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cache/cache.h"
#include "loader/link/nvjitlink_internal.h"

/* ---- one link ------------------------------------------------------------------------- */

/* gpuload adds -arch, -lto and -ptx */
enum { MAX_OWN_OPTIONS = 3 };

static size_t count_options(const char *const *options)
{
	size_t n = 0;

	while (options && options[n])
		n++;
	return n;
}

/* Set the options of task t: gpuload's, then the caller's.  argv has room for all of them. */
static void make_task(const gpul_link_options *o, struct nvjitlink_task *t, const char **argv, char arch[32])
{
	size_t n_more = count_options(o->arguments);
	bool lto = false;

	for (size_t i = 0; i < t->n_inputs; i++)
		lto |= t->inputs[i].kind == GPUL_IMAGE_LTO;
	t->options = argv;
	t->ptx = lto && o->to_ptx;
	snprintf(arch, 32, "-arch=sm_%u%.1s", o->cc, (const char[]){ o->suffix, 0 });
	argv[t->n_options++] = arch;
	if (lto)
		argv[t->n_options++] = "-lto";
	if (t->ptx)
		argv[t->n_options++] = "-ptx";
	for (size_t i = 0; i < n_more; i++)
		argv[t->n_options++] = o->arguments[i];
}

/* Move the result to out, or report why the link failed. */
static gpul_status check_outcome(const struct nvjitlink_task *t, const gpul_link_options *o, struct nvjitlink_outcome *got,
				 gpul_linked *out, gpul_error *err)
{
	int result = got->created ? got->created : got->completed;
	bool complains = got->errors && strstr(got->errors, "rror");

	if (got->created == NVJITLINK_ERROR_UNSUPPORTED_ARCH)
		return gpul_fail(err, GPUL_EUNSUPPORTED, result,
				 "nvJitLink %u.%u cannot link for %s: install a newer CUDA "
				 "toolkit that supports this device",
				 t->lib->major, t->lib->minor, t->options[0] + strlen("-arch="));
	if (result || complains) { /* a link can report success and still log an error */
		out->log = got->errors;
		got->errors = NULL;
		return nvjitlink_explain(t->lib, result, out->log, t->inputs, t->n_inputs, err);
	}
	if (!got->result)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the result of nvJitLink");
	out->kind = o->to_ptx ? GPUL_IMAGE_PTX : GPUL_IMAGE_CUBIN;
	out->bytes = got->result;
	out->n_bytes = got->result_bytes;
	out->log = got->info;
	got->result = NULL;
	got->info = NULL;
	return GPUL_OK;
}

static gpul_status link_in_child(const gpul_link_input *inputs, size_t n, const gpul_link_options *o, gpul_linked *out, gpul_error *err)
{
	const char **argv = calloc(count_options(o->arguments) + MAX_OWN_OPTIONS, sizeof *argv);
	struct nvjitlink_task task = { .inputs = inputs, .n_inputs = n };
	struct nvjitlink_outcome got = { 0 };
	char arch[32];
	gpul_status st;

	if (!argv)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu linker options", count_options(o->arguments));
	st = nvjitlink_open(&task.lib, err);
	if (!st) {
		make_task(o, &task, argv, arch);
		st = nvjitlink_run_in_child(&task, &got, err);
	}
	if (!st)
		st = check_outcome(&task, o, &got, out, err);
	nvjitlink_outcome_free(&got);
	free(argv);
	return st;
}

/* ---- the cache ------------------------------------------------------------------------- */

/* Add path, size and time of libnvJitLink to the key; false: no library found. */
static bool add_linker_to_key(gpul_cache_key *key)
{
	const char *found;
	char path[PATH_MAX];

	if (!nvjitlink_locate(path)) {
		if (gpul_link_find(&found, NULL, NULL, NULL))
			return false;
		snprintf(path, sizeof path, "%s", found);
	}
	return gpul_cache_key_add_tool(key, path);
}

/* Create the key of a link; NULL: the result cannot be cached. */
static gpul_cache_key *create_key(const gpul_link_input *inputs, size_t n, const gpul_link_options *o)
{
	gpul_cache_key *key = gpul_cache_key_create("link");

	if (!key)
		return NULL;
	gpul_cache_key_add(key, &o->cc, sizeof o->cc);
	gpul_cache_key_add(key, &o->suffix, sizeof o->suffix);
	gpul_cache_key_add(key, &o->to_ptx, sizeof o->to_ptx);
	for (size_t i = 0; o->arguments && o->arguments[i]; i++)
		gpul_cache_key_add_text(key, o->arguments[i]);
	gpul_cache_key_add_text(key, NULL);
	for (size_t i = 0; i < n; i++) {
		gpul_cache_key_add(key, &inputs[i].kind, sizeof inputs[i].kind);
		gpul_cache_key_add_text(key, inputs[i].name);
		gpul_cache_key_add(key, inputs[i].bytes, inputs[i].n_bytes);
	}
	if (add_linker_to_key(key))
		return key;
	gpul_cache_key_destroy(key);
	return NULL;
}

gpul_status nvjitlink_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *options, gpul_linked *out, gpul_error *err)
{
	gpul_cache_key *key = options->no_cache ? NULL : create_key(inputs, n, options);
	gpul_status st = GPUL_OK;

	if (key && gpul_cache_find_image(key, &out->bytes, &out->n_bytes, &out->log)) {
		out->kind = options->to_ptx ? GPUL_IMAGE_PTX : GPUL_IMAGE_CUBIN;
		if (!*out->log) { /* the cache stores an empty text for a link without a log */
			free(out->log);
			out->log = NULL;
		}
	} else {
		st = link_in_child(inputs, n, options, out, err);
		if (!st && key)
			gpul_cache_store_image(key, out->bytes, out->n_bytes, out->log);
	}
	gpul_cache_key_destroy(key);
	return st;
}
