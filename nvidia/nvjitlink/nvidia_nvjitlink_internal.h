/* nvidia_nvjitlink_internal.h — the state of a link: its inputs as PTX, and a second link of the same inputs by NVIDIA's linker.
 *
 *     nvjitlink_calls.c   the exported functions
 *     input.c             finds the PTX of an input: text, fatbins, objects, libraries, LTO code
 *     link_ptx.c          links the PTX
 *     cooperative.c       functions of libcudadevrt
 *     nvjitlink_log.c     gpuload's lines in the error log
 *     nvjitlink_real.c    opens NVIDIA's library */
#ifndef GPULOAD_NVIDIA_NVJITLINK_NVIDIA_NVJITLINK_INTERNAL_H
#define GPULOAD_NVIDIA_NVJITLINK_NVIDIA_NVJITLINK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/array.h"
#include "core/error.h"

/* Values of nvJitLink.h. */
/* clang-format off */
enum {
	JL_SUCCESS = 0, JL_MISSING_ARCH = 2, JL_INVALID_INPUT = 3, JL_INTERNAL = 6, JL_UNRECOGNIZED_INPUT = 8, JL_FINALIZE = 9, JL_NULL_INPUT = 10,
	JL_LTO_NOT_ENABLED = 18,
};
enum {
	JL_CUBIN = 1, JL_PTX = 2, JL_LTOIR = 3, JL_FATBIN = 4, JL_OBJECT = 5, JL_LIBRARY = 6, JL_INDEX = 7, JL_ANY = 10,
};
/* clang-format on */

/* X(name, parameters, arguments): the calls on a handle. */
#define JL_CALLS(X) \
	X(Create, (void **handle, uint32_t n_options, const char *const *options), (handle, n_options, options)) \
	X(Destroy, (void **handle), (handle)) \
	X(AddData, (void *handle, int type, const void *data, size_t bytes, const char *name), (handle, type, data, bytes, name)) \
	X(AddFile, (void *handle, int type, const char *path), (handle, type, path)) \
	X(Complete, (void *handle), (handle)) \
	X(GetLinkedCubinSize, (void *handle, size_t *bytes), (handle, bytes)) \
	X(GetLinkedCubin, (void *handle, void *cubin), (handle, cubin)) \
	X(GetLinkedPtxSize, (void *handle, size_t *bytes), (handle, bytes)) \
	X(GetLinkedPtx, (void *handle, char *ptx), (handle, ptx)) \
	X(GetLinkedLTOIRSize, (void *handle, size_t *bytes), (handle, bytes)) \
	X(GetLinkedLTOIR, (void *handle, void *ir), (handle, ir)) \
	X(GetErrorLogSize, (void *handle, size_t *bytes), (handle, bytes)) \
	X(GetErrorLog, (void *handle, char *log), (handle, log)) \
	X(GetInfoLogSize, (void *handle, size_t *bytes), (handle, bytes)) \
	X(GetInfoLog, (void *handle, char *log), (handle, log))

/* The functions of NVIDIA's library; each may be NULL. */
struct jl_real {
#define X(name, parameters, arguments) int(*name) parameters;
	JL_CALLS(X)
#undef X
	int (*Version)(unsigned *major, unsigned *minor);
};

/* Return the functions of NVIDIA's library, which is opened at the first call; NULL: the library was not found. */
const struct jl_real *jl_open(void);

struct jl_input {
	char *name, *text; /* owned; PTX, NUL-terminated */
	size_t text_bytes;
	bool is_library; /* the input is linked only if a symbol is undefined without it */
};

struct jl_link {
	const struct jl_real *real; /* NULL: NVIDIA's library was not found */
	void *checked;              /* a second link of all inputs, by NVIDIA's linker, for its errors and logs; NULL: none */
	void *lto;                  /* a link of the LTO code to PTX by NVIDIA's linker; NULL: there was no LTO code so far */
	char **options;             /* copy of the options for .lto; the last is "-ptx" */
	uint32_t n_options;
	bool is_lto, wants_ptx, completed;
	unsigned max_registers; /* -maxrregcount; 0: not given */
	GPUL_ARRAY(struct jl_input) inputs;
	char arch[32];           /* "sm_90"; "": not given */
	char *ptx;               /* the linked PTX, NUL-terminated; NULL: not linked yet */
	size_t ptx_bytes;        /* size of ptx with the NUL */
	GPUL_ARRAY(char) errors; /* gpuload's lines in the error log, without a NUL */
};

/* Append a line to the error log, and return `result`. */
int jl_complain(struct jl_link *l, int result, const char *text);
/* Add an input and find its PTX.  Returns an nvJitLinkResult. */
int jl_add(struct jl_link *l, int type, const void *data, size_t bytes, const char *name);
/* Return the input type to pass to NVIDIA's linker: a "cubin" from gpuload is PTX. */
int jl_real_type(int type, const void *data, size_t bytes);
/* PTX of the functions for cooperative groups, which in libcudadevrt call NVIDIA's driver. */
extern const char jl_cooperative_groups[];
/* Link all inputs to l->ptx. */
int jl_link_ptx(struct jl_link *l);

#endif
