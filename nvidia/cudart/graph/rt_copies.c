/* rt_copies.c — graph nodes that copy and fill memory.
 *
 * The runtime has calls for a 3D copy, for contiguous bytes (1D), and for device variables (ToSymbol, FromSymbol); each exists in
 * three forms: add a node, change a node, change a node of an executable graph.  All become a CUDA_MEMCPY3D.
 * Source: CUDA Runtime API, Graph Management. */
#include "nvidia/cudart/graph/rt_graph_internal.h"
#include "nvidia/cudart/memory/rt_memory_internal.h"

#define NEW_NODE cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n_after

/* The node that gets the parameters of a copy: a new node (out), a node of a graph, or a node of an executable graph (exec). */
struct target {
	cudaGraphNode_t *out;
	cudaGraph_t graph;
	const cudaGraphNode_t *after;
	size_t n_after;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
};

#define ADDED           ((struct target){ .out = out, .graph = graph, .after = after, .n_after = n_after })
#define CHANGED         ((struct target){ .node = node })
#define CHANGED_IN_EXEC ((struct target){ .exec = exec, .node = node })

static cudaError_t set_copy(struct target t, const struct cudaMemcpy3DParms *p)
{
	const gpul_driver *drv;
	CUcontext context = NULL;
	CUDA_MEMCPY3D c;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_describe_copy(drv, p, &c)) || (e = gpul_rt_cu(drv, cuCtxGetCurrent(&context))))
		return e;
	if (t.out)
		return gpul_rt_cu(drv, cuGraphAddMemcpyNode(t.out, t.graph, t.after, t.n_after, &c, context));
	if (t.exec)
		return gpul_rt_cu(drv, cuGraphExecMemcpyNodeSetParams(t.exec, t.node, &c, context));
	return gpul_rt_cu(drv, cuGraphMemcpyNodeSetParams(t.node, &c));
}

cudaError_t cudaGraphAddMemcpyNode(NEW_NODE, const struct cudaMemcpy3DParms *p)
{
	return set_copy(ADDED, p);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *p)
{
	return set_copy(CHANGED, p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *p)
{
	return set_copy(CHANGED_IN_EXEC, p);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *out)
{
	const gpul_driver *drv;
	CUDA_MEMCPY3D c;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuGraphMemcpyNodeGetParams(node, &c))))
		return e;
	return gpul_rt_describe_copy_back(drv, &c, out);
}

/* ---- contiguous bytes -------------------------------------------------------------------- */

static cudaError_t set_bytes(struct target t, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms p;

	gpul_rt_describe_bytes(to, from, bytes, kind, &p);
	return set_copy(t, &p);
}

cudaError_t cudaGraphAddMemcpyNode1D(NEW_NODE, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	return set_bytes(ADDED, to, from, bytes, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	return set_bytes(CHANGED, to, from, bytes, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from, size_t bytes,
					       enum cudaMemcpyKind kind)
{
	return set_bytes(CHANGED_IN_EXEC, to, from, bytes, kind);
}

/* ---- device variables -------------------------------------------------------------------- */

/* Find the address of a part of a device variable. */
static cudaError_t find_part(const void *symbol, size_t bytes, size_t offset, void **out)
{
	const gpul_driver *drv;
	CUdeviceptr start = 0;
	size_t there = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_variable(drv, symbol, &start, &there)))
		return e;
	if (offset > there || bytes > there - offset)
		return gpul_rt_fail(cudaErrorInvalidValue, "%zu bytes at offset %zu exceed a variable of %zu bytes", bytes, offset, there);
	*out = (void *)(uintptr_t)(start + offset);
	return cudaSuccess;
}

static cudaError_t set_to_symbol(struct target t, const void *symbol, const void *from, size_t bytes, size_t offset,
				 enum cudaMemcpyKind kind)
{
	void *to = NULL;
	cudaError_t e = find_part(symbol, bytes, offset, &to);

	return e ? e : set_bytes(t, to, from, bytes, kind);
}

static cudaError_t set_from_symbol(struct target t, void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	void *from = NULL;
	cudaError_t e = find_part(symbol, bytes, offset, &from);

	return e ? e : set_bytes(t, to, from, bytes, kind);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(NEW_NODE, const void *symbol, const void *from, size_t bytes, size_t offset,
					   enum cudaMemcpyKind kind)
{
	return set_to_symbol(ADDED, symbol, from, bytes, offset, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from, size_t bytes, size_t offset,
						 enum cudaMemcpyKind kind)
{
	return set_to_symbol(CHANGED, symbol, from, bytes, offset, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol, const void *from,
						     size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	return set_to_symbol(CHANGED_IN_EXEC, symbol, from, bytes, offset, kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(NEW_NODE, void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	return set_from_symbol(ADDED, to, symbol, bytes, offset, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol, size_t bytes, size_t offset,
						   enum cudaMemcpyKind kind)
{
	return set_from_symbol(CHANGED, to, symbol, bytes, offset, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *symbol,
						       size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	return set_from_symbol(CHANGED_IN_EXEC, to, symbol, bytes, offset, kind);
}

/* ---- fills ------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS) &&
		       offsetof(struct cudaMemsetParams, height) == offsetof(CUDA_MEMSET_NODE_PARAMS, height),
	       "the parameters of a fill are the same in both interfaces");
#define FILL(p) ((const CUDA_MEMSET_NODE_PARAMS *)(const void *)(p))

cudaError_t cudaGraphAddMemsetNode(NEW_NODE, const struct cudaMemsetParams *p)
{
	const gpul_driver *drv;
	CUcontext context = NULL;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuCtxGetCurrent(&context))))
		return e;
	return gpul_rt_cu(drv, cuGraphAddMemsetNode(out, graph, after, n_after, FILL(p), context));
}

GPUL_RT_FORWARD(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, struct cudaMemsetParams *p),
		cuGraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *)(void *)p))
GPUL_RT_FORWARD(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const struct cudaMemsetParams *p),
		cuGraphMemsetNodeSetParams(node, FILL(p)))

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *p)
{
	const gpul_driver *drv;
	CUcontext context = NULL;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuCtxGetCurrent(&context))))
		return e;
	return gpul_rt_cu(drv, cuGraphExecMemsetNodeSetParams(exec, node, FILL(p), context));
}
