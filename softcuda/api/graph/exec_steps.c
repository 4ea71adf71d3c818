/* exec_steps.c — the steps of an executable graph: copies for a launch, and the end of the steps. */
#include "softcuda/api/graph/graph_calls_internal.h"

#include <stdlib.h>

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
	soft_user_objects_clear(&x->objects);
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
