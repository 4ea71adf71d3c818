/* compile.h — compiles CUDA C++ to PTX or machine code, or finds the result of an earlier run in the cache (cache.h). */
#ifndef GPULOAD_LOADER_CACHE_COMPILE_H
#define GPULOAD_LOADER_CACHE_COMPILE_H

#include <stdbool.h>

#include "ptx/nvrtc/nvrtc.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Compile as gpul_nvrtc_compile() does, or return the cached result of the same compilation.
 *
 * Two compilations are the same if source, name, options, architecture, every header outside the toolkit, the libnvrtc file and
 * gpuload's version are equal.  A source whose result depends on more (__DATE__, a header named by a macro, precompiled headers) is
 * compiled each time.  Warnings are cached with the result.  Failures are not cached.
 *
 * @source    the program's text, NUL-terminated
 * @name      its file name, for messages; its folder is searched for headers
 * @options   for NVRTC, one option each, then NULL; NULL: none
 * @arch      "compute_90" for PTX, "sm_90" for machine code
 * @no_cache  compile, and do not use the cache
 * @out       filled in, on failure too (then only log may be set); gpul_nvrtc_result_free()
 * Errors  as gpul_nvrtc_compile() */
gpul_status gpul_compile_cached(const char *source, const char *name, const char *const *options, const char *arch, bool no_cache,
				gpul_nvrtc_result *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
