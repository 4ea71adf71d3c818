/* per_thread.c — the calls of programs built with CUDA_API_PER_THREAD_DEFAULT_STREAM.
 *
 * Such a program's calls end in _ptds (no stream argument) and _ptsz (with one); there the
 * default stream is the calling thread's own instead of the legacy one.  That is the whole
 * difference. */
#include "softcuda/api/api_internal.h"

static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* ---- copies ----------------------------------------------------------------------------- */

EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes)
{
	return soft_copy(CU_STREAM_PER_THREAD, dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST,
			 bytes, WAITED_FOR);
}

EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes)
{
	return soft_copy(CU_STREAM_PER_THREAD, (uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE,
			 bytes, WAITED_FOR);
}

EXPORT CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return soft_copy(CU_STREAM_PER_THREAD, dst, SIDE_DEVICE, src, SIDE_DEVICE, bytes,
			 QUEUED);
}

EXPORT CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return soft_copy(CU_STREAM_PER_THREAD, dst, SIDE_ANY, src, SIDE_ANY, bytes, WAITED_FOR);
}

EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
				  CUcontext src_context, size_t bytes)
{
	return soft_copy_peer(CU_STREAM_PER_THREAD, dst, dst_context, src, src_context, bytes);
}

EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
				       CUcontext src_context, size_t bytes, CUstream stream)
{
	return cuMemcpyPeerAsync(dst, dst_context, src, src_context, bytes, own(stream));
}

EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *c)
{
	return soft_copy_3d_peer(CU_STREAM_PER_THREAD, c);
}

EXPORT CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *c, CUstream stream)
{
	return cuMemcpy3DPeerAsync(c, own(stream));
}

EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D_v2 *c)
{
	return soft_copy_2d(CU_STREAM_PER_THREAD, c, WAITED_FOR);
}

EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D_v2 *c)
{
	return soft_copy_2d(CU_STREAM_PER_THREAD, c, WAITED_FOR);
}

EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D_v2 *c)
{
	return soft_copy_3d(CU_STREAM_PER_THREAD, c, WAITED_FOR);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t bytes,
					  CUstream stream)
{
	return cuMemcpyHtoDAsync_v2(dst, src, bytes, own(stream));
}

EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t bytes,
					  CUstream stream)
{
	return cuMemcpyDtoHAsync_v2(dst, src, bytes, own(stream));
}

EXPORT CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
					  CUstream stream)
{
	return cuMemcpyDtoDAsync_v2(dst, src, bytes, own(stream));
}

EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
				   CUstream stream)
{
	return cuMemcpyAsync(dst, src, bytes, own(stream));
}

EXPORT CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D_v2 *c, CUstream stream)
{
	return cuMemcpy2DAsync_v2(c, own(stream));
}

EXPORT CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D_v2 *c, CUstream stream)
{
	return cuMemcpy3DAsync_v2(c, own(stream));
}

/* ---- fills ------------------------------------------------------------------------------ */

EXPORT CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char value, size_t n)
{
	return soft_fill(CU_STREAM_PER_THREAD, dst, n, 1, value, n, 1);
}

EXPORT CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short value, size_t n)
{
	return soft_fill(CU_STREAM_PER_THREAD, dst, n, 2, value, n, 1);
}

EXPORT CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned int value, size_t n)
{
	return soft_fill(CU_STREAM_PER_THREAD, dst, n, 4, value, n, 1);
}

EXPORT CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned char value,
				     size_t width, size_t height)
{
	return soft_fill(CU_STREAM_PER_THREAD, dst, pitch, 1, value, width, height);
}

EXPORT CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned short value,
				      size_t width, size_t height)
{
	return soft_fill(CU_STREAM_PER_THREAD, dst, pitch, 2, value, width, height);
}

EXPORT CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned int value,
				      size_t width, size_t height)
{
	return soft_fill(CU_STREAM_PER_THREAD, dst, pitch, 4, value, width, height);
}

EXPORT CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t n,
				     CUstream stream)
{
	return cuMemsetD8Async(dst, value, n, own(stream));
}

EXPORT CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t n,
				      CUstream stream)
{
	return cuMemsetD16Async(dst, value, n, own(stream));
}

EXPORT CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned int value, size_t n,
				      CUstream stream)
{
	return cuMemsetD32Async(dst, value, n, own(stream));
}

EXPORT CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned char value,
				       size_t width, size_t height, CUstream stream)
{
	return cuMemsetD2D8Async(dst, pitch, value, width, height, own(stream));
}

EXPORT CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned short value,
					size_t width, size_t height, CUstream stream)
{
	return cuMemsetD2D16Async(dst, pitch, value, width, height, own(stream));
}

EXPORT CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned int value,
					size_t width, size_t height, CUstream stream)
{
	return cuMemsetD2D32Async(dst, pitch, value, width, height, own(stream));
}

/* ---- memory in stream order ------------------------------------------------------------- */

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	return cuMemAllocAsync(out, bytes, own(stream));
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
					     CUstream stream)
{
	return cuMemAllocFromPoolAsync(out, bytes, pool, own(stream));
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
	return cuMemFreeAsync(address, own(stream));
}

/* ---- streams and events ----------------------------------------------------------------- */

EXPORT CUresult cuStreamQuery_ptsz(CUstream stream)
{
	return cuStreamQuery(own(stream));
}

EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	return cuStreamSynchronize(own(stream));
}

EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
	return cuStreamWaitEvent(own(stream), event, flags);
}

EXPORT CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void *user,
					 unsigned int flags)
{
	return cuStreamAddCallback(own(stream), callback, user, flags);
}

EXPORT CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned int *flags)
{
	return cuStreamGetFlags(own(stream), flags);
}

EXPORT CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority)
{
	return cuStreamGetPriority(own(stream), priority);
}

EXPORT CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *id)
{
	return cuStreamGetId(own(stream), id);
}

EXPORT CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *out)
{
	return cuStreamGetCtx(own(stream), out);
}

EXPORT CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *out)
{
	return cuStreamGetDevice(own(stream), out);
}

EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
	return cuStreamIsCapturing(own(stream), status);
}

EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	return cuEventRecord(event, own(stream));
}

EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
	return cuEventRecordWithFlags(event, own(stream), flags);
}

/* ---- launches --------------------------------------------------------------------------- */

EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void *user)
{
	return cuLaunchHostFunc(own(stream), fn, user);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int grid_x, unsigned int grid_y,
				    unsigned int grid_z, unsigned int block_x,
				    unsigned int block_y, unsigned int block_z,
				    unsigned int shared_bytes, CUstream stream, void **params,
				    void **extra)
{
	return cuLaunchKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z,
			      shared_bytes, own(stream), params, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int grid_x,
					       unsigned int grid_y, unsigned int grid_z,
					       unsigned int block_x, unsigned int block_y,
					       unsigned int block_z, unsigned int shared_bytes,
					       CUstream stream, void **params)
{
	return cuLaunchCooperativeKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z,
					 shared_bytes, own(stream), params);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
				      void **extra)
{
	CUlaunchConfig with_stream;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	with_stream = *config;
	with_stream.hStream = own(config->hStream);
	return cuLaunchKernelEx(&with_stream, f, params, extra);
}
