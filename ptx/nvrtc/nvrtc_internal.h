/* nvrtc_internal.h — the entry points of libnvrtc and the folders of its headers. */
#ifndef GPULOAD_PTX_NVRTC_NVRTC_INTERNAL_H
#define GPULOAD_PTX_NVRTC_NVRTC_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* X(name, parameters): all entry points return an nvrtcResult, 0 for success.  A program is a void *. */
#define PTX_NVRTC_CALLS(X)                                                                     \
	X(nvrtcVersion, (int *major, int *minor))                                              \
	X(nvrtcCreateProgram, (void **program, const char *source, const char *name, int n_headers, \
			       const char *const *headers, const char *const *names))          \
	X(nvrtcDestroyProgram, (void **program))                                               \
	X(nvrtcCompileProgram, (void *program, int n_options, const char *const *options))     \
	X(nvrtcGetPTXSize, (void *program, size_t *bytes))                                     \
	X(nvrtcGetPTX, (void *program, char *ptx))                                             \
	X(nvrtcGetCUBINSize, (void *program, size_t *bytes))                                   \
	X(nvrtcGetCUBIN, (void *program, char *cubin))                                         \
	X(nvrtcGetProgramLogSize, (void *program, size_t *bytes))                              \
	X(nvrtcGetProgramLog, (void *program, char *log))

struct ptx_nvrtc {
#define X(name, parameters) int (*name) parameters;
	PTX_NVRTC_CALLS(X)
#undef X
	const char *(*nvrtcGetErrorString)(int result);
	int major, minor;
	const char *path;
	char include[PATH_MAX], cccl[PATH_MAX];   /* folders of its headers; "": not found */
};

enum { PTX_NVRTC_MAX_HEADERS = 80 };
/* Names and texts of the headers that a program gets; returns their number.  device_only: also empty texts for C++ library
 * headers that only host code can use. */
int ptx_nvrtc_headers(bool device_only, const char *names[PTX_NVRTC_MAX_HEADERS], const char *texts[PTX_NVRTC_MAX_HEADERS]);

/* host_code.c: a copy of a text in which host code is replaced by blanks, with the same lines; owned.  NULL: it has no such
 * code, or out of memory. */
char *ptx_nvrtc_without_host_code(const char *text);

/* nvrtc_log.c: true if NVRTC's messages contain an error in the file itself, not in a header. */
bool ptx_nvrtc_log_has_error_in(const char *log, const char *name);
/* The messages reordered: those about the file first, then only a few of those about headers; owned.  NULL: out of memory. */
char *ptx_nvrtc_ordered_log(const char *log, const char *name);

/* Open libnvrtc at the first call; later calls return the same library or the same failure.  Any thread. */
gpul_status ptx_nvrtc_open(const struct ptx_nvrtc **out, gpul_error *err);

#endif
