/* cu_conditional_op.c — the work of conditional nodes: kernels set the condition's value, which selects the body that runs, or whether a
 * body runs again.
 *
 *     the node's operation ──> op, op, op ... of a body ──> body_end: reads the value; starts the body again, or ends the node's operation
 *
 * A body is an executable graph, to which the node's operation has a reference.  Its operations are queued when the node runs. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>

struct body_end {
	struct op op;
	struct conditional_op *node; /* holds a reference */
};

static struct graph_exec *choose_body(const struct conditional_op *c)
{
	uint32_t value = __atomic_load_n(c->condition->value, __ATOMIC_RELAXED);

	switch (c->type) {
	case CU_GRAPH_COND_TYPE_IF:
		return value ? c->bodies[0] : c->n_bodies > 1 ? c->bodies[1] : NULL;
	case CU_GRAPH_COND_TYPE_WHILE:
		return value ? c->bodies[0] : NULL;
	default:
		return value < c->n_bodies ? c->bodies[value] : NULL;
	}
}

static void end_body(struct op *op);
static void run_conditional(struct op *op);

static void release_body_end(struct op *op)
{
	soft_op_release(&CONTAINER(op, struct body_end, op)->node->op);
}

static const struct op_kind body_end_kind = { .ended = end_body, .release = release_body_end, .bytes = sizeof(struct body_end) };

/* Queue the operations of a body, and after them an operation of kind body_end_kind. */
static CUresult start_body(struct conditional_op *c, const struct graph_exec *x)
{
	struct op **op, *end = soft_op_new(c->op.stream, &body_end_kind);
	struct op_wait *waits = calloc(x->n_waits + 1, sizeof *waits);
	size_t n = x->n_steps;
	CUresult r = end && waits ? soft_exec_copy_steps(x, c->op.stream, 1, &op) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		free(end);
		free(waits);
		return r;
	}
	CONTAINER(end, struct body_end, op)->node = c;
	c->op.refs++;
	op[n] = end;
	for (size_t i = 0; i < x->n_waits; i++)
		waits[i] = x->waits[i];
	waits[x->n_waits] = (struct op_wait){ n, n - 1 };
	r = soft_ops_start(op, n + 1, waits, x->n_waits + 1);
	for (size_t i = 0; i <= n; i++)
		soft_op_release(op[i]);
	free(op);
	free(waits);
	return r;
}

static void end_body(struct op *op)
{
	struct conditional_op *c = CONTAINER(op, struct body_end, op)->node;

	if (op->ctx->fault || c->type != CU_GRAPH_COND_TYPE_WHILE)
		soft_op_end(&c->op, op->ctx->fault);
	else
		run_conditional(&c->op);
}

static void run_conditional(struct op *op)
{
	struct conditional_op *c = CONTAINER(op, struct conditional_op, op);
	const struct graph_exec *body = choose_body(c);
	CUresult r = body ? start_body(c, body) : CUDA_SUCCESS;

	if (r)
		soft_context_fail(op->ctx, r);
	if (r || !body)
		soft_op_end(op, r);
}

static void release_conditional(struct op *op)
{
	struct conditional_op *c = CONTAINER(op, struct conditional_op, op);

	for (unsigned i = 0; c->bodies && i < c->n_bodies; i++)
		if (c->bodies[i])
			soft_exec_unref(c->bodies[i]);
	free(c->bodies);
	soft_condition_release(c->condition);
}

static bool copy_conditional(struct op *op)
{
	struct conditional_op *c = CONTAINER(op, struct conditional_op, op);
	struct graph_exec **bodies = malloc(c->n_bodies * sizeof *bodies);

	if (!bodies)
		return false;
	for (unsigned i = 0; i < c->n_bodies; i++) {
		bodies[i] = c->bodies[i];
		bodies[i]->refs++;
	}
	c->bodies = bodies;
	c->condition->refs++;
	return true;
}

const struct op_kind soft_conditional_kind = {
	.run = run_conditional,
	.release = release_conditional,
	.copy = copy_conditional,
	.is_node = true,
	.node_type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
	.bytes = sizeof(struct conditional_op),
};

CUresult soft_conditional_new(const struct node *n, struct conditional_op **out)
{
	struct op *op = soft_op_new(NULL, &soft_conditional_kind);
	struct conditional_op *c = op ? CONTAINER(op, struct conditional_op, op) : NULL;

	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->condition = n->condition;
	c->condition->refs++;
	c->type = n->condition_type;
	c->n_bodies = n->n_bodies;
	c->bodies = calloc(n->n_bodies, sizeof(struct graph_exec *));
	if (!c->bodies) {
		soft_op_release(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = c;
	return CUDA_SUCCESS;
}

/* ---- the initial values of conditions ------------------------------------------------------------------------ */

struct assign_op { /* the first operation of a launch, which assigns the initial values of the conditions */
	struct op op;
	struct condition **list; /* owned list; each element holds a reference */
	size_t n;
};

static void run_assign(struct op *op)
{
	const struct assign_op *a = CONTAINER(op, const struct assign_op, op);

	for (size_t i = 0; i < a->n; i++)
		__atomic_store_n(a->list[i]->value, a->list[i]->first_value, __ATOMIC_RELAXED);
	soft_op_end(op, CUDA_SUCCESS);
}

static void release_assign(struct op *op)
{
	struct assign_op *a = CONTAINER(op, struct assign_op, op);

	for (size_t i = 0; i < a->n; i++)
		soft_condition_release(a->list[i]);
	free(a->list);
}

static bool copy_assign(struct op *op)
{
	struct assign_op *a = CONTAINER(op, struct assign_op, op);
	struct condition **list = malloc(a->n * sizeof *list);

	if (!list)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		list[i] = a->list[i];
		list[i]->refs++;
	}
	a->list = list;
	return true;
}

static const struct op_kind assign_kind = {
	.run = run_assign, .release = release_assign, .copy = copy_assign, .bytes = sizeof(struct assign_op)
};

static bool collect_conditions(const struct graph *g, struct assign_op *a)
{
	for (struct link *i = g->conditions.next; i != &g->conditions; i = i->next) {
		struct condition *c = CONTAINER(i, struct condition, link), **list;

		if (!c->is_assigned)
			continue;
		list = realloc(a->list, (a->n + 1) * sizeof *list);
		if (!list)
			return false;
		c->refs++;
		a->list = list;
		list[a->n++] = c;
	}
	for (struct link *i = g->nodes.next; i != &g->nodes; i = i->next) {
		const struct node *n = CONTAINER(i, struct node, link);

		if (n->child && !collect_conditions(n->child, a))
			return false;
		for (unsigned k = 0; k < n->n_bodies; k++)
			if (!collect_conditions(n->bodies[k], a))
				return false;
	}
	return true;
}

CUresult soft_assign_work(const struct graph *g, struct op **out)
{
	struct op *op = soft_op_new(NULL, &assign_kind);
	struct assign_op *a = op ? CONTAINER(op, struct assign_op, op) : NULL;
	bool complete = a && collect_conditions(g, a);

	*out = complete && a->n ? op : NULL;
	if (op && !*out)
		soft_op_release(op);
	return complete ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool soft_has_unused_condition(const struct graph *g)
{
	for (struct link *i = g->conditions.next; i != &g->conditions; i = i->next)
		if (!CONTAINER(i, struct condition, link)->has_node)
			return true;
	return false;
}
