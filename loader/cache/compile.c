/* compile.c — compiles CUDA C++ with NVRTC, or takes the result from the cache. */
#include "loader/cache/compile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cache/cache.h"

/* ---- the key ----------------------------------------------------------------------------- */

/* Identify libnvrtc by its file, because opening the library takes longer than a cache look-up. */
static bool add_compiler(gpul_cache_key *key, char path[PATH_MAX])
{
	const char *found;

	if (!gpul_nvrtc_locate(path)) {
		if (gpul_nvrtc_find(&found, NULL, NULL, NULL))
			return false;
		snprintf(path, PATH_MAX, "%s", found);
	}
	return gpul_cache_key_add_tool(key, path);
}

/* Change .../lib/libnvrtc.so.13.0.88 to .../include/, the folder of the toolkit's headers. */
static void replace_by_include_folder(char path[PATH_MAX])
{
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		*(slash ? slash : path) = 0;
	}
	if (*path && strlen(path) + sizeof "/include/" <= PATH_MAX)
		strcat(path, "/include/");
	else
		*path = 0;
}

/* Create the key of a compilation; NULL: the result cannot be cached. */
static gpul_cache_key *create_key(const char *source, const char *name, const char *const *options, const char *arch)
{
	gpul_cache_key *key = gpul_cache_key_create("compile");
	char path[PATH_MAX], *folder;

	if (!key)
		return NULL;
	gpul_cache_key_add_text(key, source);
	gpul_cache_key_add_text(key, name);
	gpul_cache_key_add_text(key, arch);
	for (size_t i = 0; options && options[i]; i++)
		gpul_cache_key_add_text(key, options[i]);
	gpul_cache_key_add_text(key, NULL);
	folder = getcwd(NULL, 0); /* debug information contains the current folder */
	gpul_cache_key_add_text(key, folder);
	free(folder);
	if (add_compiler(key, path)) {
		replace_by_include_folder(path);
		if (gpul_includes_add(key, source, name, options, path))
			return key;
	}
	gpul_cache_key_destroy(key);
	return NULL;
}

/* ---- compiling --------------------------------------------------------------------------- */

static bool find_result(const gpul_cache_key *key, gpul_nvrtc_result *out)
{
	void *image;

	if (!key || !gpul_cache_find_image(key, &image, &out->image_bytes, &out->log))
		return false;
	out->image = image;
	return true;
}

gpul_status gpul_compile_cached(const char *source, const char *name, const char *const *options, const char *arch, bool no_cache,
				gpul_nvrtc_result *out, gpul_error *err)
{
	gpul_cache_key *key = no_cache ? NULL : create_key(source, name, options, arch);
	gpul_status st = GPUL_OK;

	*out = (gpul_nvrtc_result){ 0 };
	if (!find_result(key, out)) {
		st = gpul_nvrtc_compile(source, name, options, arch, out, err);
		if (!st && key)
			gpul_cache_store_image(key, out->image, out->image_bytes, out->log);
	}
	gpul_cache_key_destroy(key);
	return st;
}
