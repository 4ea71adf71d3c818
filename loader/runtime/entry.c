/* entry.c — find driver functions by name, for cudaGetDriverEntryPoint.
 *
 * Compiled twice: runtime_internal.h has the reason.
 * Source: CUDA Runtime API, Driver Entry Point Access. */
#include "loader/runtime/runtime_internal.h"

_Static_assert((int)cudaEnableLegacyStream == (int)CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
		       (int)cudaEnablePerThreadDefaultStream ==
			       (int)CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM &&
		       (int)cudaDriverEntryPointVersionNotSufficent ==
			       (int)CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
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

cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *answer)
{
	return find_entry_point(name, out, CUDART_VERSION, flags, answer);
}

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned int version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *answer)
{
	return find_entry_point(name, out, (int)version, flags, answer);
}
#endif
