/* rt_begin.c — begins and ends the capture of a stream.  Queries about a capture are in rt_capture.c.
 *
 * Compiled a second time for per-thread default streams (rt_runtime_internal.h). */
#include "nvidia/cudart/rt_runtime_internal.h"

GPUL_RT_FORWARD(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
		cuStreamBeginCapture(gpul_rt_stream(stream), (CUstreamCaptureMode)mode))
GPUL_RT_FORWARD(cudaStreamBeginCaptureToGraph,
		(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t n,
		 enum cudaStreamCaptureMode mode),
		cuStreamBeginCaptureToGraph(gpul_rt_stream(stream), graph, nodes, (const CUgraphEdgeData *)(const void *)edges, n,
					    (CUstreamCaptureMode)mode))
GPUL_RT_FORWARD(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
		cuStreamIsCapturing(gpul_rt_stream(stream), (CUstreamCaptureStatus *)(void *)status))

/* End a capture.  If it captures to an existing graph, `graph` may be NULL. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	const gpul_driver *drv;
	CUgraph captured = NULL;
	cudaError_t e = gpul_rt_enter(&drv);

	if (!e)
		e = gpul_rt_cu(drv, cuStreamEndCapture(gpul_rt_stream(stream), &captured));
	if (graph)
		*graph = captured; /* NULL after a failure */
	return e;
}

#ifndef GPUL_RT_PER_THREAD
GPUL_RT_FORWARD(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
		cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)(void *)mode))
#endif
