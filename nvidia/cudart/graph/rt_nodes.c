/* rt_nodes.c — graph nodes of kernels, host functions, events, child graphs and memory allocations.  Copies and fills are in rt_copies.c.
 *
 * The parameters of a kernel node refer to the kernel by its host stub, which is converted to the CUfunction of the current
 * context.
 * Source: CUDA Runtime API, Graph Management. */
#include <string.h>

#include "nvidia/cudart/graph/rt_graph_internal.h"

/* Each call that adds a node begins with these parameters. */
#define NEW_NODE cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n_after

/* ---- kernels ----------------------------------------------------------------------------- */

cudaError_t gpul_rt_describe_kernel(const gpul_driver *drv, const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *out)
{
	if (!p)
		return gpul_rt_fail(cudaErrorInvalidValue, "the parameters of the node are NULL");
	*out = (CUDA_KERNEL_NODE_PARAMS){
		.gridDimX = p->gridDim.x,
		.gridDimY = p->gridDim.y,
		.gridDimZ = p->gridDim.z,
		.blockDimX = p->blockDim.x,
		.blockDimY = p->blockDim.y,
		.blockDimZ = p->blockDim.z,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
	return gpul_rt_function(drv, p->func, &out->func);
}

cudaError_t cudaGraphAddKernelNode(NEW_NODE, const struct cudaKernelNodeParams *p)
{
	const gpul_driver *drv;
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_describe_kernel(drv, p, &k)))
		return e;
	return gpul_rt_cu(drv, cuGraphAddKernelNode(out, graph, after, n_after, &k));
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *out)
{
	const gpul_driver *drv;
	const void *stub;
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuGraphKernelNodeGetParams(node, &k))))
		return e;
	stub = gpul_rt_stub(drv, k.kern, k.func);
	*out = (struct cudaKernelNodeParams){
		.func = stub ? (void *)(uintptr_t)stub : (void *)k.func,
		.gridDim = { k.gridDimX, k.gridDimY, k.gridDimZ },
		.blockDim = { k.blockDimX, k.blockDimY, k.blockDimZ },
		.sharedMemBytes = k.sharedMemBytes,
		.kernelParams = k.kernelParams,
		.extra = k.extra,
	};
	return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *p)
{
	const gpul_driver *drv;
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_describe_kernel(drv, p, &k)))
		return e;
	return gpul_rt_cu(drv, cuGraphKernelNodeSetParams(node, &k));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *p)
{
	const gpul_driver *drv;
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_describe_kernel(drv, p, &k)))
		return e;
	return gpul_rt_cu(drv, cuGraphExecKernelNodeSetParams(exec, node, &k));
}

_Static_assert(sizeof(cudaKernelNodeAttrValue) == sizeof(CUkernelNodeAttrValue), "the attributes of both interfaces are the same");

GPUL_RT_FORWARD(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t to, cudaGraphNode_t from), cuGraphKernelNodeCopyAttributes(to, from))
GPUL_RT_FORWARD(cudaGraphKernelNodeGetAttribute, (cudaGraphNode_t node, cudaKernelNodeAttrID which, cudaKernelNodeAttrValue *value),
		cuGraphKernelNodeGetAttribute(node, (CUkernelNodeAttrID)which, (CUkernelNodeAttrValue *)(void *)value))
GPUL_RT_FORWARD(cudaGraphKernelNodeSetAttribute, (cudaGraphNode_t node, cudaKernelNodeAttrID which, const cudaKernelNodeAttrValue *value),
		cuGraphKernelNodeSetAttribute(node, (CUkernelNodeAttrID)which, (const CUkernelNodeAttrValue *)(const void *)value))

/* ---- host functions ---------------------------------------------------------------------- */

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS) &&
		       offsetof(struct cudaHostNodeParams, userData) == offsetof(CUDA_HOST_NODE_PARAMS, userData),
	       "the parameters of a host node are the same in both interfaces");
#define HOST(p) ((const CUDA_HOST_NODE_PARAMS *)(const void *)(p))

GPUL_RT_FORWARD(cudaGraphAddHostNode, (NEW_NODE, const struct cudaHostNodeParams *p),
		cuGraphAddHostNode(out, graph, after, n_after, HOST(p)))
GPUL_RT_FORWARD(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, struct cudaHostNodeParams *p),
		cuGraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *)(void *)p))
GPUL_RT_FORWARD(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const struct cudaHostNodeParams *p),
		cuGraphHostNodeSetParams(node, HOST(p)))
GPUL_RT_FORWARD(cudaGraphExecHostNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *p),
		cuGraphExecHostNodeSetParams(exec, node, HOST(p)))

/* ---- child graphs and empty nodes ---------------------------------------------------------- */

GPUL_RT_FORWARD(cudaGraphAddChildGraphNode, (NEW_NODE, cudaGraph_t child), cuGraphAddChildGraphNode(out, graph, after, n_after, child))
GPUL_RT_FORWARD(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *child), cuGraphChildGraphNodeGetGraph(node, child))
GPUL_RT_FORWARD(cudaGraphExecChildGraphNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child),
		cuGraphExecChildGraphNodeSetParams(exec, node, child))
GPUL_RT_FORWARD(cudaGraphAddEmptyNode, (NEW_NODE), cuGraphAddEmptyNode(out, graph, after, n_after))

/* ---- events ------------------------------------------------------------------------------ */

GPUL_RT_FORWARD(cudaGraphAddEventRecordNode, (NEW_NODE, cudaEvent_t event), cuGraphAddEventRecordNode(out, graph, after, n_after, event))
GPUL_RT_FORWARD(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event), cuGraphEventRecordNodeGetEvent(node, event))
GPUL_RT_FORWARD(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event), cuGraphEventRecordNodeSetEvent(node, event))
GPUL_RT_FORWARD(cudaGraphExecEventRecordNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
		cuGraphExecEventRecordNodeSetEvent(exec, node, event))
GPUL_RT_FORWARD(cudaGraphAddEventWaitNode, (NEW_NODE, cudaEvent_t event), cuGraphAddEventWaitNode(out, graph, after, n_after, event))
GPUL_RT_FORWARD(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event), cuGraphEventWaitNodeGetEvent(node, event))
GPUL_RT_FORWARD(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event), cuGraphEventWaitNodeSetEvent(node, event))
GPUL_RT_FORWARD(cudaGraphExecEventWaitNodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
		cuGraphExecEventWaitNodeSetEvent(exec, node, event))

/* ---- memory ------------------------------------------------------------------------------ */

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) &&
		       offsetof(struct cudaMemAllocNodeParams, dptr) == offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr),
	       "the parameters of an allocation node are the same in both interfaces");

GPUL_RT_FORWARD(cudaGraphAddMemAllocNode, (NEW_NODE, struct cudaMemAllocNodeParams *p),
		cuGraphAddMemAllocNode(out, graph, after, n_after, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)p))
GPUL_RT_FORWARD(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, struct cudaMemAllocNodeParams *p),
		cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)p))
GPUL_RT_FORWARD(cudaGraphAddMemFreeNode, (NEW_NODE, void *p), cuGraphAddMemFreeNode(out, graph, after, n_after, gpul_rt_address(p)))
GPUL_RT_FORWARD(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *p), cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)p))
