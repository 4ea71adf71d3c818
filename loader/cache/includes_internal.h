/* includes_internal.h — adds the headers that a CUDA C++ source may include to a cache key. */
#ifndef GPULOAD_LOADER_CACHE_INCLUDES_INTERNAL_H
#define GPULOAD_LOADER_CACHE_INCLUDES_INTERNAL_H

#include <stdbool.h>

#include "loader/cache/cache.h"

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
