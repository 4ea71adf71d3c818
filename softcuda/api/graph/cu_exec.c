/* cu_exec.c — instantiates and launches executable graphs.
 *
 *     graph      a ──> b ──> d        steps    0 a   1 b   2 c   3 d
 *                └──> c ──┘           waits    1-0   2-0   3-1   3-2      (later-earlier)
 *
 * A launch copies the work of each step to a new operation, and queues all operations together (soft_ops_submit). So an executable
 * graph can be changed, destroyed or launched again while it runs. If a graph has several first or last nodes, a step without work
 * (a marker) is added before or after all its nodes. If conditions need initial values, a step that assigns them is added as the
 * first step. If a launch must keep user objects until it has ended (cu_exec_keep.c), a step for them is added as the last one. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>

CUresult soft_find_exec(CUresult locked, CUgraphExec handle, struct graph_exec **out)
{
	CUresult r = locked;

	if (r)
		return r;
	*out = soft_handle_find(HANDLE_GRAPH_EXEC, handle);
	if (*out)
		return CUDA_SUCCESS;
	r = soft_refuse_handle(CUDA_ERROR_INVALID_VALUE, HANDLE_GRAPH_EXEC, handle);
	soft_unlock();
	return r;
}

CUresult soft_enter_exec(CUgraphExec handle, struct graph_exec **out)
{
	return soft_find_exec(soft_lock_initialised(), handle, out);
}

static CUresult new_body(const struct graph *g, struct graph_exec **out);

/* ---- instantiating ---------------------------------------------------------------------------------- */

/* Create the work of a conditional node, and an executable graph for each of its bodies. */
static CUresult conditional_work(const struct node *n, struct op **out)
{
	struct conditional_op *c;
	CUresult r = soft_conditional_new(n, &c);

	if (r)
		return r;
	for (unsigned i = 0; !r && i < n->n_bodies; i++)
		r = new_body(n->bodies[i], &c->bodies[i]);
	if (r)
		soft_op_release(&c->op);
	else
		*out = &c->op;
	return r;
}

/* Append the step of a node; n NULL: a step that has neither a node nor work. */
static CUresult add_step(struct graph_exec *x, const struct node *n, size_t *index)
{
	struct op *work = n ? n->work : NULL;
	CUresult r = CUDA_SUCCESS;

	if (work)
		work->refs++;
	else if (n && n->bodies)
		r = conditional_work(n, &work);
	else if (!(work = soft_op_new(NULL, &soft_marker)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r ? r : soft_exec_add_work(x, n, work, index);
}

static CUresult append_graph(struct graph_exec *x, const struct graph *g, size_t *first, size_t *last);

static CUresult append_child(struct graph_exec *x, struct node *n)
{
	const size_t first_step = x->n_steps, first_wait = x->n_waits;
	CUresult r = append_graph(x, n->child, &n->first, &n->last);
	void *list = x->children;

	if (r)
		return r;
	if (!soft_exec_grow(&list, x->n_children, &x->children_room, sizeof *x->children))
		return CUDA_ERROR_OUT_OF_MEMORY;
	x->children = list;
	x->children[x->n_children++] = (struct exec_child){ n->id, n->cloned_from, { first_step, x->n_steps, first_wait, x->n_waits } };
	return CUDA_SUCCESS;
}

/* Append the step of a node, or the steps of its child graph; has_begin: nodes without predecessors wait for the step `begin`. */
static CUresult append_node(struct graph_exec *x, struct node *n, bool has_begin, size_t begin)
{
	CUresult r;

	if (n->child) {
		r = append_child(x, n);
	} else {
		r = add_step(x, n, &n->first);
		n->last = n->first;
	}
	for (size_t i = 0; !r && i < n->waits_for.n; i++)
		r = soft_exec_add_wait(x, n->first, n->waits_for.at[i]->last);
	if (!r && has_begin && !n->waits_for.n)
		r = soft_exec_add_wait(x, n->first, begin);
	return r;
}

/* Append the steps of a graph.  *first and *last are set to the steps that run before and after all others. */
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
				r = soft_exec_add_wait(x, end, order[i]->last);
		*last = end;
	}
	free(order);
	return r;
}

/* ---- whole graphs ----------------------------------------------------------------------------------- */

/* Append the steps of a graph, and record the range of these steps in x->graph. */
static CUresult append_whole(struct graph_exec *x, const struct graph *g, size_t *first, size_t *last)
{
	CUresult r;

	x->graph.first_step = x->n_steps;
	x->graph.first_wait = x->n_waits;
	r = append_graph(x, g, first, last);
	x->graph.end_step = x->n_steps;
	x->graph.end_wait = x->n_waits;
	return r;
}

static CUresult new_exec(struct graph_exec **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->refs = 1;
	return CUDA_SUCCESS;
}

