/* loader_internal.h — what a module and its kernels are made of. */
#ifndef GPULOAD_LOADER_LOADER_INTERNAL_H
#define GPULOAD_LOADER_LOADER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "loader/names/demangle.h"
#include "loader/image/kernels/kernels.h"
#include "loader/loader.h"
#include "loader/signature/signature_internal.h"

typedef struct gpul_limits { /* of the device: asked once, when the module is loaded */
	uint32_t cc;         /* compute capability, 10 * major + minor */
	uint32_t threads, block[3], grid[3];
	uint32_t shared, shared_optin; /* bytes a block: by default; when the kernel opts in */
} gpul_limits;

struct gpul_kernel {
	gpul_module *m;
	const char *name;       /* mangled; borrowed from the PTX, the table or the driver */
	const gpul_ptx_func *f; /* NULL: machine code */
	const gpul_kernel_info *info;   /* machine code of ours: what its image says; else NULL */
	gpul_signature_owned *declared; /* sizes */
	CUkernel handle;                /* set when resolved */

	/* Filled in when first needed, under the module's lock. */
	gpul_signature *inferred;
	char *demangled;
	CUfunction fn;
	uint32_t max_threads, static_shared;
	_Atomic uint32_t dynamic_allowed; /* bytes of dynamic shared memory */
	atomic_bool resolved;             /* fn and what follows from it are there */
};

struct gpul_module {
	const gpul_driver *drv;
	CUlibrary library;
	gpul_ptx_module *ptx;     /* NULL: machine code */
	gpul_kernel_table table;  /* machine code: its kernels; else empty */
	char *beside_text;        /* machine code: PTX of the same source, not parsed yet; or NULL */
	gpul_ptx_module *beside;  /* the same, parsed; NULL: there is none */
	char **variables;         /* machine code: those that have room for an address; owned */
	size_t n_variables;
	gpul_kernel *kernels;
	size_t n_kernels;
	gpul_limits limits;
	pthread_mutex_t lock;
};

/* Ask the driver what a device allows. */
gpul_status gpul_limits_read(const gpul_driver *drv, CUdevice device, gpul_limits *out,
			     gpul_error *err);

/* Ask the driver for what launching k needs, once. */
gpul_status gpul_kernel_resolve(gpul_kernel *k, gpul_error *err);

/* The same for a function that is known: its block and its shared memory.  Under the lock, or
 * before others know of k. */
gpul_status gpul_kernel_bind(gpul_kernel *k, CUfunction fn, gpul_error *err);

/* What k takes, by the driver: sizes.  k->name is there, k->declared is set. */
gpul_status gpul_kernel_describe(gpul_kernel *k, CUfunction fn, gpul_error *err);

/* The demangled name, or the name itself where nothing can demangle it. */
const char *gpul_kernel_demangled_locked(gpul_kernel *k);

/* Code that is ready for the driver. */
typedef struct gpul_code {
	gpul_image_kind kind; /* PTX or CUBIN */
	const void *bytes;    /* PTX ends in NUL: the driver is told no size */
	size_t n_bytes;       /* without that NUL */
	const char *name;     /* for messages: the file it came from */
	const char *options;  /* PTX: for ptxas, options_bytes long; NULL: those on its first line */
	size_t options_bytes;
} gpul_code;

/* A module without code, for the device that options name; gpul_module_unload(). */
gpul_status gpul_module_create(const gpul_driver *drv, const gpul_load_options *options,
			       gpul_module **out, gpul_error *err);
/* Put code into it: its kernels, and the driver's library.  code is not needed afterwards. */
gpul_status gpul_module_fill(gpul_module *m, const gpul_code *code,
			     const gpul_load_options *options, gpul_error *err);

/* Load PTX into m->library; a refusal is explained from the JIT's own log. */
gpul_status gpul_jit_load(gpul_module *m, const gpul_code *code,
			  const gpul_load_options *options, gpul_error *err);

/* Machine code: kernels from its own tables, library from the driver. */
gpul_status gpul_machine_code_load(gpul_module *m, const gpul_code *code, gpul_error *err);

/* Read the names of a cubin's variables into m, for gpul_function_pointer(). */
gpul_status gpul_variables_read(gpul_module *m, const gpul_code *code, gpul_error *err);

/* Remember the PTX of the same unit as a cubin that was loaded, if the unit has PTX. */
void gpul_beside_keep(gpul_module *m, const gpul_images *images, const gpul_image *image);
/* What that PTX tells of a kernel; NULL: nothing.  Under the lock. */
gpul_signature *gpul_beside_signature(const gpul_kernel *k);

/* What a C++ name tells of a kernel that has no PTX, beside its sizes; NULL: no memory. */
gpul_signature *gpul_signature_of_name(const gpul_kernel *k, const char *demangled);

#endif
