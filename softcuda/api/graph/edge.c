/* edge.c — the dependencies between the nodes of a graph, and nodes that are destroyed. */
#include "softcuda/api/graph/graph_calls_internal.h"

#include <string.h>

/* A dependency here says: wait for all of the earlier node.  Other kinds have bytes that are not 0. */
CUresult soft_check_edge_data(const CUgraphEdgeData *data, size_t n)
{
	static const CUgraphEdgeData plain;

	for (size_t i = 0; data && i < n; i++)
		if (memcmp(&data[i], &plain, sizeof plain) != 0)
			return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "graph: a dependency on a part of a kernel is not supported");
	return CUDA_SUCCESS;
}

/* Find both ends of a dependency. */
static bool find_edge(const struct graph *g, CUgraphNode from, CUgraphNode to, struct node **earlier, struct node **later)
{
	*earlier = soft_handle_find(HANDLE_NODE, from);
	*later = soft_handle_find(HANDLE_NODE, to);
	return *earlier && *later && *earlier != *later && (*earlier)->graph == g && (*later)->graph == g;
}

static void remove_edge(struct node *later, struct node *earlier)
{
	struct node_list *l = &later->waits_for;

	for (size_t i = 0; i < l->n; i++) {
		if (l->at[i] != earlier)
			continue;
		memmove(&l->at[i], &l->at[i + 1], (--l->n - i) * sizeof *l->at);
		earlier->n_dependents--;
		return;
	}
}

EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
					  const CUgraphEdgeData *data, size_t n)
{
	struct node *earlier, *later;
	struct graph *g;
	CUresult r = n && (!from || !to) ? CUDA_ERROR_INVALID_VALUE : soft_check_edge_data(data, n);

	if (!r)
		r = soft_enter_graph(graph, &g);
	if (r)
		return r;
	for (size_t i = 0; !r && i < n; i++)  /* check all before one is added */
		if (!find_edge(g, from[i], to[i], &earlier, &later) || soft_nodes_have(&later->waits_for, earlier))
			r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < n; i++)
		if (!find_edge(g, from[i], to[i], &earlier, &later) || !soft_node_wait(later, earlier))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}

EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
					     const CUgraphEdgeData *data, size_t n)
{
	struct node *earlier, *later;
	struct graph *g;
	CUresult r = n && (!from || !to) ? CUDA_ERROR_INVALID_VALUE : soft_check_edge_data(data, n);

	if (!r)
		r = soft_enter_graph(graph, &g);
	if (r)
		return r;
	for (size_t i = 0; !r && i < n; i++)
		if (!find_edge(g, from[i], to[i], &earlier, &later) || !soft_nodes_have(&later->waits_for, earlier))
			r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < n; i++)
		if (find_edge(g, from[i], to[i], &earlier, &later))
			remove_edge(later, earlier);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return cuGraphRemoveDependencies_v2(graph, from, to, NULL, n);
}

/* ---- lists -------------------------------------------------------------------------------------------------- */

/* Lists that a call fills: `room` elements each; those beyond the n that were found become NULL or 0. */
struct edges {
	CUgraphNode *from, *to;      /* NULL: not wanted */
	CUgraphEdgeData *data;       /* NULL: not wanted */
	size_t room, n;
};

static void fill_in(struct edges *e, const struct node *earlier, const struct node *later)
{
	if (e->n < e->room) {
		if (e->from)
			e->from[e->n] = earlier->handle;
		if (e->to)
			e->to[e->n] = later->handle;
		if (e->data)
			memset(&e->data[e->n], 0, sizeof *e->data);
	}
	e->n++;
}

/* *n_out: before, the number of elements of the lists; afterwards, the number that was filled in, or would be. */
static void end_lists(struct edges *e, size_t *n_out)
{
	const bool counts = !e->from && !e->to;

	for (size_t i = e->n; i < e->room; i++) {
		if (e->from)
			e->from[i] = NULL;
		if (e->to)
			e->to[i] = NULL;
	}
	*n_out = counts || e->n < e->room ? e->n : e->room;
}

EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n_out)
{
	struct edges e = { from, to, data, n_out ? *n_out : 0, 0 };
	struct graph *g;
	CUresult r = n_out && !from == !to ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
		const struct node *later = CONTAINER(i, struct node, link);

		for (size_t k = 0; k < later->waits_for.n; k++)
			fill_in(&e, later->waits_for.at[k], later);
	}
	end_lists(&e, n_out);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n_out)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, n_out);
}

EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *n_out)
{
	struct edges e = { out, NULL, data, n_out ? *n_out : 0, 0 };
	struct node *n;
	CUresult r = n_out ? soft_enter_node(handle, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (size_t k = 0; k < n->waits_for.n; k++)
		fill_in(&e, n->waits_for.at[k], n);
	end_lists(&e, n_out);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *n_out)
{
	return cuGraphNodeGetDependencies_v2(node, out, NULL, n_out);
}

EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *n_out)
{
	struct edges e = { NULL, out, data, n_out ? *n_out : 0, 0 };
	struct node *n;
	CUresult r = n_out ? soft_enter_node(handle, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (struct link *i = n->graph->nodes.next; i != &n->graph->nodes; i = i->next) {
		const struct node *later = CONTAINER(i, struct node, link);

		if (soft_nodes_have(&later->waits_for, n))
			fill_in(&e, n, later);
	}
	end_lists(&e, n_out);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *n_out)
{
	return cuGraphNodeGetDependentNodes_v2(node, out, NULL, n_out);
}

/* ---- destroying --------------------------------------------------------------------------------------------- */

EXPORT CUresult cuGraphDestroyNode(CUgraphNode handle)
{
	struct node *n;
	CUresult r = soft_enter_node(handle, &n);

	if (r)
		return r;
	if (n->graph->is_captured_now) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		for (struct link *i = n->graph->nodes.next; i != &n->graph->nodes; i = i->next)
			remove_edge(CONTAINER(i, struct node, link), n);
		while (n->waits_for.n)
			remove_edge(n, n->waits_for.at[0]);
		soft_node_free(n);
	}
	soft_unlock();
	return r;
}
