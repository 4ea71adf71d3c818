/* cache_made.c — results of a compiler or linker: {u64 image_bytes; the image; the log}. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/cache/cache_internal.h"

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

bool gpul_cache_find_made(const gpul_cache_key *key, void **image, size_t *image_bytes, char **log)
{
	void *found = NULL;
	char *made = NULL, *said = NULL;
	size_t n_bytes = 0;
	uint64_t n_made = 0;

	if (!gpul_cache_find(key, &found, &n_bytes))
		return false;
	if (n_bytes >= sizeof n_made)
		memcpy(&n_made, found, sizeof n_made);
	if (n_bytes >= sizeof n_made && n_made <= n_bytes - sizeof n_made) {
		const char *at = (const char *)found + sizeof n_made;

		made = copy(at, (size_t)n_made);
		said = copy(at + n_made, n_bytes - sizeof n_made - (size_t)n_made);
	}
	free(found);
	if (!made || !said) {
		free(made);
		free(said);
		return false;
	}
	*image = made;
	*image_bytes = (size_t)n_made;
	*log = said;
	return true;
}

void gpul_cache_keep_made(const gpul_cache_key *key, const void *image, size_t image_bytes,
			  const char *log)
{
	uint64_t n_made = image_bytes;
	size_t log_bytes = log ? strlen(log) : 0;
	char *bytes = malloc(sizeof n_made + image_bytes + log_bytes);

	if (!bytes)
		return;
	memcpy(bytes, &n_made, sizeof n_made);
	memcpy(bytes + sizeof n_made, image, image_bytes);
	if (log_bytes)
		memcpy(bytes + sizeof n_made + image_bytes, log, log_bytes);
	gpul_cache_keep(key, bytes, sizeof n_made + image_bytes + log_bytes);
	free(bytes);
}
