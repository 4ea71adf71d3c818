/* cu_exec_steps.c — adds and changes the steps of an executable graph, copies them for a launch, and frees them. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>

bool soft_exec_grow(void **list, size_t n, size_t *room, size_t element_bytes)
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

CUresult soft_exec_add_work(struct graph_exec *x, const struct node *n, struct op *work, size_t *index)
{
	void *list = x->steps;

	if (!soft_exec_grow(&list, x->n_steps, &x->steps_room, sizeof *x->steps)) {
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
		.node = n ? n->handle : NULL,
	};
	return CUDA_SUCCESS;
}

CUresult soft_exec_add_wait(struct graph_exec *x, size_t later, size_t earlier)
{
	void *list = x->waits;

	if (!soft_exec_grow(&list, x->n_waits, &x->waits_room, sizeof *x->waits))
		return CUDA_ERROR_OUT_OF_MEMORY;
	x->waits = list;
	x->waits[x->n_waits++] = (struct op_wait){ later, earlier };
	return CUDA_SUCCESS;
}

CUresult soft_exec_append_last(struct graph_exec *x, struct op *work)
{
	size_t index;
	CUresult r = soft_exec_add_work(x, NULL, work, &index);

	return r ? r : soft_exec_add_wait(x, index, index - 1);
}

/* Replace the work of a step.  If the step's node is disabled, the new work is used after the node is enabled again. */
void soft_exec_set_work(struct exec_step *step, struct op *work)
{
	struct op **place = step->disabled ? &step->disabled : &step->work;

	soft_op_release(*place);
	*place = work;
}

void soft_exec_unref(struct graph_exec *x)
{
	if (--x->refs)
		return;
	for (size_t i = 0; i < x->n_steps; i++) {
		soft_op_release(x->steps[i].work);
		if (x->steps[i].disabled)
			soft_op_release(x->steps[i].disabled);
	}
	if (x->last)
		soft_op_release(x->last);
	free(x->steps);
	free(x->waits);
	free(x->children);
	free(x);
}

CUresult soft_exec_copy_steps(const struct graph_exec *x, struct stream *s, size_t room, struct op ***out)
{
	struct op **op = calloc(x->n_steps + room, sizeof *op);
	size_t n = 0;

	while (op && n < x->n_steps && (op[n] = soft_op_copy(x->steps[n].work, s)))
		n++;
	if (op && n == x->n_steps) {
		*out = op;
		return CUDA_SUCCESS;
	}
	while (op && n--)
		soft_op_release(op[n]);
	free(op);
	return CUDA_ERROR_OUT_OF_MEMORY;
}
