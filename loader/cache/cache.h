/* cache.h — results of NVRTC and of nvJitLink, kept from one run to the next.
 *
 *     $GPULOAD_CACHE, else $XDG_CACHE_HOME/gpuload, else ~/.cache/gpuload
 *         ab/cdef...   one file a result, named by the digest of all that it was made from
 *
 * Processes share it without locks: a result is written beside its place and renamed into it, read
 * whole or not at all, and checked when read.  It never grows above its bound: the results that were
 * not used for longest go first.  A cache that cannot be used (read-only home, full disk) is as no
 * cache: results are made again, nothing fails. */
#ifndef GPULOAD_LOADER_CACHE_CACHE_H
#define GPULOAD_LOADER_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A digest in the making: everything that a result depends on goes in, lengths too, so that "ab" "c"
 * and "a" "bc" differ. */
typedef struct gpul_cache_key gpul_cache_key;

/** NULL: no memory; then every other call takes NULL and does nothing.  Any thread; one key belongs to
 * one thread. */
gpul_cache_key *gpul_cache_key_create(const char *what_for);
/** Add bytes, or a string (NULL differs from ""). */
void gpul_cache_key_add(gpul_cache_key *key, const void *bytes, size_t n_bytes);
void gpul_cache_key_add_text(gpul_cache_key *key, const char *text);
/** NULL is fine; cannot fail. */
void gpul_cache_key_destroy(gpul_cache_key *key);

/** The result kept under a key; false: none, or it was damaged and is gone now.
 * *bytes is owned by the caller: free(); a NUL follows that *n_bytes does not count.  Any thread. */
bool gpul_cache_find(const gpul_cache_key *key, void **bytes, size_t *n_bytes);
/** Keep a result; what cannot be kept is not.  Any thread, any number of processes. */
void gpul_cache_keep(const gpul_cache_key *key, const void *bytes, size_t n_bytes);

typedef struct gpul_cache_status {
	char folder[4096]; /* "": there is no place for it; why_not says why */
	char why_not[200];
	uint64_t n_results, bytes, bound_bytes;
} gpul_cache_status;

/** Where the cache is and what it holds.  Any thread. */
void gpul_cache_look(gpul_cache_status *out);
/** Remove all results.
 *
 * @n_removed  set to how many went
 * Errors  GPUL_ESYS one cannot be removed (native = errno)
 * Threads any thread may call
 * Source  - */
gpul_status gpul_cache_clear(uint64_t *n_removed, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
