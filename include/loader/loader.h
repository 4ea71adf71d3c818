/* loader.h — loads files into modules, finds kernels in them, and launches the kernels.
 *
 *     file ── gpul_module_load_file ──> module ── gpul_kernel_find ──> kernel
 *          kernel ── gpul_kernel_signature: its parameters ── gpul_kernel_launch
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
 * content, or CUDA C++, recognised by its name (.cu).
 *
 * The image is chosen as the driver would (select.h); relocatable code is linked (link.h).  A module
 * of machine code has no PTX.  Its signatures are inferred from PTX for other devices in the same
 * file; without such PTX, they have only the sizes, and the types that the C++ names show.
 *
 * @drv      borrowed; must outlive *out; a context must be current (see driver/context.h)
 * @path     the file
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  GPUL_ESYS cannot be read (native = errno); GPUL_EFORMAT empty, neither PTX nor CUDA C++ nor machine code, or an error in
 *         PTX or CUDA C++ (the text has its line); GPUL_EUNSUPPORTED machine code that this driver cannot run, or CUDA C++ without
 *         NVRTC; GPUL_ECUDA the driver refused the code (the text has the line of the PTX)
 * Source  CUDA Driver API, Library Management: cuLibraryLoadData */
gpul_status gpul_module_load_file(const gpul_driver *drv, const char *path, const gpul_load_options *options, gpul_module **out,
				  gpul_error *err);

/** Load several files as one program: their relocatable code, including LTO code, is linked.
 *
 * With n == 1 it does the same as gpul_module_load_file().
 *
 * @drv      borrowed; must outlive *out; a context must be current
 * @paths    array of n paths
 * @n        at least 1
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  those of gpul_module_load_file(); GPUL_EUNSUPPORTED no image for this device: the text
 *         lists the images that exist, and gives the option of nvcc that adds one
 * Source  nvJitLink documentation; cuLibraryLoadData */
gpul_status gpul_module_load_files(const gpul_driver *drv, const char *const *paths, size_t n, const gpul_load_options *options,
				   gpul_module **out, gpul_error *err);

/** Load sources (loader/image/source.h) as one program, without opening files.
 *
 * @drv      borrowed; must outlive *out; a context must be current
 * @sources  array of n sources, whose images are listed at the first use; not needed after the call
 * @n        at least 1
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  those of gpul_module_load_file(), except those of opening a file
 * Threads any thread that the sources belong to
 * Source  nvJitLink documentation; cuLibraryLoadData */
gpul_status gpul_module_load_sources(const gpul_driver *drv, gpul_source *const *sources, size_t n, const gpul_load_options *options,
				     gpul_module **out, gpul_error *err);

/** Load PTX from memory.
 *
 * @drv         borrowed; must outlive *out; a context must be current
 * @text        PTX; need not end with a NUL; not used after the call
 * @text_bytes  its length in bytes
 * @name        for messages: a file name, or a description of the text
 * @options     NULL: defaults
 * @out         owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  GPUL_EFORMAT empty, or an error in the PTX; GPUL_ECUDA the driver refused the code; GPUL_ENOMEM
 * Source  CUDA Driver API, Library Management: cuLibraryLoadData */
gpul_status gpul_module_load_ptx(const gpul_driver *drv, const char *text, size_t text_bytes, const char *name,
				 const gpul_load_options *options, gpul_module **out, gpul_error *err);
void gpul_module_unload(gpul_module *m); /* accepts NULL; cannot fail */

size_t gpul_module_n_kernels(const gpul_module *m);
/** Return kernel i < gpul_module_n_kernels(), in the order of the file; borrowed from m. */
const gpul_kernel *gpul_module_kernel(const gpul_module *m, size_t i);
/** Return the PTX of the module, as read or as compiled by NVRTC; borrowed.  NULL: the module is machine code. */
const gpul_ptx_module *gpul_module_ptx(const gpul_module *m);

/** Find a kernel by its mangled name, or by its demangled name, with or without parameters and template arguments.
 *
 * @m     borrowed
 * @name  NULL: the only kernel of the module
 * @out   borrowed from m; untouched on failure
 * Errors  GPUL_EINVAL no such kernel: the text suggests a similar name or lists the kernels; NULL
 *         with several kernels, or a name that matches several: the text lists them */
gpul_status gpul_kernel_find(const gpul_module *m, const char *name, const gpul_kernel **out, gpul_error *err);
/** Return the mangled name; borrowed from k. */
const char *gpul_kernel_name(const gpul_kernel *k);
/** Return the demangled name, "vecadd(double*, double*, double*, int)"; the name itself if it is not
 * mangled, or if this machine has no C++ runtime to demangle it.  Borrowed from k. */
const char *gpul_kernel_demangled(const gpul_kernel *k);
/** Return the parameters of k (signature.h), inferred at the first call; any thread.  Borrowed from
 * k; never NULL, but incomplete if memory is exhausted or k is machine code. */
const gpul_signature *gpul_kernel_signature(const gpul_kernel *k);
/** Return the function of k in gpul_module_ptx(); NULL: k is machine code. */
const gpul_ptx_func *gpul_kernel_ptx(const gpul_kernel *k);

/** Prepare a kernel for its first launch: load its code onto the device and read its limits.
 *
 * NVIDIA's driver loads code lazily, so call this before a first launch that is timed or must be fast.
 *
 * @k     borrowed
 * Errors  GPUL_ECUDA
 * Threads any thread may call with the context current
 * Source  CUDA C++ Programming Guide, Lazy Loading; cuKernelGetFunction */
gpul_status gpul_kernel_prepare(const gpul_kernel *k, gpul_error *err);

