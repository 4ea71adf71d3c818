/* nvjitlink_internal.h — libnvJitLink, opened: its entry points.
 *
 * nvJitLink.h of the toolkit is not included: it need not be installed.  Since CUDA 12.0 the
 * library has each call by its plain name too, the one that the header makes of
 * __nvJitLinkCreate_13_0. */
#ifndef GPULOAD_LOADER_NVJITLINK_INTERNAL_H
#define GPULOAD_LOADER_NVJITLINK_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum {
	NVJITLINK_INPUT_CUBIN = 1,
	NVJITLINK_INPUT_PTX = 2,
	NVJITLINK_INPUT_LTOIR = 3,
	NVJITLINK_INPUT_FATBIN = 4,
};
enum { NVJITLINK_ERROR_UNSUPPORTED_ARCH = 17 };

/* X(name, parameters): all return an nvJitLinkResult, 0 for success.  A handle is a void *. */
#define NVJITLINK_CALLS(X)                                                                     \
	X(nvJitLinkCreate, (void **handle, uint32_t n_options, const char *const *options))    \
	X(nvJitLinkDestroy, (void **handle))                                                   \
	X(nvJitLinkAddData, (void *handle, int type, const void *data, size_t bytes,           \
			     const char *name))                                                \
	X(nvJitLinkComplete, (void *handle))                                                   \
	X(nvJitLinkGetLinkedCubinSize, (void *handle, size_t *bytes))                          \
	X(nvJitLinkGetLinkedCubin, (void *handle, void *cubin))                                \
	X(nvJitLinkGetLinkedPtxSize, (void *handle, size_t *bytes))                            \
	X(nvJitLinkGetLinkedPtx, (void *handle, void *ptx))                                    \
	X(nvJitLinkGetErrorLogSize, (void *handle, size_t *bytes))                             \
	X(nvJitLinkGetErrorLog, (void *handle, void *log))                                     \
	X(nvJitLinkGetInfoLogSize, (void *handle, size_t *bytes))                              \
	X(nvJitLinkGetInfoLog, (void *handle, void *log))                                      \
	X(nvJitLinkVersion, (unsigned *major, unsigned *minor))

struct nvjitlink {
#define X(name, parameters) int (*name) parameters;
	NVJITLINK_CALLS(X)
#undef X
	unsigned major, minor;
	char path[PATH_MAX];
};

/* Open it the first time; the same one after that, and the same failure.  Any thread. */
gpul_status nvjitlink_open(const struct nvjitlink **out, gpul_error *err);


struct gpul_link_input;
struct gpul_link_options;
struct gpul_linked;
/* Link by it, to machine code; with options->to_ptx, where all inputs are LTO code, to PTX.  The
 * result is not looked at; out->log may be set on failure too. */
gpul_status nvjitlink_link(const struct gpul_link_input *inputs, size_t n,
			   const struct gpul_link_options *options, struct gpul_linked *out,
			   gpul_error *err);
/* The same, from the cache where it was linked before. */
gpul_status nvjitlink_link_cached(const struct gpul_link_input *inputs, size_t n,
				  const struct gpul_link_options *options, struct gpul_linked *out,
				  gpul_error *err);
/* Where it lies, without opening it: gpul_toolkit_locate(). */
bool nvjitlink_locate(char path[PATH_MAX]);

#endif
