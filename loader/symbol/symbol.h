/* symbol.h — a kernel by its host stub, and a device function by its pointer.
 *
 *     <<<>>> in C++ calls a host function, the stub, that has the kernel's name.  Its address is how
 *     the CUDA runtime knows the kernel:
 *
 *     &VecAdd ── cudaGetFuncBySymbol (NVIDIA's cudart, or libgpuload-rt) ──> CUfunction
 *                                                                             │
 *                            gpul_kernel_launch <── gpul_kernel <── gpul_kernel_of
 *
 * gpul_kernel_by_symbol() is compiled into the program, so that it asks the runtime that the program
 * is linked with, static or shared: the one that the stub registered with. */
#ifndef GPULOAD_LOADER_SYMBOL_SYMBOL_H
#define GPULOAD_LOADER_SYMBOL_SYMBOL_H

#include <cuda_runtime_api.h>

#include "loader/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A kernel from the driver's own handle, however it was come by.
 *
 * @drv   borrowed; must outlive *out; the context that fn belongs to must be current
 * @fn    of cuModuleGetFunction, cuKernelGetFunction, cudaGetFuncBySymbol
 * @out   owned by the caller: gpul_kernel_release(); untouched on failure
 * Errors  GPUL_ECUDA the driver does not know fn; GPUL_ENOMEM
 * Threads any thread may call
 * Source  CUDA Driver API: cuFuncGetName, cuFuncGetParamInfo */
gpul_status gpul_kernel_of(const gpul_driver *drv, CUfunction fn, gpul_kernel **out, gpul_error *err);
/** NULL is fine; only for kernels of gpul_kernel_of() and gpul_kernel_by_symbol(). */
void gpul_kernel_release(gpul_kernel *k);

/** Why the runtime does not know a stub, as an error: the pitfalls of host stubs, told apart as far
 * as can be seen from here.
 *
 * @stub          as it was asked for
 * @runtime_error  what cudaGetFuncBySymbol returned
 * @name           of that error
 * Errors  GPUL_EINVAL always
 * Threads any thread may call
 * Source  CUDA Runtime API: cudaGetFuncBySymbol */
gpul_status gpul_symbol_explain(const void *stub, int runtime_error, const char *name, gpul_error *err);

/** The kernel behind a host stub.
 *
 * @drv   borrowed; the driver that the runtime uses; must outlive *out
 * @stub  the address of a __global__ function as host code sees it
 * @out   owned by the caller: gpul_kernel_release(); untouched on failure
 * Errors  GPUL_EINVAL the runtime knows no kernel for it: why, and what to do; GPUL_ECUDA
 * Threads any thread may call
 * Source  CUDA Runtime API: cudaGetFuncBySymbol */
static inline gpul_status gpul_kernel_by_symbol(const gpul_driver *drv, const void *stub,
						gpul_kernel **out, gpul_error *err)
{
	cudaFunction_t fn = NULL;
	cudaError_t r = cudaGetFuncBySymbol(&fn, stub);

	if (r != cudaSuccess)
		return gpul_symbol_explain(stub, (int)r, cudaGetErrorName(r), err);
	return gpul_kernel_of(drv, (CUfunction)fn, out, err);
}

/** Read a device function pointer out of a __device__ or __constant__ variable of a module.
 *
 * Only kernels of the same module may be given it: in whole-program code such a pointer is a number
 * that means something else, or nothing, in another module.
 *
 * @m      borrowed; its context must be current
 * @name   of the variable: mangled, or as in C++
 * @index  element, for a table; 0 for a single pointer
 * @out    set to the pointer, 8 bytes as a kernel takes them
 * Errors  GPUL_EINVAL no such variable (near names are offered), index beyond its end; GPUL_EFORMAT
 *         the element is 0: nothing was stored there; GPUL_ECUDA
 * Threads any thread may call
 * Source  CUDA C++ Programming Guide, Function Pointers; cuLibraryGetGlobal */
gpul_status gpul_function_pointer(const gpul_module *m, const char *name, size_t index, uint64_t *out,
				  gpul_error *err);

/** The function that an element was initialised with, mangled; for showing.
 *
 * *is_kernel is set with it: a __global__ function, which device code can launch but not call.
 * Borrowed from the module.  NULL: machine code does not tell, or no function was given there. */
const char *gpul_function_pointer_target(const gpul_module *m, const char *name, size_t index,
					 bool *is_kernel);

#ifdef __cplusplus
}
#endif

#endif
