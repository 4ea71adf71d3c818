/* rt_library.c — loads device code at run time, and finds its kernels and variables by name.
 *
 * A cudaKernel_t is the driver's CUkernel. It is entered into the table of stubs, so that cudaLaunchKernel and other calls accept it, too.
 * Source: CUDA Runtime API, Library Management. */
#include "nvidia/cudart/rt_runtime_internal.h"

#if CUDART_VERSION >= 12080
_Static_assert((int)cudaJitOptimizationLevel == (int)CU_JIT_OPTIMIZATION_LEVEL &&
		       (int)cudaLibraryBinaryIsPreserved == (int)CU_LIBRARY_BINARY_IS_PRESERVED,
	       "the options of both interfaces have the same numbers");

#define JIT(options)     ((CUjit_option *)(void *)(options))
#define OPTIONS(options) ((CUlibraryOption *)(void *)(options))

GPUL_RT_FORWARD(cudaLibraryLoadData,
		(cudaLibrary_t * out, const void *code, enum cudaJitOption *jit, void **jit_values, unsigned int n_jit,
		 enum cudaLibraryOption *options, void **values, unsigned int n),
		cuLibraryLoadData((CUlibrary *)out, code, JIT(jit), jit_values, n_jit, OPTIONS(options), values, n))
GPUL_RT_FORWARD(cudaLibraryLoadFromFile,
		(cudaLibrary_t * out, const char *path, enum cudaJitOption *jit, void **jit_values, unsigned int n_jit,
		 enum cudaLibraryOption *options, void **values, unsigned int n),
		cuLibraryLoadFromFile((CUlibrary *)out, path, JIT(jit), jit_values, n_jit, OPTIONS(options), values, n))
GPUL_RT_FORWARD(cudaLibraryUnload, (cudaLibrary_t library), cuLibraryUnload((CUlibrary)library))
GPUL_RT_FORWARD(cudaLibraryGetKernelCount, (unsigned int *out, cudaLibrary_t library), cuLibraryGetKernelCount(out, (CUlibrary)library))
GPUL_RT_FORWARD(cudaLibraryGetUnifiedFunction, (void **out, cudaLibrary_t library, const char *name),
		cuLibraryGetUnifiedFunction(out, (CUlibrary)library, name))

/* If the library does not have the name, the result is cudaErrorSymbolNotFound, which has the same number as the driver's error. */
cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
	const gpul_driver *drv;
	CUkernel k;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuLibraryGetKernel(&k, (CUlibrary)library, name))) || (e = gpul_rt_add_handle(k)))
		return e;
	*out = k;
	return cudaSuccess;
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *out, unsigned int n, cudaLibrary_t library)
{
	const gpul_driver *drv;
	unsigned there = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuLibraryGetKernelCount(&there, (CUlibrary)library))) ||
	    (e = gpul_rt_cu(drv, cuLibraryEnumerateKernels(out, n, (CUlibrary)library))))
		return e;
	for (unsigned i = 0; !e && i < n && i < there; i++)
		e = gpul_rt_add_handle(out[i]);
	return e;
}

cudaError_t cudaLibraryGetGlobal(void **out, size_t *bytes, cudaLibrary_t library, const char *name)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuLibraryGetGlobal(&p, bytes, (CUlibrary)library, name))))
		return e;
	if (out)
		*out = (void *)(uintptr_t)p;
	return cudaSuccess;
}

cudaError_t cudaLibraryGetManaged(void **out, size_t *bytes, cudaLibrary_t library, const char *name)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuLibraryGetManaged(&p, bytes, (CUlibrary)library, name))))
		return e;
	if (out)
		*out = (void *)(uintptr_t)p;
	return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute which, int value, int ordinal)
{
	const gpul_driver *drv;
	CUdevice device;
	CUkernel k;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_kernel(drv, kernel, cudaErrorInvalidResourceHandle, &k)) ||
	    (e = gpul_rt_cu(drv, cuDeviceGet(&device, ordinal))))
		return e;
	return gpul_rt_cu(drv, cuKernelSetAttribute((CUfunction_attribute)which, value, k, device));
}
#endif
