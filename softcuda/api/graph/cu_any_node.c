/* cu_any_node.c — the calls that accept nodes of every type, such as cuGraphAddNode and cuGraphNodeSetParams. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <string.h>

_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "the members are the same");

/* The parameters of a node, in the form that its make_work function expects. */
struct any_work {
	make_work *make; /* function that creates the node's work; NULL: nodes of this type have no work */
	const void *params;
	CUcontext ctx;
	CUDA_KERNEL_NODE_PARAMS_v2 kernel;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_HOST_NODE_PARAMS host;
	CUDA_BATCH_MEM_OP_NODE_PARAMS values;
};

static CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
	CUDA_KERNEL_NODE_PARAMS_v2 v2;

	_Static_assert(sizeof v2 == sizeof *p, "the members are the same");
	memcpy(&v2, p, sizeof v2);
	return v2;
}

static void read_params(const CUgraphNodeParams *p, struct any_work *w)
{
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		w->kernel = kernel_params(&p->kernel);
		w->make = soft_make_kernel;
		w->params = &w->kernel;
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		w->make = soft_make_copy;
		w->params = &p->memcpy.copyParams;
		w->ctx = p->memcpy.copyCtx;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		w->fill = (CUDA_MEMSET_NODE_PARAMS){ p->memset.dst,         p->memset.pitch, p->memset.value,
						     p->memset.elementSize, p->memset.width, p->memset.height };
		w->make = soft_make_fill;
		w->params = &w->fill;
		w->ctx = p->memset.ctx;
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		w->host = (CUDA_HOST_NODE_PARAMS){ p->host.fn, p->host.userData };
		w->make = soft_make_host_call;
		w->params = &w->host;
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		w->make = soft_make_wait;
		w->params = p->eventWait.event;
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		w->make = soft_make_record;
		w->params = p->eventRecord.event;
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		w->values = (CUDA_BATCH_MEM_OP_NODE_PARAMS){ p->memOp.ctx, p->memOp.count, p->memOp.paramArray, p->memOp.flags };
		w->make = soft_make_values;
		w->params = &w->values;
		w->ctx = p->memOp.ctx;
		break;
	default:
		break;
	}
}

static CUresult refuse_type(CUgraphNodeType type)
{
	return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "graph: nodes of type %d cannot be added or changed", (int)type);
}

EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
				  CUgraphNodeParams *p)
{
	struct any_work w = { 0 };
	CUresult r = out && p ? soft_check_edge_data(data, n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return soft_add_node(out, graph, waits_for, data, n, p->type, NULL, NULL, NULL);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return soft_add_child(out, graph, waits_for, data, n, &p->graph);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return soft_add_alloc(out, graph, waits_for, data, n, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)&p->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return soft_add_free(out, graph, waits_for, data, n, p->free.dptr);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return soft_add_conditional(out, graph, waits_for, data, n, &p->conditional);
	default:
		read_params(p, &w);
		return w.make ? soft_add_node(out, graph, waits_for, data, n, p->type, w.make, w.params, w.ctx) : refuse_type(p->type);
	}
}

EXPORT CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n, CUgraphNodeParams *params)
{
	return cuGraphAddNode_v2(out, graph, waits_for, NULL, n, params);
}

EXPORT CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p)
{
	struct any_work w = { 0 };

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	read_params(p, &w);
	return w.make ? soft_set_node(node, p->type, w.make, w.params, w.ctx) : refuse_type(p->type);
}

EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p)
{
	struct any_work w = { 0 };

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return cuGraphExecChildGraphNodeSetParams(exec, node, p->graph.graph);
	read_params(p, &w);
	return w.make ? soft_set_exec_node(exec, node, p->type, w.make, w.params, w.ctx) : refuse_type(p->type);
}
