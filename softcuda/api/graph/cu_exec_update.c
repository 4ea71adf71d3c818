/* cu_exec_update.c — changes executable graphs; their steps are found by the nodes from which they were made. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <string.h>

static struct conditional_op *conditional_of(const struct exec_step *step)
{
	return step->work->kind == &soft_conditional_kind ? CONTAINER(step->work, struct conditional_op, op) : NULL;
}

static struct exec_step *find_step(const struct graph_exec *x, const struct node *n)
{
	for (size_t i = 0; i < x->n_steps; i++) {
		struct exec_step *step = &x->steps[i];
		const struct conditional_op *c = conditional_of(step);

		if (step->type == n->type && (step->node_id == n->id || (step->cloned_from && step->cloned_from == n->id)))
			return step;
		for (unsigned k = 0; c && k < c->n_bodies; k++) {
			struct exec_step *found = find_step(c->bodies[k], n);

			if (found)
				return found;
		}
	}
	return NULL;
}

struct exec_step *soft_exec_find(const struct graph_exec *x, CUgraphNode handle, CUgraphNodeType type)
{
	const struct node *n = soft_handle_find(HANDLE_NODE, handle);

	return n && n->type == type ? find_step(x, n) : NULL;
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

/* ---- what an update may change ------------------------------------------------------------------------------- */

