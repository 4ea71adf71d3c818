/* rt_execute.c — instantiates, updates and launches graphs.
 *
 * Compiled a second time for per-thread default streams (rt_runtime_internal.h).
 * Source: CUDA Runtime API, Graph Management. */
#include <stddef.h>

#include "nvidia/cudart/rt_runtime_internal.h"

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) &&
		       offsetof(cudaGraphInstantiateParams, result_out) == offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) &&
		       sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo) &&
		       (int)cudaGraphInstantiateFlagUseNodePriority == (int)CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY &&
		       (int)cudaGraphExecUpdateErrorAttributesChanged == (int)CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
	       "structures and numbers of both interfaces are the same");

GPUL_RT_FORWARD(cudaGraphInstantiateWithParams, (cudaGraphExec_t * out, cudaGraph_t graph, cudaGraphInstantiateParams *p),
		cuGraphInstantiateWithParams(out, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)(void *)p))
GPUL_RT_FORWARD(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphUpload(exec, gpul_rt_stream(stream)))
GPUL_RT_FORWARD(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch(exec, gpul_rt_stream(stream)))

#ifndef GPUL_RT_PER_THREAD

GPUL_RT_FORWARD(cudaGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
		cuGraphInstantiate(out, graph, flags))
GPUL_RT_FORWARD(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
		cuGraphInstantiate(out, graph, flags))
GPUL_RT_FORWARD(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy(exec))
GPUL_RT_FORWARD(cudaGraphExecUpdate, (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
		cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)(void *)info))
GPUL_RT_FORWARD(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled),
		cuGraphNodeSetEnabled(exec, node, enabled))
GPUL_RT_FORWARD(cudaGraphNodeGetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *enabled),
		cuGraphNodeGetEnabled(exec, node, enabled))

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
	const gpul_driver *drv;
	cuuint64_t value = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuGraphExecGetFlags(exec, &value))))
		return e;
	*flags = value;
	return cudaSuccess;
}

#endif
