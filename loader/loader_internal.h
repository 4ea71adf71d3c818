/* loader_internal.h — what a module and its kernels are made of. */
#ifndef GPULOAD_LOADER_LOADER_INTERNAL_H
#define GPULOAD_LOADER_LOADER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "loader/demangle.h"
#include "loader/loader.h"
#include "loader/signature_internal.h"

typedef struct gpul_limits { /* of the device: asked once, when the module is loaded */
	uint32_t cc;         /* compute capability, 10 * major + minor */
	uint32_t threads, block[3], grid[3];
	uint32_t shared, shared_optin; /* bytes a block: by default; when the kernel opts in */
} gpul_limits;

struct gpul_kernel {
	gpul_module *m;
	const char *name;       /* mangled; borrowed from the PTX or the driver's library */
	const gpul_ptx_func *f; /* NULL: machine code */
	gpul_signature_owned *declared; /* sizes; NULL until resolved, for machine code */
	CUkernel handle; /* machine code: from the enumeration; else set when resolved */

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
	gpul_ptx_module *ptx; /* NULL: machine code */
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

/* Load text (PTX, NUL-terminated) into m->library; a refusal is explained from the JIT's own
 * log. */
gpul_status gpul_jit_load(gpul_module *m, const char *text, const char *name,
			  const gpul_load_options *options, gpul_error *err);

/* What a compiler had to say, line by line, to the log; NULL is fine. */
void gpul_loader_log(const char *text);

/* A finished module from machine code: kernels named by the driver. */
gpul_status gpul_module_enumerate(gpul_module *m, const char *name, gpul_error *err);

#endif
