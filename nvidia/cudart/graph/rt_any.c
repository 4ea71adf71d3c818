/* rt_any.c — adds and changes nodes of any type with one structure: cudaGraphAddNode, cudaGraphNodeSetParams, cudaGraphExecNodeSetParams.
 *
 * Most parameters have the same layout in both interfaces. Kernels, copies, fills and conditions are converted, because the
 * driver's structures also contain a context. Compiled for the interfaces of CUDA 12 and of CUDA 13 (rt_abi_internal.h). */
#include <stddef.h>
#include <string.h>

#include "nvidia/cudart/rt_abi_internal.h"
#include "nvidia/cudart/graph/rt_graph_internal.h"
#include "nvidia/cudart/memory/rt_memory_internal.h"

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams) &&
		       offsetof(struct cudaGraphNodeParams, host) == offsetof(CUgraphNodeParams, host) &&
		       sizeof(struct cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2) &&
		       sizeof(struct cudaMemsetParamsV2) + sizeof(CUcontext) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2) &&
		       sizeof(struct cudaConditionalNodeParams) + sizeof(CUcontext) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS),
	       "the layout of both interfaces is the same, but for the context at the end");

static cudaError_t convert_kernel(const gpul_driver *drv, const struct cudaKernelNodeParamsV2 *p, CUDA_KERNEL_NODE_PARAMS_v3 *out)
{
	struct cudaKernelNodeParams plain = { p->func, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra };
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = gpul_rt_describe_kernel(drv, &plain, &k);

	if (e)
		return e;
	*out = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = k.func,
		.gridDimX = k.gridDimX,
		.gridDimY = k.gridDimY,
		.gridDimZ = k.gridDimZ,
		.blockDimX = k.blockDimX,
		.blockDimY = k.blockDimY,
		.blockDimZ = k.blockDimZ,
		.sharedMemBytes = k.sharedMemBytes,
		.kernelParams = k.kernelParams,
		.extra = k.extra,
	};
	return cudaSuccess;
}

static cudaError_t convert(const gpul_driver *drv, const struct cudaGraphNodeParams *p, CUgraphNodeParams *out)
{
	CUcontext context = NULL;
	cudaError_t e;

	if (!p)
		return gpul_rt_fail(cudaErrorInvalidValue, "the parameters of the node are NULL");
	if ((e = gpul_rt_cu(drv, cuCtxGetCurrent(&context))))
		return e;
	memcpy(out, p, sizeof *out);
	switch (p->type) {
	case cudaGraphNodeTypeKernel:
		return convert_kernel(drv, &p->kernel, &out->kernel);
	case cudaGraphNodeTypeMemcpy:
		memset(&out->memcpy, 0, sizeof out->memcpy);
		out->memcpy.flags = p->memcpy.flags;
		out->memcpy.copyCtx = context;
		return gpul_rt_describe_copy(drv, &p->memcpy.copyParams, &out->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		out->memset.ctx = context;
		return cudaSuccess;
	case cudaGraphNodeTypeConditional:
		out->conditional.ctx = context;
		return cudaSuccess;
	default:
		return cudaSuccess;
	}
}

static cudaError_t add_node(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, const cudaGraphEdgeData *edges,
			    size_t n_after, struct cudaGraphNodeParams *p)
{
	const gpul_driver *drv;
	CUgraphNodeParams params;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = convert(drv, p, &params)))
		return e;
	e = gpul_rt_cu(drv, cuGraphAddNode_v2(out, graph, after, (const CUgraphEdgeData *)(const void *)edges, n_after, &params));
	if (!e && p->type == cudaGraphNodeTypeMemAlloc) /* copy the driver's results to the caller: an address, body graphs */
		p->alloc.dptr = (void *)(uintptr_t)params.alloc.dptr;
	if (!e && p->type == cudaGraphNodeTypeConditional)
		p->conditional.phGraph_out = params.conditional.phGraph_out;
	return e;
}

GPUL_RT_DECLARE(GPUL_RT_NEW("cudaGraphAddNode"), gpul_rt_add_node,
		(cudaGraphNode_t * out, cudaGraph_t graph, const cudaGraphNode_t *after, const cudaGraphEdgeData *edges, size_t n_after,
		 struct cudaGraphNodeParams *p))
cudaError_t gpul_rt_add_node(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, const cudaGraphEdgeData *edges,
			     size_t n_after, struct cudaGraphNodeParams *p)
{
	return add_node(out, graph, after, edges, n_after, p);
}

#if GPUL_RT_ABI < 13
GPUL_RT_DECLARE(GPUL_RT_OLD("cudaGraphAddNode"), gpul_rt_add_plain_node,
		(cudaGraphNode_t * out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n_after, struct cudaGraphNodeParams *p))
cudaError_t gpul_rt_add_plain_node(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n_after,
				   struct cudaGraphNodeParams *p)
{
	return add_node(out, graph, after, NULL, n_after, p);
}
#endif

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *p)
{
	const gpul_driver *drv;
	CUgraphNodeParams params;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = convert(drv, p, &params)))
		return e;
	return gpul_rt_cu(drv, cuGraphNodeSetParams(node, &params));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, struct cudaGraphNodeParams *p)
{
	const gpul_driver *drv;
	CUgraphNodeParams params;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = convert(drv, p, &params)))
		return e;
	return gpul_rt_cu(drv, cuGraphExecNodeSetParams(exec, node, &params));
}
