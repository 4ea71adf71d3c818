/* cu_graph_own.c — resources of graphs other than nodes: the values of conditional nodes, and references to user objects. */
#include "softcuda/api/stream/cu_graph_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- conditions ---------------------------------------------------------------------------------------- */

CUresult soft_condition_new(struct graph *g, uint32_t first_value, bool is_assigned, struct condition **out)
{
	enum { ALIGN = 64 }; /* so that the ranges of two values are not adjacent in the table of memory */
	struct condition *c = calloc(1, sizeof *c);
	gpul_exec_range range = { .bytes = sizeof *c->value,
				  .flags = GPUL_EXEC_MEM_CONDITION | GPUL_EXEC_MEM_READ_ONLY,
				  .label = "conditional handle" };
	gpul_error err = { 0 };

	if (!c || !(c->value = aligned_alloc(ALIGN, ALIGN))) {
		free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*c->value = first_value;
	range.base = (uintptr_t)c->value;
	range.owner = c;
	if (gpul_exec_memory_add(soft.memory, &range, &err)) {
		free(c->value);
		free(c);
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s", err.text);
	}
	c->refs = 1;
	c->first_value = first_value;
	c->is_assigned = is_assigned;
	list_append(&g->conditions, &c->link);
	*out = c;
	return CUDA_SUCCESS;
}

struct condition *soft_condition_find(const struct graph *g, CUgraphConditionalHandle handle)
{
	for (struct link *i = g->conditions.next; i != &g->conditions; i = i->next) {
		struct condition *c = CONTAINER(i, struct condition, link);

		if ((uintptr_t)c->value == handle)
			return c;
	}
	return NULL;
}

void soft_condition_release(struct condition *c)
{
	if (!c || --c->refs)
		return;
	gpul_exec_memory_remove(soft.memory, (uintptr_t)c->value);
	free(c->value);
	free(c);
}

/* ---- user objects -------------------------------------------------------------------------------------- */

bool soft_user_objects_add(struct user_objects *list, struct user_object *o, unsigned count)
{
	struct user_reference *at;

	for (size_t i = 0; i < list->n; i++) {
		if (list->at[i].object != o)
			continue;
		list->at[i].count += count;
		o->refs += count;
		return true;
	}
	at = realloc(list->at, (list->n + 1) * sizeof *at);
	if (!at)
		return false;
	list->at = at;
	at[list->n++] = (struct user_reference){ o, count };
	o->refs += count;
	return true;
}

bool soft_user_objects_copy(struct user_objects *to, const struct user_objects *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (!soft_user_objects_add(to, from->at[i].object, 1))
			return false;
	return true;
}

void soft_user_objects_clear(struct user_objects *list)
{
	for (size_t i = 0; i < list->n; i++)
		soft_user_object_release(list->at[i].object, list->at[i].count);
	free(list->at);
	*list = (struct user_objects){ 0 };
}

void soft_user_object_release(struct user_object *o, unsigned count)
{
	o->refs -= count;
	if (o->refs)
		return;
	soft_handle_free(o->handle);
	soft_call_back(o->destroy, o->user);
	free(o);
}
