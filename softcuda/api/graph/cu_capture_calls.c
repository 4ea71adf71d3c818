/* cu_capture_calls.c — the calls that begin, end and query a stream's capture; stream/cu_capture.c implements the rules. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>

EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED ? CUDA_ERROR_INVALID_VALUE : soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	r = soft_capture_begin(s, mode, NULL, NULL);
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamBeginCapture(CUstream stream)
{
	return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t n,
					    CUstreamCaptureMode mode)
{
	struct node_list list = { 0 };
	struct context *ctx;
	struct stream *s;
	struct graph *g;
	CUresult r = (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED ? CUDA_ERROR_INVALID_VALUE : soft_check_edge_data(data, n);

	if (!r)
		r = soft_enter_stream(handle, &ctx, &s);
	if (r)
		return r;
	g = soft_handle_find(HANDLE_GRAPH, graph);
	r = g && !g->is_captured_now ? soft_find_nodes(g, nodes, data, n, &list) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = soft_capture_begin(s, mode, g, &list);
	soft_nodes_clear(&list);
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
	struct context *ctx;
	struct stream *s;
	struct graph *g = NULL;
	CUresult r = out ? soft_enter_stream(handle, &ctx, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = soft_capture_end(s, &g);
	*out = g ? g->handle : NULL;
	soft_unlock();
	return r;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUresult r = soft_lock_also_in_callback();

	if (r)
		return r;
	soft_unlock();
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = soft_capture_exchange_mode(*mode);
	return CUDA_SUCCESS;
}

/* ---- queries ------------------------------------------------------------------------------------------ */

static CUstreamCaptureStatus status_of(const struct stream *s)
{
	if (!s->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return s->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Find the stream of a capture query; the lock is held on success. */
static CUresult enter_query(CUstream handle, CUstreamCaptureStatus *status, struct stream **out)
{
	struct context *ctx;
	CUresult r = status ? soft_enter_stream(handle, &ctx, out) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = soft_capture_check_query(*out, false); /* the query does not invalidate the capture (cuda.h, cuStreamIsCapturing) */
	if (r)
		soft_unlock();
	else
		*status = status_of(*out);
	return r;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	struct stream *s;
	CUresult r = enter_query(stream, status, &s);

	if (!r)
		soft_unlock();
	return r;
}

/* List the nodes for which the next captured operation will wait, and the edge data of these dependencies.  The stream owns both arrays. */
static CUresult list_tips(struct stream *s, const CUgraphNode **nodes, const CUgraphEdgeData **edges)
{
	CUgraphNode *list = realloc(s->tip_handles, (s->tips.n + 1) * sizeof *list);
	CUgraphEdgeData *data;

	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->tip_handles = list;
	data = realloc(s->tip_data, (s->tips.n + 1) * sizeof *data);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->tip_data = data;
	for (size_t i = 0; i < s->tips.n; i++) {
		list[i] = s->tips.at[i]->handle;
		data[i] = s->tips.data[i];
		if (!edges && nodes && !soft_is_plain_edge(&data[i]))
			return CUDA_ERROR_LOSSY_QUERY;
	}
	if (nodes)
		*nodes = list;
	if (edges)
		*edges = data;
	return CUDA_SUCCESS;
}

/* *status is always set.  The other results are set only if the stream is capturing. */
EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
					  const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *n_nodes)
{
	struct stream *s;
	CUresult r = enter_query(stream, status, &s);

	if (r)
		return r;
	if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		if (id)
			*id = s->capture->id;
		if (graph)
			*graph = s->capture->graph->handle;
		if (nodes || edges)
			r = list_tips(s, nodes, edges);
		if (!r && n_nodes)
			*n_nodes = s->tips.n;
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
					  const CUgraphNode **nodes, size_t *n_nodes)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, n_nodes);
}

EXPORT CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

/* ---- dependencies that the program sets in a capture ----------------------------------------------------- */

EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t n,
						     unsigned int flags)
{
	struct node_list list = { 0 };
	struct context *ctx;
	struct stream *s;
	CUresult r = flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES ? CUDA_ERROR_INVALID_VALUE : soft_check_edge_data(data, n);

	if (!r)
		r = soft_enter_stream(stream, &ctx, &s);
	if (r)
		return r;
	if (s->capture)
		r = soft_find_nodes(s->capture->graph, nodes, data, n, &list);
	if (!r)
		r = soft_capture_set_tips(s, &list, flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
	soft_nodes_clear(&list);
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t n, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, n, flags);
}
