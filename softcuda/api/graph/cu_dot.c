/* cu_dot.c — cuGraphDebugDotPrint: writes a graph in the DOT language of Graphviz (dot -Tsvg). */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdio.h>

static const char *const type_names[] = {
	"KERNEL",       "MEMCPY",           "MEMSET",         "HOST",      "GRAPH",    "EMPTY",        "WAIT_EVENT",
	"EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL",
};

static bool wants(unsigned flags, unsigned flag)
{
	return flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static void print_kernel(FILE *f, const struct node *n, unsigned flags)
{
	const struct launch_op *l = CONTAINER(n->work, const struct launch_op, op);
	const gpul_exec_launch_config *c = &l->config;

	fprintf(f, "\\n%s", gpul_exec_kernel_info_of(c->kernel)->name);
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(f, "\\ngrid %ux%ux%u\\nblock %ux%ux%u\\nshared memory %u", c->grid[0], c->grid[1], c->grid[2], c->block[0],
			c->block[1], c->block[2], c->dynamic_shared_bytes);
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
		fprintf(f, "\\nfunction %p", (void *)l->handle);
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
		fprintf(f, "\\ncooperative %d", c->cooperative);
}

static void print_copy(FILE *f, const struct node *n, unsigned flags)
{
	const struct copy *c = &CONTAINER(n->work, const struct copy_op, op)->copy;

	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
		fprintf(f, "\\nto %p\\nfrom %p\\n%zu x %zu x %zu bytes", (void *)c->dst, (const void *)c->src, c->width_bytes, c->height,
			c->depth);
}

static void print_fill(FILE *f, const struct node *n, unsigned flags)
{
	const struct fill *c = &CONTAINER(n->work, const struct fill_op, op)->fill;

	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
		fprintf(f, "\\nto %p\\nvalue %#x of %u bytes\\n%zu x %zu", (void *)c->dst, c->value, c->element_bytes, c->width, c->height);
}

static void print_params(FILE *f, const struct node *n, unsigned flags)
{
	switch ((int)n->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		print_kernel(f, n, flags);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		print_copy(f, n, flags);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		print_fill(f, n, flags);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
			fprintf(f, "\\nuser data %p", CONTAINER(n->work, const struct host_call, op)->user);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
			fprintf(f, "\\nevent %p", soft_event_of_work(n->work)->handle);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) {
			const struct graph_memory *m = CONTAINER(n->work, const struct memory_op, op)->memory;

			fprintf(f, "\\n%zu bytes at %#llx", m->params.bytesize, (unsigned long long)m->params.dptr);
		}
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		if (n->condition && wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
			fprintf(f, "\\n%s\\nhandle %p",
				n->condition_type == CU_GRAPH_COND_TYPE_IF      ? "IF"
				: n->condition_type == CU_GRAPH_COND_TYPE_WHILE ? "WHILE"
										: "SWITCH",
				(void *)n->condition->value);
		break;
	default:
		break;
	}
}

static void print_graph(FILE *f, const struct graph *g, unsigned flags, unsigned *n_graphs);

static void print_node(FILE *f, const struct node *n, unsigned flags, unsigned *n_graphs)
{
	fprintf(f, "\"node_%llu\" [shape=\"box\" label=\"%s", (unsigned long long)n->id,
		(size_t)n->type < sizeof type_names / sizeof *type_names ? type_names[n->type] : "?");
	print_params(f, n, flags);
	if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
		fprintf(f, "\\nnode %p", n->handle);
	fprintf(f, "\"];\n");
	if (n->child)
		print_graph(f, n->child, flags, n_graphs);
	for (unsigned i = 0; i < n->n_bodies; i++)
		print_graph(f, n->bodies[i], flags, n_graphs);
}

static void print_graph(FILE *f, const struct graph *g, unsigned flags, unsigned *n_graphs)
{
	unsigned number = (*n_graphs)++;

	fprintf(f, "subgraph cluster_%u {\nlabel=\"graph_%u\"\n", number, number);
	for (const struct link *i = g->nodes.next; i != &g->nodes; i = i->next)
		print_node(f, CONTAINER(i, const struct node, link), flags, n_graphs);
	for (const struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
		const struct node *n = CONTAINER(i, const struct node, link);

		for (size_t k = 0; k < n->waits_for.n; k++)
			fprintf(f, "\"node_%llu\" -> \"node_%llu\"%s;\n", (unsigned long long)n->waits_for.at[k]->id,
				(unsigned long long)n->id, soft_is_plain_edge(&n->waits_for.data[k]) ? "" : " [style=\"dashed\"]");
	}
	fprintf(f, "}\n");
}

EXPORT CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	unsigned n_graphs = 0;
	struct graph *g;
	FILE *f;
	CUresult r = path ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	f = fopen(path, "we");
	if (f) {
		fprintf(f, "digraph dot {\n");
		print_graph(f, g, flags, &n_graphs);
		fprintf(f, "}\n");
	}
	if (!f || fclose(f))
		r = soft_refuse(CUDA_ERROR_OPERATING_SYSTEM, "cuGraphDebugDotPrint: cannot write %s", path);
	soft_unlock();
	return r;
}
