/* toolkit.h — NVIDIA's libraries that are opened when first needed: NVRTC, nvJitLink.
 *
 * They are looked for in this order:
 *
 *     an environment variable    the file itself, or the folder that holds it: nothing else will do
 *     $CUDA_HOME, /usr/local/cuda
 *     the loader's own path      LD_LIBRARY_PATH, ldconfig
 *     cuda-wheels                beside the running program (what configure.py --install-deps
 *                                fetches) */
#ifndef GPULOAD_CORE_TOOLKIT_H
#define GPULOAD_CORE_TOOLKIT_H

#include <stdbool.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_TOOLKIT_PATH_BYTES = 4096 };  /* PATH_MAX of Linux, which -std=c11 hides */

/** Open a library.
 *
 * @variable  GPULOAD_NVRTC, say
 * @names     file names to try in each folder, best first, then NULL
 * @handle    of dlopen(); to be kept open: NVIDIA's libraries do not take kindly to dlclose()
 * @path      set to where it lies, without symbolic links; "": cannot be told
 * Errors  GPUL_EUNSUPPORTED none was found; the text says where it was looked for
 * Threads any thread may call
 * Source  - */
gpul_status gpul_toolkit_open(const char *variable, const char *const *names, void **handle,
			      char path[GPUL_TOOLKIT_PATH_BYTES], gpul_error *err);

/** Where the library lies that would be opened, without opening it, which takes 10 ms; no symbolic
 * links in path, which is untouched otherwise.
 * False: there is none, or the loader alone can find it.  Any thread. */
bool gpul_toolkit_locate(const char *variable, const char *const *names, char path[GPUL_TOOLKIT_PATH_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
