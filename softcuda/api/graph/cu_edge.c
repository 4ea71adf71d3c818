/* cu_edge.c — adds, removes and lists the dependencies between the nodes of a graph, and destroys nodes. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <string.h>

bool soft_is_plain_edge(const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;

	return memcmp(data, &plain, sizeof plain) == 0;
}

/* Check the edge data of dependencies.  Edge data may let a dependency wait only until the blocks of a kernel have started, or have
 * executed griddepcontrol.  Here a dependency always waits for the whole kernel, which CUDA allows; the edge data is only stored. */
CUresult soft_check_edge_data(const CUgraphEdgeData *data, size_t n)
{
	for (size_t i = 0; data && i < n; i++) {
		CUgraphEdgeData d = data[i];

		if (d.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER || d.type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
			return CUDA_ERROR_INVALID_VALUE;
		d.from_port = d.type = 0;
		if (!soft_is_plain_edge(&d))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* Find the two nodes of a dependency. */
static bool find_edge(const struct graph *g, CUgraphNode from, CUgraphNode to, struct node **earlier, struct node **later)
{
	*earlier = soft_handle_find(HANDLE_NODE, from);
	*later = soft_handle_find(HANDLE_NODE, to);
	return *earlier && *later && *earlier != *later && (*earlier)->graph == g && (*later)->graph == g;
}

/* Returns true if the dependency exists and has this edge data; data NULL: all bytes of the edge data are 0. */
static bool has_edge(const struct node *later, const struct node *earlier, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;
	const struct node_list *l = &later->waits_for;

	for (size_t i = 0; i < l->n; i++)
		if (l->at[i] == earlier)
			return memcmp(&l->data[i], data ? data : &plain, sizeof plain) == 0;
	return false;
}

static void remove_edge(struct node *later, struct node *earlier)
{
	struct node_list *l = &later->waits_for;

	for (size_t i = 0; i < l->n; i++) {
		if (l->at[i] != earlier)
			continue;
		soft_nodes_remove(l, i);
		earlier->n_dependents--;
		return;
	}
}

EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
					  size_t n)
{
	struct node *earlier, *later;
	struct graph *g;
	CUresult r = n && (!from || !to) ? CUDA_ERROR_INVALID_VALUE : soft_check_edge_data(data, n);

	if (!r)
		r = soft_find_graph(soft_lock_also_in_callback(), graph, &g);
	if (r)
		return r;
	for (size_t i = 0; !r && i < n; i++) /* check all dependencies before adding the first one */
		if (!find_edge(g, from[i], to[i], &earlier, &later) || soft_nodes_have(&later->waits_for, earlier))
			r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < n; i++)
		if (!find_edge(g, from[i], to[i], &earlier, &later) || !soft_node_wait(later, earlier, data ? &data[i] : NULL))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}

EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
					     size_t n)
{
	struct node *earlier, *later;
	struct graph *g;
	CUresult r = n && (!from || !to) ? CUDA_ERROR_INVALID_VALUE : soft_check_edge_data(data, n);

	if (!r)
		r = soft_enter_graph(graph, &g);
	if (r)
		return r;
	if (soft_has_memory_nodes(g))
		r = soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "the graph allocates or frees memory, so its dependencies cannot be removed");
	for (size_t i = 0; !r && i < n; i++)
		if (!find_edge(g, from[i], to[i], &earlier, &later) || !has_edge(later, earlier, data ? &data[i] : NULL))
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

/* The lists that a call fills, each of length `room`.  If fewer elements are found, the rest is set to NULL or 0. */
struct edges {
	CUgraphNode *from, *to; /* the caller's lists of nodes, each of which may be NULL */
	CUgraphEdgeData *data;  /* the caller's list of edge data; may be NULL */
	size_t room, n;
	bool lost; /* true: an edge has nonzero data, but the caller passed no list for the data */
};

static void fill_in(struct edges *e, const struct node *earlier, const struct node *later, const CUgraphEdgeData *data)
{
	if (e->n < e->room) {
		if (e->from)
			e->from[e->n] = earlier->handle;
		if (e->to)
			e->to[e->n] = later->handle;
		if (e->data)
			e->data[e->n] = *data;
		else if (!soft_is_plain_edge(data))
			e->lost = true;
	}
	e->n++;
}

/* On entry, *n_out is the length of the lists. Set it to the number of stored elements or, without lists, to the number that exist. */
static void end_lists(struct edges *e, size_t *n_out)
{
	const bool counts = !e->from && !e->to;

	for (size_t i = e->n; i < e->room && !counts; i++) {
		if (e->from)
			e->from[i] = NULL;
		if (e->to)
			e->to[i] = NULL;
	}
	*n_out = counts || e->n < e->room ? e->n : e->room;
}

EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n_out)
{
	struct edges e = { from, to, data, n_out ? *n_out : 0, 0, false };
	struct graph *g;
	CUresult r = n_out && !from == !to ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
		const struct node *later = CONTAINER(i, struct node, link);

		for (size_t k = 0; k < later->waits_for.n; k++)
			fill_in(&e, later->waits_for.at[k], later, &later->waits_for.data[k]);
	}
	end_lists(&e, n_out);
	soft_unlock();
	return e.lost ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n_out)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, n_out);
}

EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *n_out)
{
	struct edges e = { out, NULL, data, n_out ? *n_out : 0, 0, false };
	struct node *n;
	CUresult r = n_out ? soft_enter_node(handle, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (size_t k = 0; k < n->waits_for.n; k++)
		fill_in(&e, n->waits_for.at[k], n, &n->waits_for.data[k]);
	end_lists(&e, n_out);
	soft_unlock();
	return e.lost ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *n_out)
{
	return cuGraphNodeGetDependencies_v2(node, out, NULL, n_out);
}

EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *n_out)
{
	struct edges e = { NULL, out, data, n_out ? *n_out : 0, 0, false };
	struct node *n;
	CUresult r = n_out ? soft_enter_node(handle, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!out && !data) { /* a faster way to count, because NVIDIA Warp (Python) gets the number of edges of thousands of nodes */
		*n_out = n->n_dependents;
		soft_unlock();
		return CUDA_SUCCESS;
	}
	for (struct link *i = n->graph->nodes.next; i != &n->graph->nodes && e.n < n->n_dependents; i = i->next) {
		const struct node *later = CONTAINER(i, struct node, link);

		for (size_t k = 0; k < later->waits_for.n; k++)
			if (later->waits_for.at[k] == n)
				fill_in(&e, n, later, &later->waits_for.data[k]);
	}
	end_lists(&e, n_out);
	soft_unlock();
	return e.lost ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
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
	} else if (soft_has_memory_nodes(n->graph)) {
		r = soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "the graph allocates or frees memory, so its nodes cannot be destroyed");
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
