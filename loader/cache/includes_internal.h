/* includes_internal.h — the headers that a CUDA C++ source may read, for the key of its result. */
#ifndef GPULOAD_LOADER_CACHE_INCLUDES_INTERNAL_H
#define GPULOAD_LOADER_CACHE_INCLUDES_INTERNAL_H

#include <stdbool.h>

#include "loader/cache/cache.h"

/* Add to key every file that compiling may include, and theirs, by path and content.
 *
 * NVRTC does not tell what it read, so all that the text could mean is added: what an #if leaves out
 * too, and of a name that several folders have, each.  What no folder has is the toolkit's own, and
 * the toolkit is named in the key.
 *
 * @source   the text; its name says in which folder it lies
 * @options  as for gpul_nvrtc_compile()
 * @toolkit  "/usr/local/cuda/include/": files below it are the toolkit's own; "": not known
 * False: the result depends on something else as well (the time, a header whose name a macro gives,
 * an option that names files), or there is no memory: do not cache it. */
bool gpul_includes_add(gpul_cache_key *key, const char *source, const char *name,
		       const char *const *options, const char *toolkit);

#endif
