/* compile.h — CUDA C++ to PTX or machine code, from the cache (cache.h) where it has been compiled
 * before. */
#ifndef GPULOAD_LOADER_CACHE_COMPILE_H
#define GPULOAD_LOADER_CACHE_COMPILE_H

#include <stdbool.h>

#include "ptx/nvrtc/nvrtc.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Compile as gpul_nvrtc_compile() does, or take what an earlier run made of the same.
 *
 * The same: source, name, options, architecture, the content of every header outside the toolkit,
 * the libnvrtc file, and gpuload's version.  A source whose result depends on more (__DATE__, a
 * header that a macro names, precompiled headers) is compiled each time.  Warnings are kept with the
 * result.  What fails is not kept.
 *
 * @source    the program's text, NUL-terminated
 * @name      its file name: for messages, and its folder is looked into for headers
 * @options   for NVRTC, each one word, then NULL; NULL: none
 * @arch      "compute_90" for PTX, "sm_90" for machine code
 * @no_cache  compile anew, and do not keep it
 * @out       filled in, on failure too (then only log may be set); gpul_nvrtc_result_free()
 * Errors  as gpul_nvrtc_compile()
 * Threads any thread may call
 * Source  - */
gpul_status gpul_compile_cached(const char *source, const char *name, const char *const *options,
				const char *arch, bool no_cache, gpul_nvrtc_result *out,
				gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