static CUresult new_body(const struct graph *g, struct graph_exec **out)
{
	size_t first, last;
	CUresult r = new_exec(out);

	if (r)
		return r;
	r = append_whole(*out, g, &first, &last);
	if (r) {
		soft_exec_unref(*out);
		*out = NULL;
	}
	return r;
}

/* Return a node that is on a cycle, after soft_graph_sort() has failed; NULL: there is none. */
static CUgraphNode find_cycle(const struct graph *g)
{
	for (struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
		const struct node *n = CONTAINER(i, struct node, link);
		struct node **order = NULL;

		if (!n->is_sorted)
			return n->handle;
		if (n->child && soft_graph_sort(n->child, &order))
			return find_cycle(n->child);
		free(order);
	}
	return NULL;
}

CUresult soft_exec_new(struct graph *g, cuuint64_t flags, struct graph_exec **out, CUgraphNode *bad)
{
	struct op *assign = NULL;
	struct graph_exec *x;
	size_t first, last, index = 0;
	CUresult r = new_exec(&x);

	if (r)
		return r;
	*bad = NULL;
	x->flags = flags;
	r = soft_assign_work(g, &assign);
	if (!r && assign)
		r = soft_exec_add_work(x, NULL, assign, &index);
	if (!r)
		r = append_whole(x, g, &first, &last);
	if (r == CUDA_ERROR_INVALID_VALUE)
		*bad = find_cycle(g);
	if (!r && assign)
		r = soft_exec_add_wait(x, first, index);
	if (!r)
		r = soft_exec_keep_objects(x, g);
	if (r)
		soft_exec_unref(x);
	else
		*out = x;
	return r;
}

/* ---- the calls -------------------------------------------------------------------------------------- */

/* Check whether kernels could launch the graph: only some types of nodes may occur, all on *device (NULL: not known yet). */
static CUgraphInstantiateResult check_device_launch(const struct graph *g, const struct device **device)
{
	CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_SUCCESS;

	for (const struct link *i = g->nodes.next; !why && i != &g->nodes; i = i->next) {
		const struct node *n = CONTAINER(i, struct node, link);
		const struct device *d;

		if (n->child)
			why = check_device_launch(n->child, device);
		else if (n->type != CU_GRAPH_NODE_TYPE_KERNEL && n->type != CU_GRAPH_NODE_TYPE_MEMCPY &&
			 n->type != CU_GRAPH_NODE_TYPE_MEMSET)
			why = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
		if (n->type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		d = &soft.device[CONTAINER(n->work, struct launch_op, op)->config.device];
		if (*device && *device != d)
			why = CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
		*device = d;
	}
	return why;
}

static CUresult check_instantiate(const struct graph *g, cuuint64_t flags, CUgraphInstantiateResult *why)
{
	const cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
				 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	const struct device *device = NULL;

	*why = CUDA_GRAPH_INSTANTIATE_ERROR;
	if (flags & ~known || g->is_captured_now || g->owner)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
		if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
			return CUDA_ERROR_INVALID_VALUE;
		*why = check_device_launch(g, &device);
		if (*why)
			return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
					   "cuGraphInstantiate: a graph that kernels launch can contain only kernels, copies and fills of "
					   "one device");
		*why = CUDA_GRAPH_INSTANTIATE_ERROR;
	}
	if (soft_has_unused_condition(g)) {
		*why = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphInstantiate: no node uses one of the graph's conditional handles");
	}
	if (g->only_exec && soft_has_memory_nodes(g))
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuGraphInstantiate: a graph that allocates or frees memory can have one "
							     "executable graph at a time: call cuGraphExecDestroy");
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, cuuint64_t flags, CUgraphNode *bad, CUgraphInstantiateResult *why)
{
	struct graph_exec *x = NULL;
	struct context *ctx;
	struct graph *g;
	CUresult r = out ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	*bad = NULL;
	*why = CUDA_GRAPH_INSTANTIATE_ERROR;
	if (r)
		return r;
	r = soft_find_context(soft_current(), &ctx);
	if (!r)
		r = check_instantiate(g, flags, why);
	if (!r) {
		r = soft_exec_new(g, flags, &x, bad);
		if (*bad)
			*why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
	}
	if (!r) {
		x->handle = soft_handle_new(HANDLE_GRAPH_EXEC, x);
		if (!x->handle) {
			soft_exec_unref(x);
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (!r) {
		*out = x->handle;
		*why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
		if (soft_has_memory_nodes(g)) {
			g->only_exec = x;
			x->only_of = g->handle;
		}
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	CUgraphInstantiateResult why;
	CUgraphNode bad;

	return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE : instantiate(out, graph, flags, &bad, &why);
}

/* CUDA 10 and 11 have this version of the call, with an additional buffer for the reason of a failure. */
EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *text, size_t text_bytes)
{
	CUgraphInstantiateResult why;
	CUgraphNode bad;
	CUresult r = instantiate(out, graph, 0, &bad, &why);

	if (error_node)
		*error_node = bad;
	if (text && text_bytes)
		text[0] = '\0';
	return r;
}

EXPORT CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *text, size_t text_bytes)
{
	return cuGraphInstantiate_v2(out, graph, error_node, text, text_bytes);
}

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return params ? instantiate(out, graph, params->flags, &params->hErrNode_out, &params->result_out) : CUDA_ERROR_INVALID_VALUE;
}

