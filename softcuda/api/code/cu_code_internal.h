/* cu_code_internal.h — images, modules, libraries and their functions. */
#ifndef GPULOAD_SOFTCUDA_API_CODE_CU_CODE_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_CODE_CU_CODE_INTERNAL_H

#include "core/cache/cache.h"
#include "core/file/file.h"
#include "loader/image/source.h"
#include "ptx/module.h"
#include "softcuda/api/stream/cu_queue_internal.h"

struct soft_image {       /* the PTX to load, and the memory that contains it */
	const char *text; /* text_bytes characters, then NUL */
	size_t text_bytes;
	gpul_source *source; /* the fatbin that contains the PTX, opened; NULL: none */
	gpul_unpacked unpacked;
	char *own;           /* owned: a text that was linked or copied; NULL: none */
	bool is_valid;       /* the text is known to be valid: the linker made it from parsed PTX, or an earlier process has parsed it */
	gpul_cache_key *key; /* key of its kernels' attributes in the cache on disk (cu_known.c); NULL: not cached */
};

/* Parsed PTX, which is shared by the programs (struct code) of several contexts. */
struct parsed {
	unsigned refs;
	gpul_ptx_module *module;
	struct soft_image image; /* the PTX text, kept if function bodies are parsed later; else all zeros */
	char name[128];          /* the name of the image in fault messages and logs */
};

/* A decoded program.  It belongs to a module, or to a library; the first context that uses the library shares the library's program. */
struct code {
	unsigned refs;
	gpul_exec_program *program;
	struct parsed *parsed;
	int target_sm; /* .target of the PTX: 90 for sm_90 */
};

struct function {
	void *handle;
	struct module *module;
	const gpul_exec_kernel *kernel;
	const gpul_exec_kernel_info *info;
	int max_dynamic_shared; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; -1: not set, see soft_max_dynamic() */
	int carveout;
	bool non_portable_cluster; /* clusters of more than 8 blocks are allowed */
	struct old_launch *old;    /* state of the CUDA 3 launch calls (cu_old_launch.c); NULL: they were not used */
};

struct module {
	struct link link;       /* link in context->modules */
	struct link of_library; /* link in library->instances */
	void *handle;
	struct context *ctx;
	struct library *library; /* the library that the module belongs to; NULL: the module was loaded by cuModuleLoad* */
	struct code *code;
	struct function *functions;
	size_t n_functions;
	struct link managed; /* list of the module's managed variables (struct allocation) */
};

struct kernel {
	void *handle;
	struct library *library;
	size_t index; /* index of the kernel in the program */
	bool non_portable_cluster;
	int max_dynamic_shared, carveout; /* initial values for the kernel's function in each context */
};

struct library {
	struct link link;
	void *handle;
	char no_code[256]; /* why the image has no kernels (see soft_image_is_other()); "": the image is PTX or device code */
	struct code *code;
	bool code_lent; /* true if a module of the library already uses `code` */
	struct kernel *kernels;
	size_t n_kernels;
	struct link instances; /* the library's modules, one for each context */
};

/* ---- cu_refusal.c -------------------------------------------------------------------------- */

/* Return CUDA_ERROR_NOT_SUPPORTED if the kernel can reach an instruction that is not implemented; the reason is reported like a fault. */
CUresult soft_check_kernel(const gpul_exec_kernel *k);
/* Check a kernel whose handle the application gets.  A kernel that is decoded at its launch is only parsed now, and checked then. */
CUresult soft_check_request(const gpul_exec_kernel *k);
/* Parse the body of the kernel, if that was postponed, so that all attributes of the kernel are known. */
CUresult soft_prepare(const gpul_exec_kernel *k);
/* Write a line for each kernel of the program that cannot run, or "" if all kernels can run.  Returns `text`. */
const char *soft_refused_kernels(const gpul_exec_program *p, char *text, size_t text_bytes);

/* ---- cu_jit.c ------------------------------------------------------------------------------ */

struct jit_log { /* the caller's buffers for the messages of a load call, and the caller's register limit */
	char *info, *error;
	size_t info_bytes, error_bytes;
	void **info_filled, **error_filled, **wall_time;
	unsigned max_registers; /* register limit of a thread; 0: no limit */
};

CUresult soft_jit_options(unsigned n, CUjit_option *options, void **values, struct jit_log *out);
CUresult soft_jit_error(const struct jit_log *log, CUresult r, const char *text);
void soft_jit_done(const struct jit_log *log, const char *info);

