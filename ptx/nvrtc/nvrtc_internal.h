/* nvrtc_internal.h — declares the entry points of libnvrtc, the folders of its headers, and the steps of a compilation. */
#ifndef GPULOAD_PTX_NVRTC_NVRTC_INTERNAL_H
#define GPULOAD_PTX_NVRTC_NVRTC_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* X(name, parameters).  All functions return an nvrtcResult, which is 0 for success.  A program is a void *. */
#define PTX_NVRTC_CALLS(X) \
	X(nvrtcVersion, (int *major, int *minor)) \
	X(nvrtcCreateProgram, \
	  (void **program, const char *source, const char *name, int n_headers, const char *const *headers, const char *const *names)) \
	X(nvrtcDestroyProgram, (void **program)) \
	X(nvrtcCompileProgram, (void *program, int n_options, const char *const *options)) \
	X(nvrtcGetPTXSize, (void *program, size_t *bytes)) \
	X(nvrtcGetPTX, (void *program, char *ptx)) \
	X(nvrtcGetCUBINSize, (void *program, size_t *bytes)) \
	X(nvrtcGetCUBIN, (void *program, char *cubin)) \
	X(nvrtcGetProgramLogSize, (void *program, size_t *bytes)) \
	X(nvrtcGetProgramLog, (void *program, char *log))

struct ptx_nvrtc {
#define X(name, parameters) int(*name) parameters;
	PTX_NVRTC_CALLS(X)
#undef X
	const char *(*nvrtcGetErrorString)(int result);
	int major, minor;
	const char *path;
	char include[PATH_MAX], cccl[PATH_MAX]; /* folders of NVRTC's headers; "": not found */
};

enum { PTX_NVRTC_MAX_HEADERS = 80 };
/* Get the names and texts of the headers that NVRTC receives with a program; returns their number. device_only: also empty texts
 * for C++ library headers that only host code can use. */
int ptx_nvrtc_headers(bool device_only, const char *names[PTX_NVRTC_MAX_HEADERS], const char *texts[PTX_NVRTC_MAX_HEADERS]);

/* host_code.c: copy a text, with blanks in place of its host code, so that line numbers stay the same.  The caller must free the
 * copy.  NULL: the text has no host code, or out of memory. */
char *ptx_nvrtc_without_host_code(const char *text);

/* nvrtc_log.c: true if NVRTC's messages contain an error in the file itself, not in a header. */
bool ptx_nvrtc_log_has_error_in(const char *log, const char *name);
/* Copy the messages in another order: those about the file `name` first, then only a few of those about headers.  The caller must
 * free the copy.  NULL: out of memory. */
char *ptx_nvrtc_ordered_log(const char *log, const char *name);

/* Open libnvrtc at the first call; later calls return the same library or the same failure.  Any thread may call. */
gpul_status ptx_nvrtc_open(const struct ptx_nvrtc **out, gpul_error *err);

#endif
