/* exec.c — executable graphs: instantiate and launch.
 *
 *     graph      a ──> b ──> d        steps    0 a   1 b   2 c   3 d
 *                └──> c ──┘           waits    1-0   2-0   3-1   3-2      (later-earlier)
 *
 * A launch copies the work of each step to a new operation, and queues all of them at once (soft_ops_submit).  So an
 * executable graph can be changed, destroyed or launched again while it runs.  A graph with several first or last nodes
 * gets markers: one that all its nodes wait for, and one that waits for all its nodes. */
#include "softcuda/api/graph/graph_calls_internal.h"

#include <stdlib.h>
#include <string.h>

CUresult soft_enter_exec(CUgraphExec handle, struct graph_exec **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_GRAPH_EXEC, handle);
	if (*out)
		return CUDA_SUCCESS;
	soft_unlock();
	return CUDA_ERROR_INVALID_VALUE;
}

/* Make room for one more element; false: out of memory. */
static bool grow(void **list, size_t n, size_t *room, size_t element_bytes)
{
	size_t wanted = *room ? 2 * *room : 8;
	void *bigger;

	if (n < *room)
		return true;
	bigger = realloc(*list, wanted * element_bytes);
	if (!bigger)
		return false;
	*list = bigger;
	*room = wanted;
	return true;
}

/* ---- instantiating ---------------------------------------------------------------------------------- */

/* Append a step; n NULL: a marker without a node. */
static CUresult add_step(struct graph_exec *x, const struct node *n, size_t *index)
{
	struct op *work = n ? n->work : NULL;
	void *list = x->steps;

	if (work)
		work->refs++;
	else
		work = soft_op_new(NULL, &soft_marker);
	if (!work || !grow(&list, x->n_steps, &x->steps_room, sizeof *x->steps)) {
		if (work)
			soft_op_release(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	x->steps = list;
	*index = x->n_steps++;
	x->steps[*index] = (struct exec_step){
		.work = work,
		.type = n ? n->type : CU_GRAPH_NODE_TYPE_EMPTY,
		.node_id = n ? n->id : 0,
		.cloned_from = n ? n->cloned_from : 0,
	};
	return CUDA_SUCCESS;
}

static CUresult add_wait(struct graph_exec *x, size_t later, size_t earlier)
{
	void *list = x->waits;

	if (!grow(&list, x->n_waits, &x->waits_room, sizeof *x->waits))
		return CUDA_ERROR_OUT_OF_MEMORY;
	x->waits = list;
	x->waits[x->n_waits++] = (struct op_wait){ later, earlier };
	return CUDA_SUCCESS;
}

static CUresult append_graph(struct graph_exec *x, const struct graph *g, size_t *first, size_t *last);

/* Append a node's step (or its child graph's steps); roots is the step that nodes without predecessors wait for. */
static CUresult append_node(struct graph_exec *x, struct node *n, bool has_begin, size_t begin)
{
	CUresult r;

	if (n->child) {
		r = append_graph(x, n->child, &n->first, &n->last);
	} else {
		r = add_step(x, n, &n->first);
		n->last = n->first;
	}
	for (size_t i = 0; !r && i < n->waits_for.n; i++)
		r = add_wait(x, n->first, n->waits_for.at[i]->last);
	if (!r && has_begin && !n->waits_for.n)
		r = add_wait(x, n->first, begin);
	return r;
}

/* Append the steps of a graph: *first is the step that runs before all others, *last the one that runs after them. */
static CUresult append_graph(struct graph_exec *x, const struct graph *g, size_t *first, size_t *last)
{
	size_t n_first = 0, n_last = 0, begin = 0, end = 0;
	struct node **order;
	CUresult r = soft_graph_sort(g, &order);

	if (r)
		return r;
	for (size_t i = 0; i < g->n_nodes; i++) {
		n_first += !order[i]->waits_for.n;
		n_last += !order[i]->n_dependents;
	}
	if (n_first != 1)
		r = add_step(x, NULL, &begin);
	for (size_t i = 0; !r && i < g->n_nodes; i++)
		r = append_node(x, order[i], n_first != 1, begin);
	*first = n_first == 1 ? order[0]->first : begin;
	*last = !g->n_nodes ? begin : order[g->n_nodes - 1]->last;
	if (!r && n_last > 1) {
		r = add_step(x, NULL, &end);
		for (size_t i = 0; !r && i < g->n_nodes; i++)
			if (!order[i]->n_dependents)
				r = add_wait(x, end, order[i]->last);
		*last = end;
	}
	free(order);
	return r;
}

void soft_exec_free(struct graph_exec *x)
{
	for (size_t i = 0; i < x->n_steps; i++) {
		soft_op_release(x->steps[i].work);
		if (x->steps[i].disabled)
			soft_op_release(x->steps[i].disabled);
	}
	if (x->last)
		soft_op_release(x->last);
	soft_handle_free(x->handle);
	free(x->steps);
	free(x->waits);
	free(x);
}

CUresult soft_exec_new(const struct graph *g, cuuint64_t flags, struct graph_exec **out)
{
	struct graph_exec *x = calloc(1, sizeof *x);
	size_t first, last;
	CUresult r;

	if (!x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	x->flags = flags;
	r = append_graph(x, g, &first, &last);
	if (r)
		soft_exec_free(x);
	else
		*out = x;
	return r;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	const unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
					 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	struct graph_exec *x = NULL;
	struct graph *g;
	CUresult r = out ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		r = soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuGraphInstantiate: launches by kernels are not supported");
	else if (flags & ~known || g->is_captured_now)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = soft_exec_new(g, flags, &x);
	if (!r) {
		x->handle = soft_handle_new(HANDLE_GRAPH_EXEC, x);
		if (x->handle)
			*out = x->handle;
		else
			r = CUDA_ERROR_OUT_OF_MEMORY;
		if (r)
			soft_exec_free(x);
	}
	soft_unlock();
	return r;
}

/* The interfaces of CUDA 10 and 11 have a text for the reason of a failure. */
EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *text, size_t text_bytes)
{
	if (error_node)
		*error_node = NULL;
	if (text && text_bytes)
		text[0] = '\0';
	return cuGraphInstantiateWithFlags(out, graph, 0);
}

EXPORT CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *text, size_t text_bytes)
{
	return cuGraphInstantiate_v2(out, graph, error_node, text, text_bytes);
}

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUresult r;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuGraphInstantiateWithFlags(out, graph, params->flags);
	params->hErrNode_out = NULL;
	params->result_out = r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
			     : r			   ? CUDA_GRAPH_INSTANTIATE_ERROR
							   : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return r;
}

