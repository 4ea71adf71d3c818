/* cu_known.c — remembers, in the cache on disk, the attributes of the kernels of large PTX images.
 *
 *     first process    parse and decode the whole text ── attributes of its kernels ──> cache
 *     later processes  cache ── the text is valid, and these are the attributes ──> parse and decode a function when it is launched
 *
 * A program such as NCCL loads hundreds of images only to query their kernels.  Nothing is stored for an image with a kernel that cannot
 * run, so that every process gets this error from the same call.  The key contains the stored, compressed text and this
 * library's file, so a result is never used by another version of the driver. */
#include <dlfcn.h>
#include <stdlib.h>

#include "core/cache/cache.h"
#include "softcuda/api/code/cu_code_internal.h"

enum { LEAST_BYTES = 32 << 10 /* bytes of PTX: smaller images are not cached, because they are parsed in a millisecond */ };

static bool add_this_library(gpul_cache_key *key)
{
	static const char in_this_library;
	Dl_info found;

	return dladdr(&in_this_library, &found) && gpul_cache_key_add_tool(key, found.dli_fname);
}

gpul_cache_key *soft_known_key(const void *stored, size_t n_bytes, size_t text_bytes)
{
	gpul_cache_key *key = text_bytes >= LEAST_BYTES ? gpul_cache_key_create("attributes of kernels, 1") : NULL;

	if (key && !add_this_library(key)) {
		gpul_cache_key_destroy(key);
		return NULL;
	}
	gpul_cache_key_add(key, stored, n_bytes);
	return key;
}

bool soft_known_find(const gpul_cache_key *key, gpul_exec_attributes **out, size_t *n)
{
	void *found = NULL;
	size_t n_bytes = 0;

	if (!gpul_cache_find(key, &found, &n_bytes))
		return false;
	if (n_bytes % sizeof **out) {
		free(found);
		return false;
	}
	*out = found;
	*n = n_bytes / sizeof **out;
	return true;
}

void soft_known_store(const gpul_cache_key *key, const gpul_exec_program *p)
{
	const size_t n = gpul_exec_n_kernels(p);
	gpul_exec_attributes *all = key ? calloc(n + 1, sizeof *all) : NULL;
	bool refuses = false;

	if (!all)
		return;
	for (size_t i = 0; i < n; i++) {
		all[i] = gpul_exec_kernel_attributes(gpul_exec_kernel_at(p, i));
		refuses = refuses || gpul_exec_kernel_refusal(gpul_exec_kernel_at(p, i));
	}
	if (!refuses)
		gpul_cache_store(key, all, n * sizeof *all);
	free(all);
}
