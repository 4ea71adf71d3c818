/* cache_internal.h — what the cache*.c files share.
 *
 *     cache_key.c     what a result depends on, as one digest
 *     cache_folder.c  where the cache is; all its files; the bound
 *     cache.c         finding and keeping one result
 *     cache_made.c    results of a compiler or linker, with what it had to say */
#ifndef GPULOAD_LOADER_CACHE_CACHE_INTERNAL_H
#define GPULOAD_LOADER_CACHE_CACHE_INTERNAL_H

#include "core/sha256.h"
#include "loader/cache/cache.h"

struct gpul_cache_key {
	gpul_sha256 state;
};

enum { CACHE_NAME_BYTES = 2 * GPUL_SHA256_BYTES + 2 }; /* ab/cdef..., with a slash and a NUL */
#define CACHE_NEW "new-" /* a file that is being written is called this and a number, in the folder */

/* The digest of a key as it is now. */
void gpul_cache_key_digest(const gpul_cache_key *key, unsigned char digest[GPUL_SHA256_BYTES]);

typedef struct gpul_cache_where {
	char folder[4096]; /* "": nowhere, see why_not */
	char why_not[200];
} gpul_cache_where;

/* The cache's folder, opened; -1: it cannot be used, why_not says why, or it is not there yet and
 * shall not be made (then why_not is ""). */
int gpul_cache_open(bool make, gpul_cache_where *where);
uint64_t gpul_cache_bound(void);

/* Remove files that a dead process left half-written; then, as long as all are more than
 * bound_bytes, those that were not used for longest.  What is left goes to *n_results and *bytes,
 * which may be NULL. */
void gpul_cache_trim(int folder, uint64_t bound_bytes, uint64_t *n_results, uint64_t *bytes);

/* Add a tool by its library file: path, size, time.  False: it cannot be told. */
bool gpul_cache_key_add_tool(gpul_cache_key *key, const char *path);
/* As gpul_cache_find() and gpul_cache_keep(), of an image and the tool's log; log may be NULL.
 * *image and *log are the caller's: free(); a NUL follows. */
bool gpul_cache_find_made(const gpul_cache_key *key, void **image, size_t *image_bytes, char **log);
void gpul_cache_keep_made(const gpul_cache_key *key, const void *image, size_t image_bytes,
			  const char *log);

#endif
