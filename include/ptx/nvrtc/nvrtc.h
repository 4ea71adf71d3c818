/* nvrtc.h — compiles CUDA C++ to PTX or machine code with NVIDIA's run-time compiler (libnvrtc).
 *
 * The library is opened when it is first needed, and stays open; core/toolkit.h lists the places that are searched
 * (GPULOAD_NVRTC selects one).  The toolkit's headers (cuda_fp16.h, cooperative_groups.h, cuda/atomic ...) are searched
 * relative to the library, and come last on the include path. */
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
	char *image;        /* NUL-terminated PTX, or a cubin; NULL on failure */
	size_t image_bytes; /* size of image without the NUL */
	char *log;          /* the compiler's warnings and errors; "" or NULL: none */
} gpul_nvrtc_result;

/** Compile CUDA C++.
 *
 * NVRTC compiles device code only.  If the text has host code too (functions without __device__ or __global__, headers such as
 * <vector>) and does not compile, it is compiled again without this code.
 *
 * @source   the program's text, NUL-terminated
 * @name     its file name, for messages and #line; not opened
 * @options  NULL-terminated list of further options for NVRTC, one string each ("-Idir", "-DN=4", "--std=c++17"); NULL: none
 * @arch     "compute_90" for PTX, "sm_90" for machine code
 * @out      set on success and on failure (then only log may be set); owned by the caller: gpul_nvrtc_result_free()
 * Errors  GPUL_EUNSUPPORTED no libnvrtc was found, or it does not support the architecture; GPUL_EFORMAT the program or an option
 *         has an error: the text is the first error of the log, native is the nvrtcResult; GPUL_ENOMEM
 * Source  NVRTC User Guide: nvrtcCompileProgram */
gpul_status gpul_nvrtc_compile(const char *source, const char *name, const char *const *options, const char *arch, gpul_nvrtc_result *out,
			       gpul_error *err);
void gpul_nvrtc_result_free(gpul_nvrtc_result *r); /* accepts an empty result; cannot fail */

/** Return the line of CUDA C++ text, from 1, in which main() is declared at namespace scope; 0: none.  Comments and strings are
 * skipped, but not the lines that the preprocessor would skip.  Any thread. */
unsigned gpul_nvrtc_main_line(const char *text);

/** Get path and version of the libnvrtc in use.
 *
 * @path   borrowed, valid until the process ends; untouched on failure
 * @major  13 for CUDA 13.0; may be NULL
 * @minor  0 for CUDA 13.0; may be NULL
 * Errors  GPUL_EUNSUPPORTED no libnvrtc was found; the text lists the places that were searched
 * Source  NVRTC User Guide: nvrtcVersion */
gpul_status gpul_nvrtc_find(const char **path, int *major, int *minor, gpul_error *err);

/** Get the path of the libnvrtc that would be opened, without opening it (which takes 10 ms).
 * Returns false if not found, or only dlopen() can find it: gpul_nvrtc_find() then opens it.  Any thread. */
bool gpul_nvrtc_locate(char path[GPUL_TOOLKIT_PATH_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
