/* loader.h — from a file to a launched kernel.
 *
 *     file ── gpul_module_load_file ──> module ── gpul_kernel_find ──> kernel
 *          kernel ── gpul_kernel_signature: what it takes ── gpul_kernel_launch
 *
 * Loading goes through cuLibraryLoadData; the module owns its kernels. */
#ifndef GPULOAD_LOADER_LOADER_H
#define GPULOAD_LOADER_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "driver/driver.h"
#include "loader/choose/options.h"
#include "loader/image/source.h"
#include "loader/signature/signature.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_module gpul_module;
typedef struct gpul_kernel gpul_kernel;

/** Load a file: PTX, cubin, fatbin, host object, archive, shared library or program, recognised by
 * content, or CUDA C++, by its name (.cu).
 *
 * The image is chosen as the driver would (select.h); relocatable code is linked (link.h).  A module
 * of machine code has no PTX; its kernels' signatures are told from PTX that stands beside it in the
 * file, for other devices, else they have sizes, and types where a C++ name tells.
 *
 * @drv      borrowed; must outlive *out; a context must be current (see driver/context.h)
 * @path     the file
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  GPUL_ESYS cannot be read (native = errno); GPUL_EFORMAT empty, neither PTX nor CUDA
 *         C++ nor machine code, or PTX or CUDA C++ with an error: its line is told;
 *         GPUL_EUNSUPPORTED machine code that this driver cannot run, CUDA C++ where there is
 *         no NVRTC; GPUL_ECUDA refused by the driver: the line that the JIT complains about
 * Threads any thread may call
 * Source  CUDA Driver API, Library Management: cuLibraryLoadData */
gpul_status gpul_module_load_file(const gpul_driver *drv, const char *path,
				  const gpul_load_options *options, gpul_module **out,
				  gpul_error *err);

/** Load several files as one program: their relocatable code, LTO too, is linked.
 *
 * One file is the same as gpul_module_load_file().
 *
 * @drv      borrowed; must outlive *out; a context must be current
 * @paths    n of them
 * @n        at least 1
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  as above; GPUL_EUNSUPPORTED no image for this device: which there are, and the option of
 *         nvcc that would add it
 * Threads any thread may call
 * Source  nvJitLink documentation; cuLibraryLoadData */
gpul_status gpul_module_load_files(const gpul_driver *drv, const char *const *paths, size_t n,
				   const gpul_load_options *options, gpul_module **out,
				   gpul_error *err);

/** Load sources (loader/image/source.h) as one program: nothing is opened, what was mapped is used.
 *
 * @drv      borrowed; must outlive *out; a context must be current
 * @sources  n of them; their images are listed if they were not yet; not needed after the call
 * @n        at least 1
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  those of gpul_module_load_file(), but for opening
 * Threads any thread that the sources belong to
 * Source  nvJitLink documentation; cuLibraryLoadData */
gpul_status gpul_module_load_sources(const gpul_driver *drv, gpul_source *const *sources, size_t n,
				     const gpul_load_options *options, gpul_module **out,
				     gpul_error *err);

/** The same from memory.
 *
 * @drv         borrowed; must outlive *out; a context must be current
 * @text        PTX; need not end with a NUL; not used after the call
 * @text_bytes  its length in bytes
 * @name        for messages: a file name, or what the text is
 * @options     NULL: defaults
 * @out         owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  GPUL_EFORMAT empty, or PTX that does not parse; GPUL_ECUDA as above; GPUL_ENOMEM
 * Threads any thread may call
 * Source  CUDA Driver API, Library Management: cuLibraryLoadData */
gpul_status gpul_module_load_ptx(const gpul_driver *drv, const char *text, size_t text_bytes,
				 const char *name, const gpul_load_options *options,
				 gpul_module **out, gpul_error *err);
void gpul_module_unload(gpul_module *m); /* NULL is fine; cannot fail */

