/* cache.h — caches the results of NVRTC and nvJitLink on disk.
 *
 *     $GPULOAD_CACHE, else $XDG_CACHE_HOME/gpuload, else ~/.cache/gpuload
 *         ab/cdef...   one file per result, named by the digest of everything it depends on
 *
 * Processes share it without locks: a result is written to a temporary file and renamed, and its digest is checked when it is read.
 * The cache never grows above its size limit: the least recently used results are removed first.  If the cache cannot be used
 * (read-only home, full disk), results are computed again and nothing fails. */
#ifndef GPULOAD_LOADER_CACHE_CACHE_H
#define GPULOAD_LOADER_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The digest of everything that a result depends on.  The length of each part is included, so that "ab" "c" and "a" "bc" differ. */
typedef struct gpul_cache_key gpul_cache_key;

/** Create a key.  NULL: out of memory; the other calls accept NULL and do nothing.  purpose: the keys
 * of different kinds of results differ.  Any thread; a key belongs to one thread. */
gpul_cache_key *gpul_cache_key_create(const char *purpose);
/** Add bytes, or a string, to the key (NULL differs from ""). */
void gpul_cache_key_add(gpul_cache_key *key, const void *bytes, size_t n_bytes);
void gpul_cache_key_add_text(gpul_cache_key *key, const char *text);
/** Free a key; accepts NULL; cannot fail. */
void gpul_cache_key_destroy(gpul_cache_key *key);

/** Find the result of a key; false: there is none, or it was damaged and has been removed.
 * *bytes is owned by the caller: free(); a NUL follows that *n_bytes does not count.  Any thread. */
bool gpul_cache_find(const gpul_cache_key *key, void **bytes, size_t *n_bytes);
/** Store a result; failures are ignored.  Any thread, any number of processes. */
void gpul_cache_store(const gpul_cache_key *key, const void *bytes, size_t n_bytes);

typedef struct gpul_cache_status {
	char folder[4096]; /* "": there is no cache, for the reason in why_not */
	char why_not[200];
	uint64_t n_results, bytes, bound_bytes;
} gpul_cache_status;

/** Get the cache's folder, contents and size limit.  Any thread. */
void gpul_cache_query(gpul_cache_status *out);
/** Remove all results.
 *
 * @n_removed  set to the number of results removed
 * Errors  GPUL_ESYS a result cannot be removed (native = errno) */
gpul_status gpul_cache_clear(uint64_t *n_removed, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
