/* nvrtc.h — CUDA C++ to PTX or machine code, by NVIDIA's run-time compiler (libnvrtc).
 *
 * The library is opened when first needed and stays open; core/toolkit.h says where it is looked for
 * (GPULOAD_NVRTC names it).
 *
 * The headers that belong to it (cuda_fp16.h, cooperative_groups.h, cuda/atomic ...) are found
 * from there and put last on the include path. */
#ifndef GPULOAD_PTX_NVRTC_NVRTC_H
#define GPULOAD_PTX_NVRTC_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/toolkit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_nvrtc_result {
	char *image;          /* PTX with a NUL behind it, or a cubin; NULL on failure */
	size_t image_bytes;   /* without that NUL */
	char *log;            /* what the compiler had to say, warnings or errors; "" or NULL: nothing */
} gpul_nvrtc_result;

/** Compile CUDA C++.
 *
 * @source   the program's text, NUL-terminated
 * @name     its file name, for messages and #line; not opened
 * @options  more options for NVRTC, each one word ("-Idir", "-DN=4", "--std=c++17"), then NULL;
 *           NULL: none
 * @arch     "compute_90" for PTX, "sm_90" for machine code
 * @out      filled in, on failure too (then only log may be set); gpul_nvrtc_result_free()
 * Errors  GPUL_EUNSUPPORTED no libnvrtc was found, or it cannot do this architecture;
 *         GPUL_EFORMAT the program or an option is wrong: the first error of the log is the text,
 *         native is the nvrtcResult; GPUL_ENOMEM
 * Threads any thread may call
 * Source  NVRTC User Guide: nvrtcCompileProgram */
gpul_status gpul_nvrtc_compile(const char *source, const char *name, const char *const *options,
			       const char *arch, gpul_nvrtc_result *out, gpul_error *err);
void gpul_nvrtc_result_free(gpul_nvrtc_result *r);   /* an empty one is fine; cannot fail */

/** Which libnvrtc is used: its path and version.
 *
 * @path   borrowed, stays; untouched on failure
 * @major  13 of CUDA 13.0; may be NULL
 * @minor  0 of it; may be NULL
 * Errors  GPUL_EUNSUPPORTED no libnvrtc was found; the text says where it was looked for
 * Threads any thread may call
 * Source  NVRTC User Guide: nvrtcVersion */
gpul_status gpul_nvrtc_find(const char **path, int *major, int *minor, gpul_error *err);

/** Where the libnvrtc lies that would be used, without opening it, which takes 10 ms.
 * False: there is none, or the loader alone can find it: gpul_nvrtc_find().  Any thread. */
bool gpul_nvrtc_locate(char path[GPUL_TOOLKIT_PATH_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
