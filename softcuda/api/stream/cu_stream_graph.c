/* cu_stream_graph.c — creates, copies, sorts and frees graphs and their nodes. */
#include "softcuda/api/stream/cu_graph_internal.h"

#include <stdlib.h>
#include <string.h>

bool soft_nodes_have(const struct node_list *list, const struct node *node)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->at[i] == node)
			return true;
	return false;
}

static bool nodes_grow(struct node_list *list)
{
	size_t room = list->room ? 2 * list->room : 4;
	struct node **at = realloc(list->at, room * sizeof *at);
	CUgraphEdgeData *data;

	if (!at)
		return false;
	list->at = at;
	data = realloc(list->data, room * sizeof *data);
	if (!data)
		return false;
	list->data = data;
	list->room = room;
	return true;
}

bool soft_nodes_add(struct node_list *list, struct node *node, const CUgraphEdgeData *data)
{
	if (soft_nodes_have(list, node))
		return true;
	if (list->n == list->room && !nodes_grow(list))
		return false;
	list->data[list->n] = data ? *data : (CUgraphEdgeData){ 0 };
	list->at[list->n++] = node;
	return true;
}

void soft_nodes_remove(struct node_list *list, size_t index)
{
	size_t behind = --list->n - index;

	memmove(&list->at[index], &list->at[index + 1], behind * sizeof *list->at);
	memmove(&list->data[index], &list->data[index + 1], behind * sizeof *list->data);
}

void soft_nodes_clear(struct node_list *list)
{
	free(list->at);
	free(list->data);
	*list = (struct node_list){ 0 };
}

