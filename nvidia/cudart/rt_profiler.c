/* rt_profiler.c — starts and stops the profiler.
 *
 * Some toolkits lack the header that declares the driver's functions, so these are looked up by
 * name.
 * Source: CUDA Runtime API, Profiler Control. */
#include "nvidia/cudart/rt_runtime_internal.h"

static cudaError_t call_driver(const char *name)
{
	CUdriverProcAddressQueryResult found;
	const gpul_driver *drv;
	CUresult(CUDAAPI * function)(void);
	void *p = NULL;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuGetProcAddress(name, &p, CUDA_VERSION, 0, &found))))
		return e;
	if (!p)
		return gpul_rt_fail(cudaErrorNotSupported, "this driver does not have the function %s", name);
	__builtin_memcpy(&function, &p, sizeof function);
	return gpul_rt_record(drv, function(), name);
}

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStart(void)
{
	return call_driver("cuProfilerStart");
}

cudaError_t cudaProfilerStop(void);
cudaError_t cudaProfilerStop(void)
{
	return call_driver("cuProfilerStop");
}
