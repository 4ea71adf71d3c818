/* nvjitlink_internal.h — declares the entry points of libnvJitLink, and the steps of a link.
 *
 * The toolkit's nvJitLink.h is not included, because it may not be installed.  It maps nvJitLinkCreate
 * to __nvJitLinkCreate_13_0; since CUDA 12.0 the library exports the plain name too. */
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

/* X(name, parameters): all entry points return an nvJitLinkResult, 0 for success.  A handle is a void *. */
#define NVJITLINK_CALLS(X) \
	X(nvJitLinkCreate, (void **handle, uint32_t n_options, const char *const *options)) \
	X(nvJitLinkDestroy, (void **handle)) \
	X(nvJitLinkAddData, (void *handle, int type, const void *data, size_t bytes, const char *name)) \
	X(nvJitLinkComplete, (void *handle)) \
	X(nvJitLinkGetLinkedCubinSize, (void *handle, size_t *bytes)) \
	X(nvJitLinkGetLinkedCubin, (void *handle, void *cubin)) \
	X(nvJitLinkGetLinkedPtxSize, (void *handle, size_t *bytes)) \
	X(nvJitLinkGetLinkedPtx, (void *handle, void *ptx)) \
	X(nvJitLinkGetErrorLogSize, (void *handle, size_t *bytes)) \
	X(nvJitLinkGetErrorLog, (void *handle, void *log)) \
	X(nvJitLinkGetInfoLogSize, (void *handle, size_t *bytes)) \
	X(nvJitLinkGetInfoLog, (void *handle, void *log)) \
	X(nvJitLinkVersion, (unsigned *major, unsigned *minor))

struct nvjitlink {
#define X(name, parameters) int(*name) parameters;
	NVJITLINK_CALLS(X)
#undef X
	unsigned major, minor;
	const char *path;
};

/* Open the library at the first call; later calls return the same library or failure.  Any thread. */
gpul_status nvjitlink_open(const struct nvjitlink **out, gpul_error *err);
/* Get the path of the library without opening it: gpul_toolkit_locate(). */
bool nvjitlink_locate(char path[PATH_MAX]);

struct nvjitlink_task { /* the inputs and options of one link */
	const struct nvjitlink *lib;
	const char **options;
	uint32_t n_options;
	const gpul_link_input *inputs;
	size_t n_inputs;
	bool ptx; /* true: link to PTX; false: to a cubin */
};

struct nvjitlink_outcome {
	int created, completed; /* return values of nvJitLinkCreate, nvJitLinkComplete */
	char *errors, *info;    /* logs; NULL or "": empty */
	void *result;           /* NULL or empty: no result; a NUL follows the result */
	size_t result_bytes;
};

/* Link in this process.  Call it only in a child process, because nvJitLink crashes on some damaged inputs. */
void nvjitlink_run(const struct nvjitlink_task *task, struct nvjitlink_outcome *out);
void nvjitlink_outcome_free(struct nvjitlink_outcome *o);
/* Link in a child process; GPUL_EFORMAT: the child crashed. */
gpul_status nvjitlink_run_in_child(const struct nvjitlink_task *task, struct nvjitlink_outcome *out, gpul_error *err);

/* Convert the log of a failed link to an error. */
gpul_status nvjitlink_explain(const struct nvjitlink *lib, int result, const char *log, const gpul_link_input *inputs, size_t n,
			      gpul_error *err);

/* Link to machine code, or, with options->to_ptx, to PTX; then all inputs must be LTO code.  If the same link was run before, the
 * result comes from the cache.  The caller must check the result.  out->log may be set even on failure. */
gpul_status nvjitlink_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *options, gpul_linked *out, gpul_error *err);

#endif