size_t gpul_module_n_kernels(const gpul_module *m);
/** Kernel i < gpul_module_n_kernels(), in the order of the file; borrowed from m. */
const gpul_kernel *gpul_module_kernel(const gpul_module *m, size_t i);
/** The PTX behind the module: as read, or as NVRTC made it.  Borrowed; NULL: machine code. */
const gpul_ptx_module *gpul_module_ptx(const gpul_module *m);

/** Find a kernel by name: exact mangled name, or the demangled name with or without parameters,
 * and of a template's instance with or without its arguments.
 *
 * @m     borrowed
 * @name  NULL: the only kernel of the module
 * @out   borrowed from m; untouched on failure
 * Errors  GPUL_EINVAL no such kernel: the text offers a near name (edit distance) or lists
 *         those there are; NULL with several kernels, or a name that means several: lists them
 * Threads any thread may call
 * Source  - */
gpul_status gpul_kernel_find(const gpul_module *m, const char *name, const gpul_kernel **out,
			     gpul_error *err);
/** The mangled name; borrowed. */
const char *gpul_kernel_name(const gpul_kernel *k);
/** "vecadd(double*, double*, double*, int)"; the name itself where it is not mangled, or where
 * there is no C++ runtime to demangle it.  Borrowed from k. */
const char *gpul_kernel_demangled(const gpul_kernel *k);
/** What k takes (signature.h), worked out when first asked for; any thread may ask.  Borrowed
 * from k; never NULL: short of memory, or for machine code, it is incomplete and says so. */
const gpul_signature *gpul_kernel_signature(const gpul_kernel *k);
/** The PTX of k in gpul_module_ptx(); NULL: machine code. */
const gpul_ptx_func *gpul_kernel_ptx(const gpul_kernel *k);

/** Do now what the first launch would do: bring the code onto the device, learn its limits.
 *
 * NVIDIA's driver loads lazily; a first launch that is timed, or that must not wait, wants this
 * before.
 *
 * @k     borrowed
 * Errors  GPUL_ECUDA
 * Threads any thread may call with the context current
 * Source  CUDA C++ Programming Guide, Lazy Loading; cuKernelGetFunction */
gpul_status gpul_kernel_prepare(const gpul_kernel *k, gpul_error *err);

/** The driver's own handle of a kernel, for calls that gpuload has no word for.
 *
 * @k    borrowed
 * @out  belongs to the kernel's module; untouched on failure
 * Errors  GPUL_ECUDA
 * Threads any thread may call with the context current
 * Source  CUDA Driver API: cuKernelGetFunction */
gpul_status gpul_kernel_function(const gpul_kernel *k, CUfunction *out, gpul_error *err);

typedef struct gpul_launch_config {
	uint32_t grid[3], block[3];
	uint32_t shared_bytes; /* dynamic */
	CUstream stream;       /* NULL: the default stream */
	bool cooperative;
} gpul_launch_config;

/** Launch after checking argument count and sizes, block and grid, and shared memory.
 *
 * More than 48 KB of shared memory is opted into where the device has it.  What needs the
 * driver is asked once a kernel; a launch is then one driver call.
 *
 * @k           borrowed
 * @config      dimensions; each at least 1
 * @args        n_args pointers, args[i] to arg_bytes[i] bytes of value
 * @arg_bytes   sizes in bytes; each must equal the parameter's
 * @n_args      number of arguments
 * Errors  GPUL_EINVAL with the limit that was broken and, for arguments, the signature;
 *         GPUL_ECUDA
 * Threads any thread may call with the context current
 * Source  CUDA Driver API, cuLaunchKernel, cuFuncSetAttribute; CUDA C++ Programming Guide,
 *         Compute Capabilities */
gpul_status gpul_kernel_launch(const gpul_kernel *k, const gpul_launch_config *config,
			       void *const *args, const size_t *arg_bytes, size_t n_args,
			       gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
