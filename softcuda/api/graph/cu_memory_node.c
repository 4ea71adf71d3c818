/* cu_memory_node.c — nodes that allocate and free memory; memory/cu_graph_memory.c implements their work. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

static struct device *device_of(const CUmemLocation *l) /* NULL: there is no such device */
{
	return l->id >= 0 && l->id < soft.n_devices ? &soft.device[l->id] : NULL;
}

/* Check the location of the memory, and find the context that will own it. */
static CUresult check_place(const CUDA_MEM_ALLOC_NODE_PARAMS *p, struct context **out)
{
	const CUmemPoolProps *props = &p->poolProps;
	struct device *d;
	CUresult r = soft_current_context(out);

	if (r)
		return r;
	if (!p->bytesize || (p->accessDescCount && !p->accessDescs) || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED && props->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < p->accessDescCount; i++)
		if (p->accessDescs[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_of(&p->accessDescs[i].location))
			return CUDA_ERROR_INVALID_VALUE;
	switch ((int)props->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		d = device_of(&props->location);
		if (!d)
			return CUDA_ERROR_INVALID_DEVICE;
		if ((*out)->device == d)
			return CUDA_SUCCESS;
		*out = d->primary;
		return *out && (*out)->active ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult soft_add_alloc(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
			CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct node_list list = { 0 };
	struct graph_memory *m = NULL;
	struct context *ctx;
	struct op *work;
	struct graph *g;
	struct node *node;
	CUresult r = out && p ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = check_place(p, &ctx);
	if (!r)
		r = soft_find_nodes(g, waits_for, data, n, &list);
	if (!r && p->bytesize > soft.memory_bytes)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		r = soft_graph_memory_new(ctx, p, &m);
	if (!r)
		r = soft_graph_memory_work(&soft_graph_alloc_kind, NULL, m, &work);
	if (!r)
		r = soft_node_new(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC, work, NULL, &list, &node);
	if (!r) {
		*out = node->handle;
		p->dptr = m->allocation->base;
	}
	if (m)
		soft_graph_memory_unref(m);
	soft_nodes_clear(&list);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n,
				       CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	return soft_add_alloc(out, graph, waits_for, NULL, n, params);
}

static struct graph_memory *memory_of(const struct node *n)
{
	return CONTAINER(n->work, const struct memory_op, op)->memory;
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = memory_of(n)->params;
	soft_unlock();
	return CUDA_SUCCESS;
}

CUresult soft_add_free(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
		       CUdeviceptr address)
{
	struct node_list list = { 0 };
	struct graph_memory *m;
	struct op *work;
	struct graph *g;
	struct node *node;
	CUresult r = out ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	m = soft_graph_memory_at(address);
	if (!m || m->is_freed_by_node)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuGraphAddMemFreeNode: %#llx is not the memory of an allocation node, or a node "
				"frees it already",
				(unsigned long long)address);
	if (!r)
		r = soft_find_nodes(g, waits_for, data, n, &list);
	if (!r)
		r = soft_graph_memory_work(&soft_graph_free_kind, NULL, m, &work);
	if (!r)
		r = soft_node_new(g, CU_GRAPH_NODE_TYPE_MEM_FREE, work, NULL, &list, &node);
	if (!r) {
		m->is_freed_by_node = true;
		*out = node->handle;
	}
	soft_nodes_clear(&list);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n, CUdeviceptr address)
{
	return soft_add_free(out, graph, waits_for, NULL, n, address);
}

EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_MEM_FREE, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = memory_of(n)->params.dptr;
	soft_unlock();
	return CUDA_SUCCESS;
}
