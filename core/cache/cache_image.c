/* cache_image.c — caches the result of a compiler or linker as {u64 image_bytes; the image; the log}. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cache/cache_internal.h"

bool gpul_cache_key_add_tool(gpul_cache_key *key, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	gpul_cache_key_add_text(key, path);
	gpul_cache_key_add(key, &st.st_size, sizeof st.st_size);
	gpul_cache_key_add(key, &st.st_mtim, sizeof st.st_mtim);
	return true;
}

/* Copy the text and append a NUL; NULL: out of memory. */
static char *copy_text(const char *bytes, size_t n_bytes)
{
	char *out = malloc(n_bytes + 1);

	if (!out)
		return NULL;
	memcpy(out, bytes, n_bytes);
	out[n_bytes] = 0;
	return out;
}

bool gpul_cache_find_image(const gpul_cache_key *key, void **image, size_t *image_bytes, char **log)
{
	void *found = NULL;
	char *found_image = NULL, *found_log = NULL;
	size_t n_bytes = 0;
	uint64_t n_image = 0;

	if (!gpul_cache_find(key, &found, &n_bytes))
		return false;
	if (n_bytes >= sizeof n_image)
		memcpy(&n_image, found, sizeof n_image);
	if (n_bytes >= sizeof n_image && n_image <= n_bytes - sizeof n_image) {
		const char *at = (const char *)found + sizeof n_image;

		found_image = copy_text(at, (size_t)n_image);
		found_log = copy_text(at + n_image, n_bytes - sizeof n_image - (size_t)n_image);
	}
	free(found);
	if (!found_image || !found_log) {
		free(found_image);
		free(found_log);
		return false;
	}
	*image = found_image;
	*image_bytes = (size_t)n_image;
	*log = found_log;
	return true;
}

void gpul_cache_store_image(const gpul_cache_key *key, const void *image, size_t image_bytes, const char *log)
{
	uint64_t n_image = image_bytes;
	size_t log_bytes = log ? strlen(log) : 0;
	char *bytes = malloc(sizeof n_image + image_bytes + log_bytes);

	if (!bytes)
		return;
	memcpy(bytes, &n_image, sizeof n_image);
	memcpy(bytes + sizeof n_image, image, image_bytes);
	if (log_bytes)
		memcpy(bytes + sizeof n_image + image_bytes, log, log_bytes);
	gpul_cache_store(key, bytes, sizeof n_image + image_bytes + log_bytes);
	free(bytes);
}