static CUgraphExecUpdateResult compare_launch(const struct op *old, const struct op *work)
{
	const struct launch_op *a = CONTAINER(old, const struct launch_op, op), *b = CONTAINER(work, const struct launch_op, op);

	if (a->config.device != b->config.device)
		return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
	return a->config.cooperative != b->config.cooperative ? CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED
							      : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Only one-dimensional copies may change; neither their source nor destination may move between driver memory and other memory. */
static CUgraphExecUpdateResult compare_copy(const struct op *old, const struct op *work)
{
	const struct copy *a = &CONTAINER(old, const struct copy_op, op)->copy, *b = &CONTAINER(work, const struct copy_op, op)->copy;
	bool is_plain = a->height == 1 && a->depth == 1 && b->height == 1 && b->depth == 1;
	bool is_same = a->dst == b->dst && a->src == b->src && a->width_bytes == b->width_bytes && a->height == b->height &&
		       a->depth == b->depth && a->dst_pitch == b->dst_pitch && a->src_pitch == b->src_pitch &&
		       a->dst_slice == b->dst_slice && a->src_slice == b->src_slice;

	if (is_same || (is_plain && a->dst_known == b->dst_known && a->src_known == b->src_known))
		return CU_GRAPH_EXEC_UPDATE_SUCCESS;
	return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

/* Only the address and the value of a 2D fill may change. */
static CUgraphExecUpdateResult compare_fill(const struct op *old, const struct op *work)
{
	const struct fill *a = &CONTAINER(old, const struct fill_op, op)->fill, *b = &CONTAINER(work, const struct fill_op, op)->fill;

	if ((a->height == 1 && b->height == 1) ||
	    (a->height == b->height && a->width == b->width && a->pitch == b->pitch && a->element_bytes == b->element_bytes))
		return CU_GRAPH_EXEC_UPDATE_SUCCESS;
	return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

static CUgraphExecUpdateResult compare_memory(const struct op *old, const struct op *work)
{
	const struct graph_memory *a = CONTAINER(old, const struct memory_op, op)->memory;
	const struct graph_memory *b = CONTAINER(work, const struct memory_op, op)->memory;

	return a == b ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult soft_compare_work(const struct op *old, const struct op *work)
{
	if (old->kind != work->kind)
		return CU_GRAPH_EXEC_UPDATE_SUCCESS;
	if (work->kind == &soft_launch_kind)
		return compare_launch(old, work);
	if (work->kind == &soft_copy_kind)
		return compare_copy(old, work);
	if (work->kind == &soft_fill_kind)
		return compare_fill(old, work);
	if (work->kind == &soft_graph_alloc_kind || work->kind == &soft_graph_free_kind)
		return compare_memory(old, work);
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* ---- updating a whole graph ---------------------------------------------------------------------------------- */

static struct exec_part whole(const struct graph_exec *x)
{
	return x->graph;
}

/* Compare each step of b with the step of a at the same position, and find the first one that differs. */
static CUgraphExecUpdateResult compare(const struct graph_exec *a, struct exec_part pa, const struct graph_exec *b, struct exec_part pb,
				       CUgraphExecUpdateResultInfo *info);

static CUgraphExecUpdateResult compare_steps(const struct exec_step *a, const struct exec_step *b, CUgraphExecUpdateResultInfo *info)
{
	const struct op *old = a->disabled ? a->disabled : a->work;
	const struct conditional_op *ca = conditional_of(a), *cb = conditional_of(b);
	CUgraphExecUpdateResult r = a->type != b->type ? CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED : soft_compare_work(old, b->work);

	info->errorNode = b->node;
	if (!r && ca && cb) {
		if (ca->type != cb->type || ca->n_bodies != cb->n_bodies)
			r = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
		for (unsigned k = 0; !r && k < ca->n_bodies; k++)
			r = compare(ca->bodies[k], whole(ca->bodies[k]), cb->bodies[k], whole(cb->bodies[k]), info);
	}
	return r;
}

static CUgraphExecUpdateResult compare(const struct graph_exec *a, struct exec_part pa, const struct graph_exec *b, struct exec_part pb,
				       CUgraphExecUpdateResultInfo *info)
{
	const size_t n_waits = pa.end_wait - pa.first_wait;
	CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_SUCCESS;

	info->errorNode = info->errorFromNode = NULL;
	if (pa.end_step - pa.first_step != pb.end_step - pb.first_step)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < pb.end_wait - pb.first_wait; i++) {
		const struct op_wait *w = &b->waits[pb.first_wait + i], *v = &a->waits[pa.first_wait + i];

		if (i < n_waits && v->later - pa.first_step == w->later - pb.first_step &&
		    v->earlier - pa.first_step == w->earlier - pb.first_step)
			continue;
		info->errorNode = b->steps[w->later].node;
		info->errorFromNode = b->steps[w->earlier].node;
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	if (n_waits != pb.end_wait - pb.first_wait) {
		info->errorNode = b->steps[pb.end_step - 1].node;
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	for (size_t i = 0; !r && i < pa.end_step - pa.first_step; i++)
		r = compare_steps(&a->steps[pa.first_step + i], &b->steps[pb.first_step + i], info);
	if (!r)
		info->errorNode = NULL;
	return r;
}

/* Copy the nodes of the old steps to the new steps, so that later calls with the old node handles find the new steps. */
static void keep_nodes(const struct graph_exec *to, const struct graph_exec *from)
{
	for (size_t i = 0; i < to->n_steps && i < from->n_steps; i++) {
		const struct conditional_op *a = conditional_of(&to->steps[i]), *b = conditional_of(&from->steps[i]);

		to->steps[i].node_id = from->steps[i].node_id;
		to->steps[i].cloned_from = from->steps[i].cloned_from;
		to->steps[i].node = from->steps[i].node;
		for (unsigned k = 0; a && b && k < a->n_bodies; k++)
			keep_nodes(a->bodies[k], b->bodies[k]);
	}
}

static void take_over(struct graph_exec *x, struct exec_part px, const struct graph_exec *from, struct exec_part pf)
{
	for (size_t i = 0; i < px.end_step - px.first_step; i++) {
		struct exec_step *step = &x->steps[px.first_step + i];
		struct op *work = from->steps[pf.first_step + i].work;
		const struct conditional_op *a = conditional_of(&from->steps[pf.first_step + i]), *b = conditional_of(step);

		for (unsigned k = 0; a && b && k < a->n_bodies; k++)
			keep_nodes(a->bodies[k], b->bodies[k]);
		work->refs++;
		soft_exec_set_work(step, work);
	}
}

/* Copy the initial values of conditions to the first step, which assigns them. */
static void take_over_first(struct graph_exec *x, const struct graph_exec *from)
{
	if (x->graph.first_step != from->graph.first_step || !x->graph.first_step)
		return;
	from->steps[0].work->refs++;
	soft_exec_set_work(&x->steps[0], from->steps[0].work);
}

/* Replace the steps of x by the steps of g; child not NULL: only those that were made from that child graph. */
static CUresult update(struct graph_exec *x, const struct exec_child *child, struct graph *g, CUgraphExecUpdateResultInfo *info)
{
	const struct exec_part part = child ? child->part : whole(x);
	struct graph_exec *from;
	CUgraphNode bad;
	CUresult r = soft_exec_new(g, x->flags, &from, &bad);

	info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
	if (r)
		return r;
	info->result = compare(x, part, from, whole(from), info);
	if (info->result) {
		r = soft_refuse(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
				"graph: the executable graph cannot be changed in this way (CUgraphExecUpdateResult %d)",
				(int)info->result);
	} else {
		r = soft_exec_replace_objects(x, from, child != NULL);
		if (!r) {
			take_over(x, part, from, whole(from));
			if (!child)
				take_over_first(x, from);
		}
	}
	soft_exec_unref(from);
	return r;
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct graph_exec *x;
	struct graph *g;
	CUresult r = info ? soft_enter_exec(exec, &x) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_ERROR };
	g = soft_handle_find(HANDLE_GRAPH, graph);
	r = g && !g->owner ? update(x, NULL, g, info) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = { 0 };
	CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);

	if (error_node)
		*error_node = info.errorNode;
	if (result)
		*result = info.result;
	return r;
}

EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode handle, CUgraph child)
{
	CUgraphExecUpdateResultInfo info = { 0 };
	struct graph_exec *x;
	const struct node *n;
	struct graph *g;
	CUresult r = soft_enter_exec(exec, &x);

	if (r)
		return r;
	n = soft_handle_find(HANDLE_NODE, handle);
	g = soft_handle_find(HANDLE_GRAPH, child);
	r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; n && g && i < x->n_children; i++) {
		const struct exec_child *c = &x->children[i];

		if (c->node_id != n->id && (!c->cloned_from || c->cloned_from != n->id))
			continue;
		r = update(x, c, g, &info);
		break;
	}
	soft_unlock();
	return r;
}
