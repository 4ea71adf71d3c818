/* cache_internal.h — declarations shared by the files of the cache.
 *
 *     cache_key.c     the digest of everything that a result depends on
 *     cache_folder.c  the cache's folder, all its files, the size limit
 *     cache.c         finding and storing one result
 *     cache_image.c   results of a compiler or linker: an image and a log */
#ifndef GPULOAD_LOADER_CACHE_CACHE_INTERNAL_H
#define GPULOAD_LOADER_CACHE_CACHE_INTERNAL_H

#include <stdbool.h>

#include "core/sha256.h"
#include "loader/cache/cache.h"

struct gpul_cache_key {
	gpul_sha256 state;
};

enum { CACHE_NAME_BYTES = 2 * GPUL_SHA256_BYTES + 2 }; /* "ab/cdef...", with slash and NUL */
#define CACHE_NEW "new-" /* begins the name of a temporary file, which is being written */

/* The digest of everything added to the key so far. */
void gpul_cache_key_digest(const gpul_cache_key *key, unsigned char digest[GPUL_SHA256_BYTES]);

typedef struct gpul_cache_where {
	char folder[4096]; /* "": there is none, for the reason in why_not */
	char why_not[200];
} gpul_cache_where;

/* Open the cache's folder; -1: it cannot be used, for the reason in why_not, or it does not exist and
 * create is false (then why_not is ""). */
int gpul_cache_open(bool create, gpul_cache_where *where);
uint64_t gpul_cache_bound(void);

/* Remove temporary files that a killed process left; then, while the files have more than bound_bytes in total, remove the least
 * recently used results.  *n_results and *bytes, which may be NULL, are set to the number and the size of the remaining results. */
void gpul_cache_trim(int folder, uint64_t bound_bytes, uint64_t *n_results, uint64_t *bytes);

/* Add a tool's library file to the key: path, size, time.  False: stat() failed. */
bool gpul_cache_key_add_tool(gpul_cache_key *key, const char *path);
/* Find or store an image together with the tool's log.  Stored: log may be NULL.  Found: *image and
 * *log are owned by the caller, free(); a NUL follows each. */
bool gpul_cache_find_image(const gpul_cache_key *key, void **image, size_t *image_bytes, char **log);
void gpul_cache_store_image(const gpul_cache_key *key, const void *image, size_t image_bytes,
			  const char *log);

/* ---- includes.c: adds the headers that a CUDA C++ source may include to a cache key ---- */

/* Add to key every file that compiling may include, directly or indirectly, by path and content.
 *
 * NVRTC does not report which files it read, so every file that could be included is added: also those that an #if excludes, and
 * each file of a name that several folders have.  A name that no folder has belongs to the toolkit, whose libnvrtc is in the key.
 *
 * @source   the text; name is its path
 * @options  as for gpul_nvrtc_compile()
 * @toolkit  "/usr/local/cuda/include/": files below it are not added; "": unknown
 * False: the result must not be cached, because it depends on something else too (the time, a header
 * named by a macro, an option that names files), or there is no memory. */
bool gpul_includes_add(gpul_cache_key *key, const char *source, const char *name,
		       const char *const *options, const char *toolkit);

#endif
