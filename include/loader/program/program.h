/* program.h — builds a program from CUDA C++ with nvcc, so that it runs on NVIDIA's driver and on the software driver.
 *
 *     program.cu ── nvcc -cudart none ──┐
 *     libgpuload-rt.a ──────────────────┤
 *     libcuda.so, if cu* are called ────┴──> program, kept in the cache (core/cache/cache.h) */
#ifndef GPULOAD_LOADER_PROGRAM_PROGRAM_H
#define GPULOAD_LOADER_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_PROGRAM_PATH_BYTES = 4096 };

/** Find nvcc: $GPULOAD_NVCC, $CUDA_HOME/bin, the nvcc that configure.py found, $PATH, the wheels that ninja install has
 * copied, /usr/local/cuda/bin, the toolkit of NVRTC.  Returns false if not found.  Any thread. */
bool gpul_program_find_nvcc(char path[GPUL_PROGRAM_PATH_BYTES]);

/** Find libgpuload-rt.a: $GPULOAD_RT, beside this program or library, in the lib folder of its prefix.
 * Returns false if not found.  Any thread. */
bool gpul_program_find_runtime(char path[GPUL_PROGRAM_PATH_BYTES]);

/** Find a libcuda.so to link programs with: the stub of nvcc's toolkit, else the software driver.  The program then needs libcuda.so.1.
 * Returns false if not found.  Any thread. */
bool gpul_program_find_libcuda(const char *nvcc, char path[GPUL_PROGRAM_PATH_BYTES]);

/** Build a program, or find it in the cache, if the source, its headers, the options, the device, nvcc and libgpuload-rt.a are the
 * same.
 *
 * @text       CUDA C++
 * @path       its path, for messages, debug information and #include "..."; not opened, so it may be the path of a pipe
 * @options    for nvcc, such as "-Idir", then NULL; NULL: none
 * @cc         compute capability of the device: 90
 * @no_cache   build, and do not use the cache
 * @out        the bytes of the program; owned by the caller: free(); untouched on failure
 * @out_bytes  their number
 * Errors  GPUL_EUNSUPPORTED no nvcc or no libgpuload-rt.a; GPUL_EFORMAT nvcc reported errors, on stderr; GPUL_ESYS a temporary
 *         folder or file, or nvcc cannot be used; GPUL_ENOMEM
 * Source  nvcc manual: -cudart none, -MD */
gpul_status gpul_program_build(const char *text, const char *path, const char *const *options, uint32_t cc, bool no_cache, void **out,
			       size_t *out_bytes, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