CUresult soft_graph_new(struct graph **out)
{
	struct graph *g = calloc(1, sizeof *g);

	if (!g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list_init(&g->nodes);
	list_init(&g->conditions);
	g->handle = soft_handle_new(HANDLE_GRAPH, g);
	if (!g->handle) {
		free(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = g;
	return CUDA_SUCCESS;
}

struct graph *soft_graph_parent(const struct graph *g)
{
	return g->owner ? g->owner->graph : NULL;
}

void soft_graph_free(struct graph *g)
{
	if (!g)
		return;
	while (!list_empty(&g->nodes))
		soft_node_free(CONTAINER(g->nodes.next, struct node, link));
	while (!list_empty(&g->conditions)) {
		struct condition *c = CONTAINER(g->conditions.next, struct condition, link);

		list_remove(&c->link);
		soft_condition_release(c);
	}
	soft_user_objects_clear(&g->objects);
	soft_handle_free(g->handle);
	free(g);
}

/* ---- nodes ------------------------------------------------------------------------------- */

bool soft_node_wait(struct node *n, struct node *for_node, const CUgraphEdgeData *data)
{
	size_t before = n->waits_for.n;

	if (!soft_nodes_add(&n->waits_for, for_node, data))
		return false;
	for_node->n_dependents += n->waits_for.n - before;
	return true;
}

void soft_node_set_work(struct node *n, struct op *work)
{
	if (n->work)
		soft_op_release(n->work);
	n->work = work;
	free(n->arguments);
	n->arguments = NULL;
}

/* Free a node that no other node waits for, or a node of a graph that is being freed. */
void soft_node_free(struct node *n)
{
	list_remove(&n->link);
	n->graph->n_nodes--;
	soft_handle_free(n->handle);
	soft_node_set_work(n, NULL);
	soft_graph_free(n->child);
	for (unsigned i = 0; i < n->n_bodies; i++)
		soft_graph_free(n->bodies[i]);
	soft_condition_release(n->condition);
	soft_nodes_clear(&n->waits_for);
	free(n->bodies);
	free(n->body_handles);
	free(n->attributes);
	free(n);
}

CUresult soft_node_new(struct graph *g, CUgraphNodeType type, struct op *work, struct graph *child, const struct node_list *waits_for,
		       struct node **out)
{
	struct node *n = calloc(1, sizeof *n);

	if (!n || !(n->handle = soft_handle_new(HANDLE_NODE, n))) {
		free(n);
		if (work)
			soft_op_release(work);
		soft_graph_free(child);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	n->graph = g;
	n->type = type;
	n->id = ++soft.next_id;
	n->work = work;
	n->child = child;
	if (child)
		child->owner = n;
	list_append(&g->nodes, &n->link);
	g->n_nodes++;
	for (size_t i = 0; i < waits_for->n; i++) {
		if (soft_node_wait(n, waits_for->at[i], &waits_for->data[i]))
			continue;
		while (i--)
			waits_for->at[i]->n_dependents--;
		soft_node_free(n);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = n;
	return CUDA_SUCCESS;
}

/* ---- whole graphs ------------------------------------------------------------------------ */

static CUresult clone_node(struct graph *to, struct node *n)
{
	static const struct node_list none;
	struct graph *child = NULL;
	CUresult r = n->child ? soft_graph_clone(n->child, &child) : CUDA_SUCCESS;

	if (r)
		return r;
	if (n->work)
		n->work->refs++;
	r = soft_node_new(to, n->type, n->work, child, &none, &n->copy);
	if (r)
		return r;
	n->copy->cloned_from = n->id;
	if (n->n_attributes) {
		n->copy->attributes = malloc(n->n_attributes * sizeof *n->attributes);
		if (!n->copy->attributes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(n->copy->attributes, n->attributes, n->n_attributes * sizeof *n->attributes);
		n->copy->n_attributes = n->n_attributes;
	}
	return CUDA_SUCCESS;
}

bool soft_graph_has(const struct graph *g, CUgraphNodeType type)
{
	for (const struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
		const struct node *n = CONTAINER(i, struct node, link);

		if (n->type == type || (n->child && soft_graph_has(n->child, type)))
			return true;
		for (unsigned k = 0; k < n->n_bodies; k++)
			if (soft_graph_has(n->bodies[k], type))
				return true;
	}
	return false;
}

CUresult soft_graph_clone(const struct graph *g, struct graph **out)
{
	struct graph *copy;
	CUresult r;

	if (soft_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) || soft_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE) ||
	    soft_graph_has(g, CU_GRAPH_NODE_TYPE_CONDITIONAL))
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
				   "the graph allocates or frees memory, or has a conditional node, so it cannot be copied");
	r = soft_graph_new(&copy);
	if (!r && !soft_user_objects_copy(&copy->objects, &g->objects)) {
		soft_graph_free(copy);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r)
		return r;
	for (struct link *i = g->nodes.next; !r && i != &g->nodes; i = i->next)
		r = clone_node(copy, CONTAINER(i, struct node, link));
	for (struct link *i = g->nodes.next; !r && i != &g->nodes; i = i->next) {
		struct node *n = CONTAINER(i, struct node, link);

		for (size_t k = 0; k < n->waits_for.n; k++)
			if (!soft_node_wait(n->copy, n->waits_for.at[k]->copy, &n->waits_for.data[k]))
				r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r)
		soft_graph_free(copy);
	else
		*out = copy;
	return r;
}

static bool waits_for_sorted(const struct node *n)
{
	for (size_t i = 0; i < n->waits_for.n; i++)
		if (!n->waits_for.at[i]->is_sorted)
			return false;
	return true;
}

/* Sort in passes, each of which appends the nodes whose predecessors are in the list. Captured nodes need one pass: they are in order. */
CUresult soft_graph_sort(const struct graph *g, struct node ***out)
{
	struct node **order = malloc((g->n_nodes + 1) * sizeof *order);
	size_t n_sorted = 0, before;

	if (!order)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct link *i = g->nodes.next; i != &g->nodes; i = i->next)
		CONTAINER(i, struct node, link)->is_sorted = false;
	do {
		before = n_sorted;
		for (struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
			struct node *n = CONTAINER(i, struct node, link);

			if (n->is_sorted || !waits_for_sorted(n))
				continue;
			n->is_sorted = true;
			order[n_sorted++] = n;
		}
	} while (n_sorted > before);
	if (n_sorted < g->n_nodes) {
		free(order);
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "graph: %zu of its %zu nodes wait for each other in a cycle",
				   g->n_nodes - n_sorted, g->n_nodes);
	}
	*out = order;
	return CUDA_SUCCESS;
}
