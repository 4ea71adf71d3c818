/* link_cached.c — nvJitLink's results, from the cache where the same was linked before.
 *
 * Linking PTX to PTX (ptx/link/link.h) takes less time than looking it up. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/cache/cache_internal.h"
#include "loader/link/link.h"
#include "loader/link/nvjitlink_internal.h"

static bool add_linker(gpul_cache_key *key)
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

static void add_input(gpul_cache_key *key, const gpul_link_input *in)
{
	gpul_cache_key_add(key, &in->kind, sizeof in->kind);
	gpul_cache_key_add_text(key, in->name);
	gpul_cache_key_add(key, in->bytes, in->n_bytes);
}

/* NULL: do not cache. */
static gpul_cache_key *key_of(const gpul_link_input *inputs, size_t n, const gpul_link_options *o)
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
	for (size_t i = 0; i < n; i++)
		add_input(key, &inputs[i]);
	if (add_linker(key))
		return key;
	gpul_cache_key_destroy(key);
	return NULL;
}

gpul_status nvjitlink_link_cached(const gpul_link_input *inputs, size_t n,
				  const gpul_link_options *options, gpul_linked *out,
				  gpul_error *err)
{
	gpul_cache_key *key = options->no_cache ? NULL : key_of(inputs, n, options);
	gpul_status st = GPUL_OK;

	if (key && gpul_cache_find_made(key, &out->bytes, &out->n_bytes, &out->log)) {
		out->kind = options->to_ptx ? GPUL_IMAGE_PTX : GPUL_IMAGE_CUBIN;
		if (!*out->log) { /* as it was: nothing said */
			free(out->log);
			out->log = NULL;
		}
	} else {
		st = nvjitlink_link(inputs, n, options, out, err);
		if (!st && key)
			gpul_cache_keep_made(key, out->bytes, out->n_bytes, out->log);
	}
	gpul_cache_key_destroy(key);
	return st;
}
