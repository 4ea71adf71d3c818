/* cu_graph.c — creates, copies, queries and destroys graphs, and lists their nodes. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>
#include <string.h>

/* Take the lock for a call about a node of this type.  In a callback, an H200 allows such calls only for the types listed here. */
CUresult soft_lock_for_type(CUgraphNodeType type)
{
	switch (type) {
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_HOST:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return soft_lock_also_in_callback();
	default:
		return soft_lock_initialised();
	}
}

CUresult soft_find_graph(CUresult locked, CUgraph handle, struct graph **out)
{
	CUresult r = locked;

	if (r)
		return r;
	*out = soft_handle_find(HANDLE_GRAPH, handle);
	if (*out)
		return CUDA_SUCCESS;
	r = soft_refuse_handle(CUDA_ERROR_INVALID_VALUE, HANDLE_GRAPH, handle);
	soft_unlock();
	return r;
}

static CUresult find_node(CUresult locked, CUgraphNode handle, struct node **out)
{
	CUresult r = locked;

	if (r)
		return r;
	*out = soft_handle_find(HANDLE_NODE, handle);
	if (*out)
		return CUDA_SUCCESS;
	r = soft_refuse_handle(CUDA_ERROR_INVALID_VALUE, HANDLE_NODE, handle);
	soft_unlock();
	return r;
}

CUresult soft_enter_graph(CUgraph handle, struct graph **out)
{
	return soft_find_graph(soft_lock_initialised(), handle, out);
}

CUresult soft_enter_node(CUgraphNode handle, struct node **out)
{
	return find_node(soft_lock_initialised(), handle, out);
}

CUresult soft_enter_node_of(CUgraphNode handle, CUgraphNodeType type, struct node **out)
{
	CUresult r = find_node(soft_lock_for_type(type), handle, out);

	if (r || (*out)->type == type)
		return r;
	soft_unlock();
	return CUDA_ERROR_INVALID_VALUE;
}

bool soft_has_memory_nodes(const struct graph *g)
{
	return soft_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) || soft_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE);
}

EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
	struct graph *g;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	r = soft_graph_new(&g);
	if (!r)
		*out = g->handle;
	soft_unlock();
	return r;
}

/* Fails for a graph that a node owns, and for a graph that a stream is capturing, which cuStreamEndCapture() will return. */
EXPORT CUresult cuGraphDestroy(CUgraph handle)
{
	struct graph *g;
	CUresult r = soft_enter_graph(handle, &g);

	if (r)
		return r;
	if (g->owner || g->is_captured_now)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		soft_graph_free(g);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
	struct node *n;
	CUresult r = type ? soft_enter_node(handle, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*type = n->type;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* ---- lists of nodes ----------------------------------------------------------------------------------- */

/* The caller's list of nodes, with room for `room` handles; unused elements are set to NULL. */
struct filler {
	CUgraphNode *out; /* the caller's list; NULL: only the number of nodes is requested */
	size_t room, n;
};

static void fill_in(struct filler *f, const struct node *n)
{
	if (f->out && f->n < f->room)
		f->out[f->n] = n->handle;
	f->n++;
}

/* On entry, *n_out is the length of the list. Set it to the number of stored nodes or, without a list, to the number that exist. */
static void end_list(const struct filler *f, size_t *n_out)
{
	for (size_t i = f->n; f->out && i < f->room; i++)
		f->out[i] = NULL;
	*n_out = f->out && f->n > f->room ? f->room : f->n;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *out, size_t *n_out, bool only_roots)
{
	struct graph *g;
	struct filler f = { out, n_out ? *n_out : 0, 0 };
	CUresult r = n_out ? soft_enter_graph(handle, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
		struct node *n = CONTAINER(i, struct node, link);

		if (!only_roots || !n->waits_for.n)
			fill_in(&f, n);
	}
	end_list(&f, n_out);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n_nodes)
{
	return list_nodes(graph, nodes, n_nodes, false);
}

EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n_nodes)
{
	return list_nodes(graph, nodes, n_nodes, true);
}

/* ---- copies of graphs --------------------------------------------------------------------------------- */

EXPORT CUresult cuGraphClone(CUgraph *out, CUgraph handle)
{
	struct graph *g, *copy;
	CUresult r = out ? soft_enter_graph(handle, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = soft_graph_clone(g, &copy);
	if (!r)
		*out = copy->handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
	struct graph *g;
	const struct node *n;
	CUresult r = out ? soft_enter_graph(clone, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	n = soft_handle_find(HANDLE_NODE, original);
	*out = NULL;
	for (struct link *i = g->nodes.next; n && i != &g->nodes; i = i->next)
		if (CONTAINER(i, struct node, link)->cloned_from == n->id)
			*out = CONTAINER(i, struct node, link)->handle;
	soft_unlock();
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
