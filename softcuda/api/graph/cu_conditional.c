/* cu_conditional.c — the calls that create conditional nodes; cu_conditional_op.c runs them. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>

EXPORT CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph graph, CUcontext handle, unsigned int value,
					       unsigned int flags)
{
	struct graph *g;
	struct context *ctx;
	struct condition *c;
	CUresult r = out && !(flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = handle ? soft_find_context(handle, &ctx) : soft_current_context(&ctx);
	if (!r)
		r = soft_condition_new(g, value, flags & CU_GRAPH_COND_ASSIGN_DEFAULT, &c);
	if (!r)
		*out = (uintptr_t)c->value;
	soft_unlock();
	return r;
}

static bool is_number_of_bodies(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	switch (p->type) {
	case CU_GRAPH_COND_TYPE_IF:
		return p->size == 1 || p->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return p->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return p->size > 0;
	}
	return false;
}

/* Find the condition of a handle in the graph and in all graphs that contain it; NULL: not found. */
static struct condition *find_condition(const struct graph *g, CUgraphConditionalHandle handle)
{
	struct condition *c = NULL;

	for (; g && !c; g = soft_graph_parent(g))
		c = soft_condition_find(g, handle);
	return c;
}

/* Create the body graphs of a new conditional node, which are empty at first. */
static CUresult add_bodies(struct node *n, unsigned count)
{
	CUresult r = CUDA_SUCCESS;

	n->bodies = calloc(count, sizeof(struct graph *));
	n->body_handles = calloc(count, sizeof *n->body_handles);
	if (!n->bodies || !n->body_handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (!r && n->n_bodies < count) {
		struct graph *body;

		r = soft_graph_new(&body);
		if (r)
			break;
		body->owner = n;
		n->body_handles[n->n_bodies] = body->handle;
		n->bodies[n->n_bodies++] = body;
	}
	return r;
}

CUresult soft_add_conditional(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
			      CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	struct node_list list = { 0 };
	struct condition *c;
	struct graph *g;
	struct node *node = NULL;
	CUresult r = out && is_number_of_bodies(p) ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	c = find_condition(g, p->handle);
	if (!c || c->has_node)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuGraphAddNode: the conditional handle is from an unrelated graph, or another node uses it");
	if (!r)
		r = soft_find_nodes(g, waits_for, data, n, &list);
	if (!r)
		r = soft_node_new(g, CU_GRAPH_NODE_TYPE_CONDITIONAL, NULL, NULL, &list, &node);
	if (!r && (r = add_bodies(node, p->size))) {
		for (size_t i = 0; i < list.n; i++)
			list.at[i]->n_dependents--;
		soft_node_free(node);
	}
	if (!r) {
		c->refs++;
		c->has_node = true;
		node->condition = c;
		node->condition_type = p->type;
		p->phGraph_out = node->body_handles;
		*out = node->handle;
	}
	soft_nodes_clear(&list);
	soft_unlock();
	return r;
}