/* Written by hand, because scripts/per_thread.py cannot generate it: the stream is a member of *params, and unused. */
EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return cuGraphInstantiateWithParams(out, graph, params);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle)
{
	struct graph_exec *x;
	CUresult r = soft_enter_exec(handle, &x);

	if (r)
		return r;
	soft_exec_free(x);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
	struct graph_exec *x;
	CUresult r = flags ? soft_enter_exec(handle, &x) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*flags = x->flags;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* ---- launching -------------------------------------------------------------------------------------- */

/* A capture of a launch gets a node with a copy of the executable graph. */
static CUresult capture_launch(struct stream *s, const struct graph_exec *x)
{
	static const struct node_list none;
	struct node **node = calloc(x->n_steps, sizeof *node), *n;
	struct graph *g = NULL;
	CUresult r = node ? soft_graph_new(&g) : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; !r && i < x->n_steps; i++) {
		x->steps[i].work->refs++;
		r = soft_node_new(g, x->steps[i].type, x->steps[i].work, NULL, &none, &node[i]);
	}
	for (size_t i = 0; !r && i < x->n_waits; i++)
		if (!soft_node_wait(node[x->waits[i].later], node[x->waits[i].earlier]))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	free(node);
	if (r)
		soft_graph_free(g);
	else
		r = soft_node_new(s->capture->graph, CU_GRAPH_NODE_TYPE_GRAPH, NULL, g, &s->tips, &n);
	if (!r) {
		s->tips.n = 0;
		r = soft_nodes_add(&s->tips, n) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

static CUresult launch_exec(struct stream *s, struct graph_exec *x)
{
	struct op **op = calloc(x->n_steps, sizeof *op);
	CUresult r = op ? soft_capture_check_legacy(s) : CUDA_ERROR_OUT_OF_MEMORY;
	size_t n = 0;

	for (; !r && n < x->n_steps; n++) {
		op[n] = soft_op_copy(x->steps[n].work, s);
		if (!op[n])
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!r) {
		struct op *last = op[n - 1], *before = x->last;

		last->refs++;
		x->last = last;  /* before the call, which may release the lock */
		r = soft_ops_submit(op, n, x->waits, x->n_waits, before);
		if (r) {  /* nothing was queued, and the lock was held all the time */
			x->last = before;
			soft_op_release(last);
		} else if (before) {
			soft_op_release(before);
		}
	}
	while (op && n--)
		if (op[n])
			soft_op_release(op[n]);
	free(op);
	return r;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	struct graph_exec *x;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	x = soft_handle_find(HANDLE_GRAPH_EXEC, handle);
	if (!x)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!s->capture)
		r = launch_exec(s, x);
	else if (s->capture->is_invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else
		r = capture_launch(s, x);
	soft_unlock();
	return r;
}

/* A launch copies nothing to a device, so there is nothing to do in advance. */
EXPORT CUresult cuGraphUpload(CUgraphExec handle, CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	if (s->capture)
		r = soft_capture_refuse(s, "cuGraphUpload");
	else if (!soft_handle_find(HANDLE_GRAPH_EXEC, handle))
		r = CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}