/* ---- cu_image.c ---------------------------------------------------------------------------- */

/* Find the PTX in `data`, which must outlive *out.  n_bytes 0: find the size from the headers in data.  On failure, `why` receives
 * the reason, and *out is zeroed.  CUDA_ERROR_INVALID_VALUE: data cannot be read. */
CUresult soft_image_open(const void *data, size_t n_bytes, struct soft_image *out, char *why, size_t why_bytes);
void soft_image_close(struct soft_image *image);
/* Returns true if data is neither PTX nor device code.  An H200 (driver 13) loads such data as a library without kernels, because
 * it parses an image only when a kernel is first needed; cuda-core's tests load an empty image. */
bool soft_image_is_other(const void *data, size_t n_bytes);
/* Choose the best image of this kind for the interpreter, among the images of one program (for several architectures); NULL: none. */
const gpul_image *soft_best_image(gpul_image_kind kind, const gpul_image *all, size_t n);
CUresult soft_open_file(const char *path, gpul_file *out); /* the caller calls gpul_file_close() */

/* ---- cu_known.c ---------------------------------------------------------------------------- */

/* Return the cache key of an image in its stored (compressed) form; NULL: too small to cache.  text_bytes: size of the unpacked text. */
gpul_cache_key *soft_known_key(const void *stored, size_t n_bytes, size_t text_bytes);
/* Find the attributes of the image's kernels in the cache, in the order of the kernels; the caller frees *out. */
bool soft_known_find(const gpul_cache_key *key, gpul_exec_attributes **out, size_t *n);
void soft_known_store(const gpul_cache_key *key, const gpul_exec_program *p);

/* ---- cu_module.c --------------------------------------------------------------------------- */

/* Parse PTX; with GPULOAD_SOFT_STRICT=1 also refuse what ptxas refuses.  *out is untouched or NULL on failure, and *err has the reason. */
CUresult soft_parse_ptx(const char *text, size_t text_bytes, const char *name, gpul_ptx_module **out, gpul_error *err);
/* Create a program, which may take over the text of the image.  The caller still calls soft_image_close(), and does not hold the lock. */
CUresult soft_code_create(struct soft_image *image, const char *name, const struct jit_log *log, struct code **out);
/* Create another decoded program from the PTX of c.  The caller holds the lock, which is released while PTX is decoded. */
CUresult soft_code_again(const struct code *c, struct code **out);
void soft_code_unref(struct code *c); /* the caller holds the lock */
CUresult soft_module_create(struct context *ctx, struct code *code, struct module **out);
void soft_module_destroy(struct module *m); /* the caller holds the lock */

/* ---- cu_launch.c ---------------------------------------------------------------------------- */

struct launch_op {
	struct op op;
	gpul_exec_launch_config config;
	CUfunction handle;         /* handle passed to the launch call */
	struct code *code;         /* referenced until the launch has ended */
	gpul_exec_launch *running; /* the running kernel; NULL: not started */
	void *params;              /* the arguments; owned */
};

extern const struct op_kind soft_launch_kind;

/* Check a launch and create its operation.  s NULL: for a graph node, in the context of its function.  The caller holds the lock. */
CUresult soft_launch_new(struct context *ctx, struct stream *s, CUfunction handle, const gpul_exec_launch_config *c, void **params,
			 void **extra, struct op **out);
/* Fail if the launch of a graph node has an empty grid.  The caller holds the lock. */
CUresult soft_launch_check(const struct op *op);

/* ---- cu_library.c, cu_function.c, cu_occupancy.c -------------------------------------------------- */

/* Find or create the library's module in ctx.  The caller holds the lock, which is released while PTX is decoded. */
CUresult soft_library_instance(struct library *l, struct context *ctx, struct module **out);
/* Find the function of a handle, which may also be a CUkernel cast to CUfunction.  The caller holds the lock. */
CUresult soft_find_function(struct context *ctx, CUfunction handle, struct function **out);
/* Call soft_enter() and soft_find_function().  On success, the lock is held. */
CUresult soft_enter_function(CUfunction handle, struct function **out);
/* Like soft_enter_function(), and also call soft_prepare() for the function's kernel. */
CUresult soft_enter_prepared(CUfunction handle, struct function **out);
int soft_max_dynamic(const struct function *f); /* bytes of dynamic shared memory that a launch of f may use; requires soft_prepare() */
int soft_blocks_per_sm(const struct function *f, int block_threads, size_t dynamic_shared_bytes);

#endif
