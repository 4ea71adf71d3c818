/* cu_exec_keep.c — keeps the user objects of an executable graph.  Its last step and each unfinished launch hold references to
 * them.  After an update, the step refers to new objects, while unfinished launches keep the old ones. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>

struct kept_objects {
	unsigned refs; /* number of operations that refer to these objects */
	struct user_objects list;
};

struct keep_op {
	struct op op;
	struct kept_objects *objects; /* holds a reference; NULL: the launch has ended */
};

static void unref_objects(struct kept_objects *k)
{
	if (--k->refs)
		return;
	soft_user_objects_clear(&k->list);
	free(k);
}

static bool copy_keep(struct op *op)
{
	CONTAINER(op, struct keep_op, op)->objects->refs++;
	return true;
}

/* Release the objects when the launch ends, because the executable graph may keep this operation, but must not keep the objects alive. */
static void drop_objects(struct op *op)
{
	struct kept_objects *k = CONTAINER(op, struct keep_op, op)->objects;

	CONTAINER(op, struct keep_op, op)->objects = NULL;
	if (k)
		unref_objects(k);
}

static const struct op_kind keep_kind = {
	.ended = drop_objects,
	.release = drop_objects,
	.copy = copy_keep,
	.bytes = sizeof(struct keep_op),
};

bool soft_exec_is_keep(const struct exec_step *step)
{
	return step->work->kind == &keep_kind;
}

const struct user_objects *soft_exec_objects(const struct graph_exec *x)
{
	static const struct user_objects none;

	if (!x->n_steps || !soft_exec_is_keep(&x->steps[x->n_steps - 1]))
		return &none;
	return &CONTAINER(x->steps[x->n_steps - 1].work, const struct keep_op, op)->objects->list;
}

/* Collect the user objects of a graph and of the graphs in its nodes. */
static bool collect_objects(struct user_objects *list, const struct graph *g)
{
	bool done = soft_user_objects_copy(list, &g->objects);

	for (struct link *i = g->nodes.next; done && i != &g->nodes; i = i->next) {
		const struct node *n = CONTAINER(i, struct node, link);

		done = !n->child || collect_objects(list, n->child);
		for (unsigned k = 0; done && k < n->n_bodies; k++)
			done = collect_objects(list, n->bodies[k]);
	}
	return done;
}

/* Create the operation that holds references to the objects.  It takes over the references of the list, even on failure. */
static CUresult keep_work(struct user_objects *list, struct op **out)
{
	struct kept_objects *k = calloc(1, sizeof *k);
	struct op *op = k ? soft_op_new(NULL, &keep_kind) : NULL;

	if (!op) {
		free(k);
		soft_user_objects_clear(list);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*k = (struct kept_objects){ .refs = 1, .list = *list };
	CONTAINER(op, struct keep_op, op)->objects = k;
	*out = op;
	return CUDA_SUCCESS;
}

CUresult soft_exec_keep_objects(struct graph_exec *x, const struct graph *g)
{
	struct user_objects list = { 0 };
	struct op *op;
	CUresult r;

	if (!collect_objects(&list, g)) {
		soft_user_objects_clear(&list);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!list.n)
		return CUDA_SUCCESS;
	r = keep_work(&list, &op);
	return r ? r : soft_exec_append_last(x, op);
}

CUresult soft_exec_replace_objects(struct graph_exec *x, const struct graph_exec *from, bool is_part)
{
	const struct user_objects *before = soft_exec_objects(x), *added = soft_exec_objects(from);
	struct user_objects list = { 0 };
	struct op *op;
	CUresult r;

	if (!before->n && !added->n)
		return CUDA_SUCCESS;
	if ((is_part && !soft_user_objects_copy(&list, before)) || !soft_user_objects_copy(&list, added)) {
		soft_user_objects_clear(&list);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = keep_work(&list, &op);
	if (r)
		return r;
	if (!soft_exec_is_keep(&x->steps[x->n_steps - 1]))
		return soft_exec_append_last(x, op);
	soft_exec_set_work(&x->steps[x->n_steps - 1], op);
	return CUDA_SUCCESS;
}
