/* cu_user_object.c — user objects: objects of the application that live as long as graphs use them. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <limits.h>
#include <stdlib.h>

static CUresult enter_object(CUuserObject handle, unsigned count, struct user_object **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!count || count > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	*out = soft_handle_find(HANDLE_USER_OBJECT, handle);
	if (*out)
		return CUDA_SUCCESS;
	soft_unlock();
	return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuUserObjectCreate(CUuserObject *out, void *user, CUhostFn destroy, unsigned int count, unsigned int flags)
{
	struct user_object *o;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || !destroy || !count || count > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	o = calloc(1, sizeof *o);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	soft_lock();
	*o = (struct user_object){ .handle = soft_handle_new(HANDLE_USER_OBJECT, o), .refs = count, .destroy = destroy, .user = user };
	if (o->handle) {
		*out = o->handle;
	} else {
		free(o);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count)
{
	struct user_object *o;
	CUresult r = enter_object(handle, count, &o);

	if (r)
		return r;
	if (count > INT_MAX - o->refs)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		o->refs += count;
	soft_unlock();
	return r;
}

EXPORT CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count)
{
	struct user_object *o;
	CUresult r = enter_object(handle, count, &o);

	if (r)
		return r;
	if (count > o->refs)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		soft_user_object_release(o, count);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned int count, unsigned int flags)
{
	struct user_object *o;
	struct graph *g;
	CUresult r = flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE ? CUDA_ERROR_INVALID_VALUE : enter_object(handle, count, &o);

	if (r)
		return r;
	g = soft_handle_find(HANDLE_GRAPH, graph);
	if (!g || (flags & CU_GRAPH_USER_OBJECT_MOVE && count > o->refs))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!soft_user_objects_add(&g->objects, o, count))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else if (flags & CU_GRAPH_USER_OBJECT_MOVE)
		soft_user_object_release(o, count);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned int count)
{
	struct user_object *o;
	struct graph *g;
	CUresult r = enter_object(handle, count, &o);

	if (r)
		return r;
	g = soft_handle_find(HANDLE_GRAPH, graph);
	r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; g && i < g->objects.n; i++) {
		struct user_reference *u = &g->objects.at[i];

		if (u->object != o || u->count < count)
			continue;
		u->count -= count;
		if (!u->count)
			*u = g->objects.at[--g->objects.n];
		soft_user_object_release(o, count);
		r = CUDA_SUCCESS;
		break;
	}
	soft_unlock();
	return r;
}
