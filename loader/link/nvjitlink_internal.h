/* nvjitlink_internal.h — libnvJitLink, opened: its entry points.
 *
 * nvJitLink.h of the toolkit is not included: it need not be installed.  Since CUDA 12.0 the
 * library has each call by its plain name too, the one that the header makes of
 * __nvJitLinkCreate_13_0. */
#ifndef GPULOAD_LOADER_LINK_NVJITLINK_INTERNAL_H
#define GPULOAD_LOADER_LINK_NVJITLINK_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/link/link.h"

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
	const char *path;
};

/* Open it the first time; the same one after that, and the same failure.  Any thread. */
gpul_status nvjitlink_open(const struct nvjitlink **out, gpul_error *err);


struct nvjitlink_task { /* one link */
	const struct nvjitlink *lib;
	const char **words; /* options */
	uint32_t n_words;
	const gpul_link_input *inputs;
	size_t n_inputs;
	bool ptx; /* wanted: PTX, not a cubin */
};

struct nvjitlink_outcome {
	int created, completed;  /* results of nvJitLinkCreate, nvJitLinkComplete */
	char *errors, *info;     /* logs; NULL or "": nothing was said */
	void *result;            /* NULL or empty: none was made; a NUL follows it */
	size_t result_bytes;
};

/* Do it here; see nvjitlink_child.c for why this is called in a child only. */
void nvjitlink_run(const struct nvjitlink_task *task, struct nvjitlink_outcome *out);
void nvjitlink_outcome_free(struct nvjitlink_outcome *o);
/* Do it in a child; GPUL_EFORMAT: the child died. */
gpul_status nvjitlink_run_apart(const struct nvjitlink_task *task,
				struct nvjitlink_outcome *out, gpul_error *err);

/* The log of a link that failed, as an error. */
gpul_status nvjitlink_explain(const struct nvjitlink *lib, int result, const char *log,
			      const gpul_link_input *inputs, size_t n, gpul_error *err);

/* Link by it, to machine code; with options->to_ptx, where all inputs are LTO code, to PTX.  The
 * result is not looked at; out->log may be set on failure too. */
gpul_status nvjitlink_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *options,
			   gpul_linked *out, gpul_error *err);

/* The same, from the cache where it was linked before. */
gpul_status nvjitlink_link_cached(const gpul_link_input *inputs, size_t n,
				  const gpul_link_options *options, gpul_linked *out,
				  gpul_error *err);
/* Where it lies, without opening it: gpul_toolkit_locate(). */
bool nvjitlink_locate(char path[PATH_MAX]);

#endif
