/* cache_internal.h — declares what the files of the cache share.
 *
 *     cache_key.c     computes the digest of everything that a result depends on
 *     cache_folder.c  opens the cache's folder, lists its files, and keeps the size limit
 *     cache.c         finds or stores one result
 *     cache_image.c   finds or stores a result of a compiler or linker: an image and a log
 *     cache_packed.c  finds or stores a large text, compressed */
#ifndef GPULOAD_CORE_CACHE_CACHE_INTERNAL_H
#define GPULOAD_CORE_CACHE_CACHE_INTERNAL_H

#include <stdbool.h>

#include "core/sha256.h"
#include "core/cache/cache.h"

struct gpul_cache_key {
	gpul_sha256 state;
};

enum { CACHE_NAME_BYTES = 2 * GPUL_SHA256_BYTES + 2 }; /* "ab/cdef...", with slash and NUL */
#define CACHE_NEW "new-"                               /* the name of a temporary file begins with this */

/* Compute the digest of everything added to the key so far. */
void gpul_cache_key_digest(const gpul_cache_key *key, unsigned char digest[GPUL_SHA256_BYTES]);

typedef struct gpul_cache_where {
	char folder[4096]; /* path of the folder; "": there is no cache, for the reason in why_not */
	char why_not[200];
} gpul_cache_where;

/* Open the cache's folder.  -1: the cache cannot be used, for the reason in why_not; if why_not is "", the folder does not exist,
 * and create is false. */
int gpul_cache_open(bool create, gpul_cache_where *where);
uint64_t gpul_cache_bound(void);

/* Remove temporary files that a killed process left; then remove the least recently used results until all files together have at
 * most bound_bytes.  *n_results and *bytes, which may be NULL, are set to the number and the size of the remaining results. */
void gpul_cache_trim(int folder, uint64_t bound_bytes, uint64_t *n_results, uint64_t *bytes);

#endif
