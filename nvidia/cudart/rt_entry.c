/* rt_entry.c — finds driver functions by name, for cudaGetDriverEntryPoint.
 *
 * Compiled for CUDA 12 and for CUDA 13 (rt_abi_internal.h), each a second time for per-thread default streams (rt_runtime_internal.h).
 * Source: CUDA Runtime API, Driver Entry Point Access. */
#include "nvidia/cudart/rt_abi_internal.h"

_Static_assert((int)cudaEnableLegacyStream == (int)CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
		       (int)cudaEnablePerThreadDefaultStream == (int)CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM &&
		       (int)cudaDriverEntryPointVersionNotSufficent == (int)CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
	       "the flags and results of both interfaces have the same numbers");

static cudaError_t find_entry_point(const char *name, void **out, int version, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *answer)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

#ifdef GPUL_RT_PER_THREAD
	if (flags == cudaEnableDefault)
		flags = cudaEnablePerThreadDefaultStream;
#endif
	if (!e)
		e = gpul_rt_cu(drv, cuGetProcAddress(name, out, version, flags, &found));
	if (answer)
		*answer = (enum cudaDriverEntryPointQueryResult)found;
	return e;
}

GPUL_RT_DECLARE("cudaGetDriverEntryPoint" GPUL_RT_PTSZ, gpul_rt_entry_point,
		(const char *name, void **out, unsigned long long flags, enum cudaDriverEntryPointQueryResult *answer))
cudaError_t gpul_rt_entry_point(const char *name, void **out, unsigned long long flags, enum cudaDriverEntryPointQueryResult *answer)
{
	return find_entry_point(name, out, GPUL_RT_VERSION, flags, answer);
}

GPUL_RT_DECLARE("cudaGetDriverEntryPointByVersion" GPUL_RT_PTSZ, gpul_rt_entry_point_by_version,
		(const char *name, void **out, unsigned int version, unsigned long long flags,
		 enum cudaDriverEntryPointQueryResult *answer))
cudaError_t gpul_rt_entry_point_by_version(const char *name, void **out, unsigned int version, unsigned long long flags,
					   enum cudaDriverEntryPointQueryResult *answer)
{
	return find_entry_point(name, out, (int)version, flags, answer);
}

/* Get a private table of functions for NVIDIA's libraries: pass the call to the driver, which refuses tables that it lacks. */
#ifndef GPUL_RT_PER_THREAD
GPUL_RT_FORWARD(cudaGetExportTable, (const void **out, const cudaUUID_t *id), cuGetExportTable(out, (const CUuuid *)(const void *)id))
#endif
