/* rt_graph.c — creates, copies, inspects and destroys graphs, and manages user objects and the memory of graphs.
 *
 * Edges are in rt_edges.c, nodes in rt_nodes.c and rt_copies.c, executable graphs in rt_execute.c.
 * Handles and most structures are the same in the runtime and the driver, as the assertions check.
 * Source: CUDA Runtime API, Graph Management. */
#include "nvidia/cudart/rt_runtime_internal.h"

_Static_assert((int)cudaGraphNodeTypeKernel == (int)CU_GRAPH_NODE_TYPE_KERNEL &&
		       (int)cudaGraphNodeTypeConditional == (int)CU_GRAPH_NODE_TYPE_CONDITIONAL &&
		       (int)cudaGraphMemAttrReservedMemHigh == (int)CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
	       "the enumerations of both interfaces have the same numbers");

GPUL_RT_FORWARD(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), cuGraphCreate(graph, flags))
GPUL_RT_FORWARD(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
GPUL_RT_FORWARD(cudaGraphClone, (cudaGraph_t * copy, cudaGraph_t graph), cuGraphClone(copy, graph))
GPUL_RT_FORWARD(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned int flags), cuGraphDebugDotPrint(graph, path, flags))

/* ---- nodes of a graph -------------------------------------------------------------------- */

GPUL_RT_FORWARD(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n_nodes), cuGraphGetNodes(graph, nodes, n_nodes))
GPUL_RT_FORWARD(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n_nodes),
		cuGraphGetRootNodes(graph, nodes, n_nodes))
GPUL_RT_FORWARD(cudaGraphDestroyNode, (cudaGraphNode_t node), cuGraphDestroyNode(node))
GPUL_RT_FORWARD(cudaGraphNodeFindInClone, (cudaGraphNode_t * out, cudaGraphNode_t original, cudaGraph_t clone),
		cuGraphNodeFindInClone(out, original, clone))

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *out)
{
	const gpul_driver *drv;
	CUgraphNodeType type;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuGraphNodeGetType(node, &type))))
		return e;
	*out = (enum cudaGraphNodeType)type;
	return cudaSuccess;
}

/* ---- conditions -------------------------------------------------------------------------- */

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *out, cudaGraph_t graph, unsigned int value, unsigned int flags)
{
	const gpul_driver *drv;
	CUcontext context = NULL;
	CUgraphConditionalHandle handle;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuCtxGetCurrent(&context))) ||
	    (e = gpul_rt_cu(drv, cuGraphConditionalHandleCreate(&handle, graph, context, value, flags))))
		return e;
	*out = handle;
	return cudaSuccess;
}

/* ---- user objects ------------------------------------------------------------------------ */

GPUL_RT_FORWARD(cudaUserObjectCreate,
		(cudaUserObject_t * out, void *user, cudaHostFn_t destroy, unsigned int n_references, unsigned int flags),
		cuUserObjectCreate(out, user, destroy, n_references, flags))
GPUL_RT_FORWARD(cudaUserObjectRetain, (cudaUserObject_t object, unsigned int n), cuUserObjectRetain(object, n))
GPUL_RT_FORWARD(cudaUserObjectRelease, (cudaUserObject_t object, unsigned int n), cuUserObjectRelease(object, n))
GPUL_RT_FORWARD(cudaGraphRetainUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned int n, unsigned int flags),
		cuGraphRetainUserObject(graph, object, n, flags))
GPUL_RT_FORWARD(cudaGraphReleaseUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned int n),
		cuGraphReleaseUserObject(graph, object, n))

/* ---- memory of graphs -------------------------------------------------------------------- */

static cudaError_t enter_device(const gpul_driver **drv, int ordinal, CUdevice *device)
{
	cudaError_t e = gpul_rt_enter(drv);

	return e ? e : gpul_rt_cu(*drv, cuDeviceGet(device, ordinal));
}

cudaError_t cudaDeviceGraphMemTrim(int ordinal)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = enter_device(&drv, ordinal, &device);

	return e ? e : gpul_rt_cu(drv, cuDeviceGraphMemTrim(device));
}

cudaError_t cudaDeviceGetGraphMemAttribute(int ordinal, enum cudaGraphMemAttributeType which, void *value)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = enter_device(&drv, ordinal, &device);

	return e ? e : gpul_rt_cu(drv, cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)which, value));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int ordinal, enum cudaGraphMemAttributeType which, void *value)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = enter_device(&drv, ordinal, &device);

	return e ? e : gpul_rt_cu(drv, cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)which, value));
}
