/* cu_older_cuda_internal.h — calls of CUDA 13.0 that an older <cuda.h> does not declare.
 *
 * They are declared here, so that the driver exports the same calls with every toolkit from 12.4 on. */
#ifndef GPULOAD_SOFTCUDA_API_BASE_CU_OLDER_CUDA_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_BASE_CU_OLDER_CUDA_INTERNAL_H

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

/* <cuda.h> has only macros with these two names, which call cuGetProcAddress in programs that use per-thread default streams. */
CUresult cuGetProcAddress_ptsz(const char *name, void **out, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2_ptsz(const char *name, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status);
CUresult cuProfilerStart(void); /* declared in cudaProfiler.h, which some toolkits lack */
CUresult cuProfilerStop(void);

#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st {
	CUexecAffinityParam *execAffinityParams;
	int numExecAffinityParams;
	void *cigParams;
} CUctxCreateParams;
CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice dev);
CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel kernel);
CUresult cuCtxRecordEvent(CUcontext ctx, CUevent event);
CUresult cuCtxWaitEvent(CUcontext ctx, CUevent event);
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *out, CUgreenCtx *green);
CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *out, CUgreenCtx *green);
#endif

#if CUDA_VERSION < 12080
CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *out);
CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *out);

/* clang-format off */
enum {
	CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
	CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
	CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
	CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE = 1,
	CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
	CU_MEMCPY_OPERAND_TYPE_ARRAY,
};
typedef struct CUmemcpyAttributes_st {
	int srcAccessOrder;
	CUmemLocation srcLocHint, dstLocHint;
	unsigned int flags;
} CUmemcpyAttributes;
typedef struct CUmemcpy3DOperand_st {
	int type;
	union {
		struct { CUdeviceptr ptr; size_t rowLength, layerHeight; CUmemLocation locHint; } ptr;
		struct { CUarray array; struct { size_t x, y, z; } offset; } array;
	} op;
} CUmemcpy3DOperand;
/* clang-format on */
typedef struct CUDA_MEMCPY3D_BATCH_OP_st {
	CUmemcpy3DOperand src, dst;
	struct {
		size_t width, height, depth;
	} extent;
	int srcAccessOrder;
	unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;
CUresult cuMemcpyBatchAsync(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n, CUmemcpyAttributes *attributes, size_t *index,
			    size_t n_attributes, size_t *failed, CUstream stream);
CUresult cuMemcpy3DBatchAsync(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags, CUstream stream);
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n, CUmemcpyAttributes *attributes, size_t *index,
				 size_t n_attributes, size_t *failed, CUstream stream);
CUresult cuMemcpy3DBatchAsync_ptsz(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags, CUstream stream);
#endif

#if CUDA_VERSION < 13000
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n, CUmemcpyAttributes *attributes, size_t *index,
			       size_t n_attributes, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream);
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n, CUmemcpyAttributes *attributes,
				    size_t *index, size_t n_attributes, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream);
CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext ctx);
CUresult cuCtxSynchronize_v2(CUcontext ctx);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr *address, size_t *bytes, size_t n, CUmemLocation *location, size_t *index, size_t n_locations,
				 unsigned long long flags, CUstream stream);
CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr *address, size_t *bytes, size_t n, CUmemLocation *location, size_t *index,
				      size_t n_locations, unsigned long long flags, CUstream stream);
CUresult cuMemDiscardBatchAsync(CUdeviceptr *address, size_t *bytes, size_t n, unsigned long long flags, CUstream stream);
CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr *address, size_t *bytes, size_t n, unsigned long long flags, CUstream stream);
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *address, size_t *bytes, size_t n, CUmemLocation *location, size_t *index,
					   size_t n_locations, unsigned long long flags, CUstream stream);
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr *address, size_t *bytes, size_t n, CUmemLocation *location, size_t *index,
						size_t n_locations, unsigned long long flags, CUstream stream);
CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool);
#endif

#endif
