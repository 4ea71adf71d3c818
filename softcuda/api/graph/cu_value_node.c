/* cu_value_node.c — nodes that wait until words in memory have given values, or write words; memory/cu_value.c does their work. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

CUresult soft_make_values(const void *params, CUcontext handle, struct op **out)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *p = params;
	struct context *ctx;
	CUresult r = handle ? soft_find_context(handle, &ctx) : CUDA_SUCCESS;

	return r ? r : soft_values_work(p, out);
}

EXPORT CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n,
					 const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	return params ? soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, soft_make_values, params,
				      params->ctx)
		      : CUDA_ERROR_INVALID_VALUE;
}

/* paramArray is valid until the node is changed or destroyed.  .ctx is the current context: a graph runs in its stream's context. */
EXPORT CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){ .ctx = soft_current() };
	out->paramArray = soft_values_of_work(n->work, &out->count);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	return params ? soft_set_node(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, soft_make_values, params, params->ctx)
		      : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	return params ? soft_set_exec_node(exec, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, soft_make_values, params, params->ctx)
		      : CUDA_ERROR_INVALID_VALUE;
}