/** Get the driver's handle of a kernel, for driver calls that gpuload does not wrap.
 *
 * @k    borrowed
 * @out  belongs to the kernel's module; untouched on failure
 * Errors  GPUL_ECUDA
 * Threads any thread may call with the context current
 * Source  CUDA Driver API: cuKernelGetFunction */
gpul_status gpul_kernel_function(const gpul_kernel *k, CUfunction *out, gpul_error *err);

/* Makes the arguments of gpul_kernel_launch() from 1 to 16 variables, whose types must be those of the kernel's parameters:
 *
 *     gpul_kernel_launch(kernel, &config, GPUL_ARGS(x, y, n), &err) */
#define GPUL_ARGS(...) \
	(void *[]){ GPUL_ARGS_EACH(GPUL_ARGS_ADDRESS, __VA_ARGS__) }, (const size_t[]){ GPUL_ARGS_EACH(GPUL_ARGS_BYTES, __VA_ARGS__) }, \
		sizeof(const size_t[]){ GPUL_ARGS_EACH(GPUL_ARGS_BYTES, __VA_ARGS__) } / sizeof(size_t)
#define GPUL_ARGS_ADDRESS(x) (void *)&(x)
#define GPUL_ARGS_BYTES(x)   sizeof(x)
#define GPUL_ARGS_EACH(f, ...) \
	GPUL_ARGS_PICK(__VA_ARGS__, GPUL_ARGS_16, GPUL_ARGS_15, GPUL_ARGS_14, GPUL_ARGS_13, GPUL_ARGS_12, GPUL_ARGS_11, GPUL_ARGS_10, \
		       GPUL_ARGS_9, GPUL_ARGS_8, GPUL_ARGS_7, GPUL_ARGS_6, GPUL_ARGS_5, GPUL_ARGS_4, GPUL_ARGS_3, GPUL_ARGS_2, \
		       GPUL_ARGS_1, unused)(f, __VA_ARGS__)
#define GPUL_ARGS_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, name, ...) name
#define GPUL_ARGS_1(f, x)                                                         f(x)
#define GPUL_ARGS_2(f, x, ...)                                                    f(x), GPUL_ARGS_1(f, __VA_ARGS__)
#define GPUL_ARGS_3(f, x, ...)                                                    f(x), GPUL_ARGS_2(f, __VA_ARGS__)
#define GPUL_ARGS_4(f, x, ...)                                                    f(x), GPUL_ARGS_3(f, __VA_ARGS__)
#define GPUL_ARGS_5(f, x, ...)                                                    f(x), GPUL_ARGS_4(f, __VA_ARGS__)
#define GPUL_ARGS_6(f, x, ...)                                                    f(x), GPUL_ARGS_5(f, __VA_ARGS__)
#define GPUL_ARGS_7(f, x, ...)                                                    f(x), GPUL_ARGS_6(f, __VA_ARGS__)
#define GPUL_ARGS_8(f, x, ...)                                                    f(x), GPUL_ARGS_7(f, __VA_ARGS__)
#define GPUL_ARGS_9(f, x, ...)                                                    f(x), GPUL_ARGS_8(f, __VA_ARGS__)
#define GPUL_ARGS_10(f, x, ...)                                                   f(x), GPUL_ARGS_9(f, __VA_ARGS__)
#define GPUL_ARGS_11(f, x, ...)                                                   f(x), GPUL_ARGS_10(f, __VA_ARGS__)
#define GPUL_ARGS_12(f, x, ...)                                                   f(x), GPUL_ARGS_11(f, __VA_ARGS__)
#define GPUL_ARGS_13(f, x, ...)                                                   f(x), GPUL_ARGS_12(f, __VA_ARGS__)
#define GPUL_ARGS_14(f, x, ...)                                                   f(x), GPUL_ARGS_13(f, __VA_ARGS__)
#define GPUL_ARGS_15(f, x, ...)                                                   f(x), GPUL_ARGS_14(f, __VA_ARGS__)
#define GPUL_ARGS_16(f, x, ...)                                                   f(x), GPUL_ARGS_15(f, __VA_ARGS__)

typedef struct gpul_launch_config {
	uint32_t grid[3], block[3]; /* blocks, and threads of a block, in x, y and z; 0 in y or z means 1 */
	uint32_t shared_bytes;      /* dynamic shared memory of a block */
	CUstream stream;            /* NULL: the default stream */
	bool cooperative;
} gpul_launch_config;

/** Launch after checking argument count and sizes, block and grid, and shared memory.
 *
 * If the launch needs more than 48 KB of shared memory, it is allowed with cuFuncSetAttribute, up to the limit
 * of the device.  Limits are read at a kernel's first launch; later launches are one driver call each.
 *
 * @k           borrowed
 * @config      { .grid = { blocks }, .block = { threads } } is a usual launch; other members 0
 * @args        n_args pointers: args[i] points to a value of arg_bytes[i] bytes
 * @arg_bytes   sizes in bytes; each must equal the parameter's
 * @n_args      number of arguments.  GPUL_ARGS(x, y, n) makes these three from variables
 * Errors  GPUL_EINVAL a limit is exceeded, or an argument is wrong (the text has the signature); GPUL_ECUDA
 * Threads any thread may call with the context current
 * Source  CUDA Driver API, cuLaunchKernel, cuFuncSetAttribute; CUDA C++ Programming Guide, Compute Capabilities */
gpul_status gpul_kernel_launch(const gpul_kernel *k, const gpul_launch_config *config, void *const *args, const size_t *arg_bytes,
			       size_t n_args, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
