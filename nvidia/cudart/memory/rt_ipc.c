/* rt_ipc.c — shares device memory and events with other processes.
 *
 * The handles are the 64-byte handles of the driver, so programs with NVIDIA's runtime, or without a runtime, can
 * open them on the same driver.
 *
 * Source: CUDA Runtime API, Device Management, cudaIpc*. */
#include <string.h>

#include "nvidia/cudart/rt_runtime_internal.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle) && sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle) &&
		       cudaIpcMemLazyEnablePeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS,
	       "the handles and flags of both interfaces are equal");

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *memory)
{
	const gpul_driver *drv;
	CUipcMemHandle h;
	cudaError_t e = gpul_rt_enter(&drv);

	if (!e)
		e = gpul_rt_cu(drv, cuIpcGetMemHandle(&h, gpul_rt_address(memory)));
	if (!e)
		memcpy(out, &h, sizeof h);
	return e;
}

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned int flags)
{
	const gpul_driver *drv;
	CUdeviceptr memory;
	CUipcMemHandle h;
	cudaError_t e = gpul_rt_enter(&drv);

	memcpy(&h, &handle, sizeof h);
	if (!e)
		e = gpul_rt_cu(drv, cuIpcOpenMemHandle(&memory, h, flags));
	if (!e)
		*out = (void *)(uintptr_t)memory;
	return e;
}

cudaError_t cudaIpcCloseMemHandle(void *memory)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuIpcCloseMemHandle(gpul_rt_address(memory)));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event)
{
	const gpul_driver *drv;
	CUipcEventHandle h;
	cudaError_t e = gpul_rt_enter(&drv);

	if (!e)
		e = gpul_rt_cu(drv, cuIpcGetEventHandle(&h, event));
	if (!e)
		memcpy(out, &h, sizeof h);
	return e;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle)
{
	const gpul_driver *drv;
	CUipcEventHandle h;
	cudaError_t e = gpul_rt_enter(&drv);

	memcpy(&h, &handle, sizeof h);
	return e ? e : gpul_rt_cu(drv, cuIpcOpenEventHandle(out, h));
}
