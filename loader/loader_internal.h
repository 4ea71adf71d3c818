/* loader_internal.h — defines the structs of modules and kernels, and the steps of loading. */
#ifndef GPULOAD_LOADER_LOADER_INTERNAL_H
#define GPULOAD_LOADER_LOADER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/demangle.h"
#include "loader/image/kernels/kernels.h"
#include "loader/loader.h"
#include "loader/signature/signature_internal.h"

typedef struct gpul_limits { /* limits of the device, read once, when the module is created */
	uint32_t cc;         /* compute capability, 10 * major + minor */
	uint32_t threads, block[3], grid[3];
	uint32_t shared, shared_optin; /* bytes of shared memory of a block: by default, and at most (opt-in) */
} gpul_limits;

struct gpul_kernel {
	gpul_module *m;
	const char *name;               /* mangled name; borrowed from the PTX, the table or the driver */
	const gpul_ptx_func *f;         /* the kernel in the PTX; NULL: machine code */
	const gpul_kernel_info *info;   /* the kernel's entry in m->table; NULL for PTX, and for a kernel of gpul_kernel_of() */
	gpul_signature_owned *declared; /* the signature from the declaration alone, which has sizes, but no types */
	CUkernel handle;                /* set by gpul_kernel_resolve() */

	/* Filled in when it is first needed, under the module's lock. */
	gpul_signature *inferred;
	char *demangled;
	CUfunction fn;
	uint32_t max_threads, static_shared;
	_Atomic uint32_t dynamic_allowed; /* bytes of dynamic shared memory that a launch may use */
	atomic_bool resolved;             /* .fn, .max_threads and .static_shared are set */
};

struct gpul_module {
	const gpul_driver *drv;
	CUlibrary library;
	gpul_ptx_module *ptx;    /* the module's PTX; NULL: machine code */
	gpul_kernel_table table; /* the kernels of machine code; else empty */
	char *beside_text;       /* with machine code: PTX of the same source, not parsed yet (beside.c); NULL: none */
	gpul_ptx_module *beside; /* beside_text, parsed; NULL: none */
	char **variables;        /* with machine code: names of variables of at least 8 bytes; owned */
	size_t n_variables;
	gpul_kernel *kernels;
	size_t n_kernels;
	gpul_limits limits;
	pthread_mutex_t lock;
};

/* Read the launch limits of a device. */
gpul_status gpul_limits_read(const gpul_driver *drv, CUdevice device, gpul_limits *out, gpul_error *err);

/* Read the function and the limits that a launch of k needs from the driver, at the first call only. */
gpul_status gpul_kernel_resolve(gpul_kernel *k, gpul_error *err);

/* Set k's function, and read its limits for block size and shared memory.  Call it under the lock, or before other threads use k. */
gpul_status gpul_kernel_bind(gpul_kernel *k, CUfunction fn, gpul_error *err);

/* Set k->declared to the parameter sizes that the driver reports for fn.  k->name must be set. */
gpul_status gpul_kernel_describe(gpul_kernel *k, CUfunction fn, gpul_error *err);

/* Return the demangled name, or the mangled name if it cannot be demangled. */
const char *gpul_kernel_demangled_locked(gpul_kernel *k);

/* Code that is ready for the driver. */
typedef struct gpul_code {
	gpul_image_kind kind; /* only PTX or CUBIN */
	const void *bytes;    /* PTX ends in NUL, because cuLibraryLoadData gets no size */
	size_t n_bytes;       /* without the NUL at the end of PTX */
	const char *name;     /* for messages: the file that contains the code */
	const char *options;  /* for PTX: ptxas options, options_bytes long; NULL: use the options in the first line of the PTX */
	size_t options_bytes;
} gpul_code;

/* Create a module without code for options->device; release it with gpul_module_unload(). */
gpul_status gpul_module_create(const gpul_driver *drv, const gpul_load_options *options, gpul_module **out, gpul_error *err);
/* Load code into the module and list its kernels.  code is not needed afterwards. */
gpul_status gpul_module_fill(gpul_module *m, const gpul_code *code, const gpul_load_options *options, gpul_error *err);

/* Load PTX into m->library; a failure is explained from the JIT's log. */
gpul_status gpul_jit_load(gpul_module *m, const gpul_code *code, const gpul_load_options *options, gpul_error *err);

/* Load a cubin into m->library and list its kernels. */
gpul_status gpul_machine_code_load(gpul_module *m, const gpul_code *code, gpul_error *err);

/* Read the names of a cubin's variables into m, for gpul_function_pointer(). */
gpul_status gpul_variables_read(gpul_module *m, const gpul_code *code, gpul_error *err);

/* Keep the PTX in the same unit (fatbin) as a loaded cubin, if there is any. */
void gpul_beside_keep(gpul_module *m, const gpul_images *images, const gpul_image *image);
/* Infer the signature of a kernel from the PTX that gpul_beside_keep() kept; NULL: none.  Call it under the module's lock. */
gpul_signature *gpul_beside_signature(const gpul_kernel *k);

/* Create the signature of a kernel without PTX: parameter sizes, and the types in its C++ name; NULL: out of memory. */
gpul_signature *gpul_signature_of_name(const gpul_kernel *k, const char *demangled);

#endif
