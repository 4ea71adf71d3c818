/* cache.h — caches on disk the results of NVRTC, nvJitLink and the software driver's linker, and what that driver knows of large images.
 *
 *     $GPULOAD_CACHE, else $XDG_CACHE_HOME/gpuload, else ~/.cache/gpuload
 *         ab/cdef...   one file per result, named by the digest of everything it depends on
 *
 * Processes share the folder without locks: a result is written to a temporary file and renamed, and its digest is checked when it is read.
 * The cache never grows above its size limit: the least recently used results are removed first.  If the cache cannot be used
 * (read-only home, full disk), results are computed again and nothing fails. */
#ifndef GPULOAD_CORE_CACHE_CACHE_H
#define GPULOAD_CORE_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The digest of everything that a result depends on.  It includes the length of each part, so that adding "ab", "c" differs from
 * adding "a", "bc". */
typedef struct gpul_cache_key gpul_cache_key;

/** Create a key.  NULL: out of memory; the other functions accept NULL and do nothing.  purpose: the kind of result, which is part
 * of the key.  Any thread may call, but only one thread may use the key. */
gpul_cache_key *gpul_cache_key_create(const char *purpose);
/** Add bytes, or a string, to the key (NULL differs from ""). */
void gpul_cache_key_add(gpul_cache_key *key, const void *bytes, size_t n_bytes);
void gpul_cache_key_add_text(gpul_cache_key *key, const char *text);
/** Free a key; accepts NULL; cannot fail. */
void gpul_cache_key_destroy(gpul_cache_key *key);

/** Find the result of a key.  False: there is none, or it was damaged and has been
 * removed. *bytes is owned by the caller: free(); a NUL follows it, which *n_bytes does not count.  Any thread. */
bool gpul_cache_find(const gpul_cache_key *key, void **bytes, size_t *n_bytes);
/** Store a result; failures are ignored.  Any thread, any number of processes. */
void gpul_cache_store(const gpul_cache_key *key, const void *bytes, size_t n_bytes);

/** Add a tool's library file to the key: its path, size and modification time.  False: stat() failed. */
bool gpul_cache_key_add_tool(gpul_cache_key *key, const char *path);
/** Find or store an image together with the log of the compiler or linker.  When storing, log may be NULL.  A found *image and *log
 * are owned by the caller: free(); a NUL follows each. */
bool gpul_cache_find_image(const gpul_cache_key *key, void **image, size_t *image_bytes, char **log);
void gpul_cache_store_image(const gpul_cache_key *key, const void *image, size_t image_bytes, const char *log);

/* ---- loader/cache/includes.c: adds the headers that a CUDA C++ source may include to a cache key ---- */

/* Add the path and content of every file that the source may include, directly or indirectly, to the key.
 *
 * NVRTC does not report which files it read, so every file that it could read is added: also files that an #if excludes, and files
 * of the same name in several folders. A name that no folder has belongs to the toolkit, whose libnvrtc is in the key.
 *
 * @source   the text; `name` is its path
 * @options  as for gpul_nvrtc_compile()
 * @toolkit  "/usr/local/cuda/include/": files below it are not added; "": unknown
 * False: the result must not be cached, because it also depends on something else (the time, a header
 * named by a macro, an option that names files), or memory ran out. */
bool gpul_includes_add(gpul_cache_key *key, const char *source, const char *name, const char *const *options, const char *toolkit);

/** Like gpul_cache_find() and gpul_cache_store(), for a large text, which is stored compressed.  A NUL follows a found text;
 * *text_bytes does not count it. */
bool gpul_cache_find_text(const gpul_cache_key *key, char **text, size_t *text_bytes);
void gpul_cache_store_text(const gpul_cache_key *key, const char *text, size_t text_bytes);

typedef struct gpul_cache_status {
	char folder[4096]; /* path of the folder; "": there is no cache, for the reason in why_not */
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