/* Written by hand, because scripts/per_thread.py cannot generate it: the stream is a member of *params, and unused. */
EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return cuGraphInstantiateWithParams(out, graph, params);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle)
{
	struct graph_exec *x;
	struct graph *g;
	CUresult r = soft_enter_exec(handle, &x);

	if (r)
		return r;
	g = soft_handle_find(HANDLE_GRAPH, x->only_of);
	if (g && g->only_exec == x)
		g->only_exec = NULL;
	soft_handle_free(x->handle);
	x->handle = NULL;
	soft_exec_unref(x);
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

/* If the stream is capturing, the launch adds a node whose child graph is a copy of the executable graph. */
static CUresult capture_launch(struct stream *s, const struct graph_exec *x)
{
	static const struct node_list none;
	struct node **node = calloc(x->n_steps, sizeof *node), *n;
	struct graph *g = NULL;
	CUresult r = node ? soft_graph_new(&g) : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; !r && i < x->n_steps; i++) {
		struct op *work = x->steps[i].work;

		if (soft_exec_is_keep(&x->steps[i])) /* skip the step that holds user objects: the new graph gets its own references */
			work = NULL;
		else
			work->refs++;
		r = soft_node_new(g, x->steps[i].type, work, NULL, &none, &node[i]);
	}
	if (!r && !soft_user_objects_copy(&g->objects, soft_exec_objects(x)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < x->n_waits; i++)
		if (!soft_node_wait(node[x->waits[i].later], node[x->waits[i].earlier], NULL))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	free(node);
	if (r)
		soft_graph_free(g);
	else
		r = soft_node_new(s->capture->graph, CU_GRAPH_NODE_TYPE_GRAPH, NULL, g, &s->tips, &n);
	if (!r) {
		n->is_captured = true;
		s->tips.n = 0;
		r = soft_nodes_add(&s->tips, n, NULL) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

static struct graph_memory *memory_of(const struct exec_step *step, CUgraphNodeType type)
{
	return step->type == type ? CONTAINER(step->work, const struct memory_op, op)->memory : NULL;
}

/* Check that memory that the graph will allocate is not allocated now, and that memory that it will free is allocated now. */
static CUresult check_memory(const struct graph_exec *x)
{
	for (size_t i = 0; i < x->n_steps; i++) {
		const struct graph_memory *m = memory_of(&x->steps[i], CU_GRAPH_NODE_TYPE_MEM_ALLOC);

		if (m && m->will_be_live && !(x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
			return soft_refuse(CUDA_ERROR_INVALID_VALUE,
					   "cuGraphLaunch: memory that the last launch allocated was not freed; free "
					   "it, or instantiate with CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH");
		if (m && !soft_graph_memory_fits(m))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* Record which memory of the graph will be allocated after the launch. */
static void expect_memory(const struct graph_exec *x)
{
	struct graph_memory *m;

	for (size_t i = 0; i < x->n_steps; i++)
		if ((m = memory_of(&x->steps[i], CU_GRAPH_NODE_TYPE_MEM_ALLOC)))
			m->will_be_live = true;
	for (size_t i = 0; i < x->n_steps; i++)
		if ((m = memory_of(&x->steps[i], CU_GRAPH_NODE_TYPE_MEM_FREE)))
			m->will_be_live = false;
}

static CUresult launch_exec(struct stream *s, struct graph_exec *x)
{
	struct op **op, *last, *before = x->last;
	size_t n = x->n_steps;
	CUresult r = soft_capture_check_legacy(s);

	if (!r)
		r = check_memory(x);
	for (size_t i = 0; i < n && !r; i++)
		r = soft_launch_check(x->steps[i].work);
	if (!r)
		r = soft_exec_copy_steps(x, s, 0, &op);
	if (r)
		return r;
	expect_memory(x);
	last = op[n - 1];
	last->refs++;
	x->last = last; /* set before soft_ops_submit(), which may release the lock */
	r = soft_ops_submit(op, n, x->waits, x->n_waits, before);
	if (r) { /* on failure nothing was queued, and the lock was not released */
		x->last = before;
		soft_op_release(last);
	} else if (before) {
		soft_op_release(before);
	}
	while (n--)
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

/* Does nothing, because a launch needs no data on a device. */
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
