/* symbol.h — finds a kernel by its host stub, and a device function pointer in a variable.
 *
 *     <<<>>> in C++ calls a host function with the kernel's name, the stub.  The CUDA runtime
 *     identifies the kernel by the stub's address:
 *
 *     &VecAdd ── cudaGetFuncBySymbol (NVIDIA's cudart, or libgpuload-rt) ──> CUfunction
 *                                                                             │
 *                            gpul_kernel_launch <── gpul_kernel <── gpul_kernel_of
 *
 * gpul_kernel_by_symbol() is an inline function, so that it calls the runtime that the program is
 * linked with, static or shared: the runtime that the stub is registered with. */
#ifndef GPULOAD_LOADER_SYMBOL_SYMBOL_H
#define GPULOAD_LOADER_SYMBOL_SYMBOL_H

#include <cuda_runtime_api.h>

#include "loader/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Create a kernel from a driver's function handle.
 *
 * @drv   borrowed; must outlive *out; the context that fn belongs to must be current
 * @fn    from cuModuleGetFunction, cuKernelGetFunction or cudaGetFuncBySymbol
 * @out   owned by the caller: gpul_kernel_release(); untouched on failure
 * Errors  GPUL_ECUDA the driver refuses fn; GPUL_ENOMEM
 * Source  CUDA Driver API: cuFuncGetName, cuFuncGetParamInfo */
gpul_status gpul_kernel_of(const gpul_driver *drv, CUfunction fn, gpul_kernel **out, gpul_error *err);
/** Free a kernel; accepts NULL.  Only for kernels from gpul_kernel_of() and gpul_kernel_by_symbol(). */
void gpul_kernel_release(gpul_kernel *k);

/** Explain why the runtime finds no kernel for a stub, from what this process and its files show.
 *
 * @stub           the argument of cudaGetFuncBySymbol
 * @runtime_error  the result of cudaGetFuncBySymbol
 * @name           the name of that error
 * Errors  GPUL_EINVAL always
 * Source  CUDA Runtime API: cudaGetFuncBySymbol */
gpul_status gpul_symbol_explain(const void *stub, int runtime_error, const char *name, gpul_error *err);

/** Find the kernel of a host stub.
 *
 * @drv   borrowed; the driver that the runtime uses; must outlive *out
 * @stub  the address of a __global__ function as host code sees it
 * @out   owned by the caller: gpul_kernel_release(); untouched on failure
 * Errors  GPUL_EINVAL the runtime finds no kernel for the stub: the text has the reason, and what to do; GPUL_ECUDA
 * Source  CUDA Runtime API: cudaGetFuncBySymbol */
static inline gpul_status gpul_kernel_by_symbol(const gpul_driver *drv, const void *stub, gpul_kernel **out, gpul_error *err)
{
	cudaFunction_t fn = NULL;
	cudaError_t r = cudaGetFuncBySymbol(&fn, stub);

	if (r != cudaSuccess)
		return gpul_symbol_explain(stub, (int)r, cudaGetErrorName(r), err);
	return gpul_kernel_of(drv, (CUfunction)fn, out, err);
}

/** Read a device function pointer from a __device__ or __constant__ variable of a module.
 *
 * Pass it only to kernels of the same module: in another module the same value may refer to another function, or to none.
 *
 * @m      borrowed; its context must be current
 * @name   name of the variable, mangled or as in C++
 * @index  index in an array; 0 for a single pointer
 * @out    set to the pointer, 8 bytes, as a kernel argument
 * Errors  GPUL_EINVAL no such variable (the text suggests a similar name), or index beyond its end;
 *         GPUL_EFORMAT the element is 0; GPUL_ECUDA
 * Source  CUDA C++ Programming Guide, Function Pointers; cuLibraryGetGlobal */
gpul_status gpul_function_pointer(const gpul_module *m, const char *name, size_t index, uint64_t *out, gpul_error *err);

/** Return the mangled name of the function with which an element of the variable is initialised.
 *
 * *is_kernel is set to true for a __global__ function, which device code cannot call.  Borrowed from
 * the module.  NULL: unknown (machine code), or not initialised with a function. */
const char *gpul_function_pointer_target(const gpul_module *m, const char *name, size_t index, bool *is_kernel);

#ifdef __cplusplus
}
#endif

#endif
