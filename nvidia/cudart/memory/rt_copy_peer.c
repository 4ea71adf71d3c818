/* rt_copy_peer.c — copies memory between devices.
 *
 * These functions are not in rt_copy.c, because they have no second version for per-thread default streams. */
#include "nvidia/cudart/rt_runtime_internal.h"

static cudaError_t find_contexts(const gpul_driver **drv, int to, int from, CUcontext pair[2])
{
	cudaError_t e = gpul_rt_enter(drv);

	if (!e)
		e = gpul_rt_context(*drv, to, &pair[0]);
	return e ? e : gpul_rt_context(*drv, from, &pair[1]);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
	const gpul_driver *drv;
	CUcontext pair[2];
	cudaError_t e = find_contexts(&drv, to_device, from_device, pair);

	if (e || !bytes)
		return e;
	return gpul_rt_cu(drv, cuMemcpyPeer(gpul_rt_address(to), pair[0], gpul_rt_address(from), pair[1], bytes));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUcontext pair[2];
	cudaError_t e = find_contexts(&drv, to_device, from_device, pair);

	if (e || !bytes)
		return e;
	return gpul_rt_cu(drv,
			  cuMemcpyPeerAsync(gpul_rt_address(to), pair[0], gpul_rt_address(from), pair[1], bytes, gpul_rt_stream(stream)));
}
