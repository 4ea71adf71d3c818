/* compile.c — see compile.h.
 *
 * A kept result is {u64 image_bytes; the image; the log}. */
#include "loader/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/cache.h"
#include "loader/includes_internal.h"

/* ---- what it depends on ------------------------------------------------------------------ */

/* Which libnvrtc, told by its file: opening it takes longer than all the rest. */
static bool add_compiler(gpul_cache_key *key, char path[PATH_MAX])
{
	const char *found;
	struct stat st;

	if (!gpul_nvrtc_locate(path)) {
		if (gpul_nvrtc_find(&found, NULL, NULL, NULL))
			return false;
		snprintf(path, PATH_MAX, "%s", found);
	}
	if (stat(path, &st))
		return false;
	gpul_cache_key_add_text(key, path);
	gpul_cache_key_add(key, &st.st_size, sizeof st.st_size);
	gpul_cache_key_add(key, &st.st_mtim, sizeof st.st_mtim);
	return true;
}

/* .../lib/libnvrtc.so.13.0.88 to .../include/ in place: the toolkit's own headers. */
static void toolkit_of(char path[PATH_MAX])
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

/* Debug information names the current folder. */
static void add_folder(gpul_cache_key *key)
{
	char *folder = getcwd(NULL, 0);

	gpul_cache_key_add_text(key, folder);
	free(folder);
}

/* NULL: do not cache. */
static gpul_cache_key *key_of(const char *source, const char *name, const char *const *options,
			      const char *arch)
{
	gpul_cache_key *key = gpul_cache_key_create("compile");
	char path[PATH_MAX];

	if (!key)
		return NULL;
	gpul_cache_key_add_text(key, source);
	gpul_cache_key_add_text(key, name);
	gpul_cache_key_add_text(key, arch);
	for (size_t i = 0; options && options[i]; i++)
		gpul_cache_key_add_text(key, options[i]);
	gpul_cache_key_add_text(key, NULL);
	add_folder(key);
	if (add_compiler(key, path)) {
		toolkit_of(path);
		if (gpul_includes_add(key, source, name, options, path))
			return key;
	}
	gpul_cache_key_destroy(key);
	return NULL;
}

/* ---- a result as bytes ------------------------------------------------------------------- */

/* A copy with a NUL behind it; NULL: no memory. */
static char *copy(const char *bytes, size_t n_bytes)
{
	char *out = malloc(n_bytes + 1);

	if (!out)
		return NULL;
	memcpy(out, bytes, n_bytes);
	out[n_bytes] = 0;
	return out;
}

static bool find(const gpul_cache_key *key, gpul_nvrtc_result *out)
{
	void *found = NULL;
	size_t n_bytes = 0;
	uint64_t image_bytes;
	bool ok = false;

	if (!gpul_cache_find(key, &found, &n_bytes))
		return false;
	if (n_bytes >= sizeof image_bytes) {
		const char *image = (const char *)found + sizeof image_bytes;
		size_t left = n_bytes - sizeof image_bytes;

		memcpy(&image_bytes, found, sizeof image_bytes);
		if (image_bytes <= left) {
			out->image = copy(image, (size_t)image_bytes);
			out->log = copy(image + image_bytes, left - (size_t)image_bytes);
			out->image_bytes = (size_t)image_bytes;
			ok = out->image && out->log;
		}
	}
	free(found);
	if (!ok)
		gpul_nvrtc_result_free(out);
	return ok;
}

static void keep(const gpul_cache_key *key, const gpul_nvrtc_result *r)
{
	uint64_t image_bytes = r->image_bytes;
	size_t log_bytes = r->log ? strlen(r->log) : 0;
	size_t n_bytes = sizeof image_bytes + r->image_bytes + log_bytes;
	char *bytes = malloc(n_bytes);

	if (!bytes)
		return;
	memcpy(bytes, &image_bytes, sizeof image_bytes);
	memcpy(bytes + sizeof image_bytes, r->image, r->image_bytes);
	if (log_bytes)
		memcpy(bytes + sizeof image_bytes + r->image_bytes, r->log, log_bytes);
	gpul_cache_keep(key, bytes, n_bytes);
	free(bytes);
}

gpul_status gpul_compile_cached(const char *source, const char *name, const char *const *options,
				const char *arch, bool no_cache, gpul_nvrtc_result *out,
				gpul_error *err)
{
	gpul_cache_key *key = no_cache ? NULL : key_of(source, name, options, arch);
	gpul_status st = GPUL_OK;

	*out = (gpul_nvrtc_result){ 0 };
	if (!key || !find(key, out)) {
		st = gpul_nvrtc_compile(source, name, options, arch, out, err);
		if (!st && key)
			keep(key, out);
	}
	gpul_cache_key_destroy(key);
	return st;
}
