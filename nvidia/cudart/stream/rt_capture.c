/* rt_capture.c — queries and changes the capture of a stream as a graph.
 *
 * Compiled for CUDA 12 and for CUDA 13 (rt_abi_internal.h), each a second time for per-thread default streams (rt_runtime_internal.h).
 * Source: CUDA Runtime API, Stream Management. */
#include "nvidia/cudart/rt_abi_internal.h"

_Static_assert((int)cudaStreamCaptureModeRelaxed == (int)CU_STREAM_CAPTURE_MODE_RELAXED &&
		       (int)cudaStreamCaptureStatusInvalidated == (int)CU_STREAM_CAPTURE_STATUS_INVALIDATED &&
		       (int)cudaStreamSetCaptureDependencies == (int)CU_STREAM_SET_CAPTURE_DEPENDENCIES &&
		       sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData),
	       "numbers and structures of both interfaces are the same");

/* The results of a capture query; a pointer is NULL if the caller does not need the value. */
struct answer {
	unsigned long long *id;
	cudaGraph_t *graph;
	const cudaGraphNode_t **dependencies;
	const cudaGraphEdgeData **edges;
	size_t *n_dependencies;
};

static cudaError_t get_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, struct answer a)
{
	const gpul_driver *drv;
	CUstreamCaptureStatus s = CU_STREAM_CAPTURE_STATUS_NONE;
	const CUgraphEdgeData *edges = NULL;
	cuuint64_t id = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (!status)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the status is NULL");
	if (e || (e = gpul_rt_cu(drv, cuStreamGetCaptureInfo_v3(gpul_rt_stream(stream), &s, &id, a.graph, a.dependencies,
								a.edges ? &edges : NULL, a.n_dependencies))))
		return e;
	*status = (enum cudaStreamCaptureStatus)s;
	if (a.id)
		*a.id = id;
	if (a.edges)
		*a.edges = (const cudaGraphEdgeData *)(const void *)edges;
	return cudaSuccess;
}

#if GPUL_RT_ABI < 13
#define INFO_WITH_EDGES "cudaStreamGetCaptureInfo_v3" GPUL_RT_PTSZ
#else
#define INFO_WITH_EDGES "cudaStreamGetCaptureInfo" GPUL_RT_PTSZ
#endif

GPUL_RT_DECLARE(INFO_WITH_EDGES, gpul_rt_capture_info,
		(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
		 const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *n_dependencies))
cudaError_t gpul_rt_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
				 const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *n_dependencies)
{
	return get_info(stream, status, (struct answer){ id, graph, dependencies, edges, n_dependencies });
}

GPUL_RT_FORWARD_AS(GPUL_RT_NEW_PTSZ("cudaStreamUpdateCaptureDependencies"), gpul_rt_update_capture,
		   (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t n, unsigned int flags),
		   cuStreamUpdateCaptureDependencies_v2(gpul_rt_stream(stream), nodes, (const CUgraphEdgeData *)(const void *)edges, n,
							flags))

#if GPUL_RT_ABI < 13
GPUL_RT_DECLARE("cudaStreamGetCaptureInfo_v2" GPUL_RT_PTSZ, gpul_rt_capture_info_2,
		(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
		 const cudaGraphNode_t **dependencies, size_t *n_dependencies))
cudaError_t gpul_rt_capture_info_2(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
				   const cudaGraphNode_t **dependencies, size_t *n_dependencies)
{
	return get_info(stream, status, (struct answer){ id, graph, dependencies, NULL, n_dependencies });
}

GPUL_RT_DECLARE(GPUL_RT_OLD_PTSZ("cudaStreamGetCaptureInfo"), gpul_rt_capture_info_1,
		(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id))
cudaError_t gpul_rt_capture_info_1(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id)
{
	return get_info(stream, status, (struct answer){ id, NULL, NULL, NULL, NULL });
}

GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaStreamUpdateCaptureDependencies"), gpul_rt_update_plain_capture,
		   (cudaStream_t stream, cudaGraphNode_t *nodes, size_t n, unsigned int flags),
		   cuStreamUpdateCaptureDependencies_v2(gpul_rt_stream(stream), nodes, NULL, n, flags))
#endif
