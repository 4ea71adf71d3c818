/* copy_peer.c — copies between devices.
 *
 * Beside copy.c, because that one is compiled twice: NVIDIA's header has no second names for these. */
#include <stdint.h>

#include "loader/runtime/runtime_internal.h"

static CUdeviceptr address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static cudaError_t enter_pair(const gpul_driver **drv, int to, int from, CUcontext pair[2])
{
	cudaError_t e = gpul_rt_enter(drv);

	if (!e)
		e = gpul_rt_context(*drv, to, &pair[0]);
	return e ? e : gpul_rt_context(*drv, from, &pair[1]);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
			   size_t bytes)
{
	const gpul_driver *drv;
	CUcontext pair[2];
	cudaError_t e = enter_pair(&drv, to_device, from_device, pair);

	if (e || !bytes)
		return e;
	return gpul_rt_cu(drv, cuMemcpyPeer(address(to), pair[0], address(from), pair[1], bytes));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
				size_t bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUcontext pair[2];
	cudaError_t e = enter_pair(&drv, to_device, from_device, pair);

	if (e || !bytes)
		return e;
	return gpul_rt_cu(drv, cuMemcpyPeerAsync(address(to), pair[0], address(from), pair[1],
						 bytes, gpul_rt_stream(stream)));
}
