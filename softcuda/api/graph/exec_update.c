/* exec_update.c — change executable graphs, and find the nodes that they were made from. */
#include "softcuda/api/graph/graph_calls_internal.h"

#include <string.h>

struct exec_step *soft_exec_find(const struct graph_exec *x, CUgraphNode handle, CUgraphNodeType type)
{
	const struct node *n = soft_handle_find(HANDLE_NODE, handle);

	for (size_t i = 0; n && n->type == type && i < x->n_steps; i++)
		if (x->steps[i].type == type && (x->steps[i].node_id == n->id || x->steps[i].cloned_from == n->id))
			return &x->steps[i];
	return NULL;
}

/* A disabled node keeps its new work until it is enabled. */
void soft_exec_set_work(struct exec_step *step, struct op *work)
{
	struct op **place = step->disabled ? &step->disabled : &step->work;

	soft_op_release(*place);
	*place = work;
}

static bool can_be_disabled(CUgraphNodeType type)
{
	return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

/* Find the step of a node that can be disabled; the lock is held on success. */
static CUresult enter_step(CUgraphExec exec, CUgraphNode handle, struct exec_step **out)
{
	struct graph_exec *x;
	const struct node *n;
	CUresult r = soft_enter_exec(exec, &x);

	if (r)
		return r;
	n = soft_handle_find(HANDLE_NODE, handle);
	*out = n && can_be_disabled(n->type) ? soft_exec_find(x, handle, n->type) : NULL;
	if (*out)
		return CUDA_SUCCESS;
	soft_unlock();
	return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enable)
{
	struct exec_step *step;
	struct op *marker;
	CUresult r = enter_step(exec, node, &step);

	if (r)
		return r;
	if (enable && step->disabled) {
		soft_op_release(step->work);
		step->work = step->disabled;
		step->disabled = NULL;
	} else if (!enable && !step->disabled) {
		marker = soft_op_new(NULL, &soft_marker);
		if (marker) {
			step->disabled = step->work;
			step->work = marker;
		} else {
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
	struct exec_step *step;
	CUresult r = enabled ? enter_step(exec, node, &step) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*enabled = !step->disabled;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* ---- all nodes at once -------------------------------------------------------------------------------------- */

static CUgraphExecUpdateResult compare(const struct graph_exec *a, const struct graph_exec *b)
{
	if (a->n_steps != b->n_steps || a->n_waits != b->n_waits)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < a->n_waits; i++)
		if (a->waits[i].later != b->waits[i].later || a->waits[i].earlier != b->waits[i].earlier)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < a->n_steps; i++)
		if (a->steps[i].type != b->steps[i].type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* The nodes are matched by their order. */
EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct graph_exec *x, *from;
	struct graph *g;
	CUresult r = info ? soft_enter_exec(exec, &x) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	memset(info, 0, sizeof *info);
	g = soft_handle_find(HANDLE_GRAPH, graph);
	r = g ? soft_exec_new(g, x->flags, &from) : CUDA_ERROR_INVALID_VALUE;
	info->result = r ? CU_GRAPH_EXEC_UPDATE_ERROR : compare(x, from);
	if (!r && info->result)
		r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (size_t i = 0; !r && i < x->n_steps; i++) {
		from->steps[i].work->refs++;
		soft_exec_set_work(&x->steps[i], from->steps[i].work);
	}
	if (info->result != CU_GRAPH_EXEC_UPDATE_ERROR)
		soft_exec_free(from);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = { 0 };
	CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);

	if (error_node)
		*error_node = NULL;
	if (result)
		*result = info.result;
	return r;
}
