/* rt_old.c — defines calls that CUDA 13 removed; only libcudart.so.12 has them.
 *
 * Source: CUDA Runtime API of CUDA 12, Thread Management [deprecated]. */
#include "nvidia/cudart/rt_runtime_internal.h"

cudaError_t cudaThreadExit(void);
cudaError_t cudaThreadExit(void)
{
	return cudaDeviceReset();
}

cudaError_t cudaThreadSynchronize(void);
cudaError_t cudaThreadSynchronize(void)
{
	return cudaDeviceSynchronize();
}

cudaError_t cudaThreadSetLimit(enum cudaLimit which, size_t value);
cudaError_t cudaThreadSetLimit(enum cudaLimit which, size_t value)
{
	return cudaDeviceSetLimit(which, value);
}

cudaError_t cudaThreadGetLimit(size_t *value, enum cudaLimit which);
cudaError_t cudaThreadGetLimit(size_t *value, enum cudaLimit which)
{
	return cudaDeviceGetLimit(value, which);
}

cudaError_t cudaThreadGetCacheConfig(enum cudaFuncCache *out);
cudaError_t cudaThreadGetCacheConfig(enum cudaFuncCache *out)
{
	return cudaDeviceGetCacheConfig(out);
}

cudaError_t cudaThreadSetCacheConfig(enum cudaFuncCache config);
cudaError_t cudaThreadSetCacheConfig(enum cudaFuncCache config)
{
	return cudaDeviceSetCacheConfig(config);
}

/* Does nothing: the call converted doubles for devices without double precision, which are not supported any more. */
cudaError_t cudaSetDoubleForDevice(double *value);
cudaError_t cudaSetDoubleForDevice(double *value)
{
	(void)value;
	return cudaSuccess;
}

cudaError_t cudaSetDoubleForHost(double *value);
cudaError_t cudaSetDoubleForHost(double *value)
{
	(void)value;
	return cudaSuccess;
}
