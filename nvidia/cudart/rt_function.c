/* rt_function.c — gets and sets attributes of kernels, and gets their handles for the driver API.
 *
 *     &stub ── cudaGetFuncBySymbol ──> CUfunction: in the current context, for any cu* call
 *          ─── cudaGetKernel ────────> CUkernel:   in the library, for every device
 *
 * Source: CUDA Runtime API, Execution Control; Interactions with the CUDA Driver
 * API. */
#include <string.h>

#include "nvidia/cudart/rt_runtime_internal.h"

static cudaError_t find_function(const gpul_driver **drv, const void *stub, CUfunction *f)
{
	cudaError_t e = gpul_rt_enter(drv);

	return e ? e : gpul_rt_function(*drv, stub, f);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *stub)
{
	const gpul_driver *drv;
	CUfunction f = NULL;
	cudaError_t e = find_function(&drv, stub, &f);

	if (e)
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the function is NULL");
	*out = f;
	return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t *out, const void *stub)
{
	const gpul_driver *drv;
	CUkernel k = NULL;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_kernel(drv, stub, cudaErrorInvalidDeviceFunction, &k)))
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the kernel is NULL");
	*out = k;
	return cudaSuccess;
}

static cudaError_t get_attribute(const gpul_driver *drv, CUfunction f, CUfunction_attribute which, int *value)
{
	return gpul_rt_cu(drv, cuFuncGetAttribute(value, which, f));
}

static cudaError_t get_size_attribute(const gpul_driver *drv, CUfunction f, CUfunction_attribute which, size_t *value)
{
	int n = 0;
	cudaError_t e = get_attribute(drv, f, which, &n);

	*value = (size_t)(unsigned)n;
	return e;
}

/* Get the attributes that exist since sm_90; they remain 0 if the driver does not support them. */
static void get_cluster_attributes(const gpul_driver *drv, CUfunction f, struct cudaFuncAttributes *a)
{
	(void)drv->cuFuncGetAttribute(&a->clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, f);
	(void)drv->cuFuncGetAttribute(&a->requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, f);
	(void)drv->cuFuncGetAttribute(&a->requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, f);
	(void)drv->cuFuncGetAttribute(&a->requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, f);
	(void)drv->cuFuncGetAttribute(&a->clusterSchedulingPolicyPreference, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, f);
	(void)drv->cuFuncGetAttribute(&a->nonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, f);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *stub)
{
	struct cudaFuncAttributes a;
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_function(&drv, stub, &f);

	memset(&a, 0, sizeof a);
	if (e || (e = get_size_attribute(drv, f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &a.sharedSizeBytes)) ||
	    (e = get_size_attribute(drv, f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &a.constSizeBytes)) ||
	    (e = get_size_attribute(drv, f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &a.localSizeBytes)) ||
	    (e = get_attribute(drv, f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &a.maxThreadsPerBlock)) ||
	    (e = get_attribute(drv, f, CU_FUNC_ATTRIBUTE_NUM_REGS, &a.numRegs)) ||
	    (e = get_attribute(drv, f, CU_FUNC_ATTRIBUTE_PTX_VERSION, &a.ptxVersion)) ||
	    (e = get_attribute(drv, f, CU_FUNC_ATTRIBUTE_BINARY_VERSION, &a.binaryVersion)) ||
	    (e = get_attribute(drv, f, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &a.cacheModeCA)) ||
	    (e = get_attribute(drv, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &a.maxDynamicSharedSizeBytes)) ||
	    (e = get_attribute(drv, f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &a.preferredShmemCarveout)))
		return e;
	get_cluster_attributes(drv, f, &a);
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the attributes is NULL");
	*out = a;
	return cudaSuccess;
}

_Static_assert((int)cudaFuncAttributeMaxDynamicSharedMemorySize == (int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
		       (int)cudaFuncAttributeNonPortableClusterSizeAllowed == (int)CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
	       "a cudaFuncAttribute has the number of its CUfunction_attribute");

cudaError_t cudaFuncSetAttribute(const void *stub, enum cudaFuncAttribute which, int value)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_function(&drv, stub, &f);

	if (e)
		return e;
	return gpul_rt_cu(drv, cuFuncSetAttribute(f, (CUfunction_attribute)which, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *stub, enum cudaFuncCache config)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_function(&drv, stub, &f);

	return e ? e : gpul_rt_cu(drv, cuFuncSetCacheConfig(f, (CUfunc_cache)config));
}

cudaError_t cudaFuncGetName(const char **name, const void *stub)
{
	const gpul_driver *drv;
	CUkernel k;
	cudaError_t e = gpul_rt_enter(&drv);

	if (!e)
		e = gpul_rt_kernel(drv, stub, cudaErrorInvalidDeviceFunction, &k);
	return e ? e : gpul_rt_cu(drv, cuKernelGetName(name, k));
}

cudaError_t cudaFuncGetParamInfo(const void *stub, size_t index, size_t *offset, size_t *bytes)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_function(&drv, stub, &f);

	return e ? e : gpul_rt_cu(drv, cuFuncGetParamInfo(f, index, offset, bytes));
}

/* Does nothing: the bank size of shared memory is fixed on all devices that CUDA 12 or later supports. */
cudaError_t cudaFuncSetSharedMemConfig(const void *stub, enum cudaSharedMemConfig config);
cudaError_t cudaFuncSetSharedMemConfig(const void *stub, enum cudaSharedMemConfig config)
{
	const gpul_driver *drv;
	CUfunction f;

	(void)config;
	return find_function(&drv, stub, &f);
}
