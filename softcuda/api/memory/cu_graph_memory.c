/* cu_graph_memory.c — memory that the nodes of a graph allocate and free.
 *
 * A node that allocates memory has a fixed address, so its address range is reserved when the node is created (Linux provides each
 * page at its first access). When the node runs, devices get access to the range; when a free node runs, they lose it, and the
 * pages are returned. As on a GPU, accesses at other times are faults.
 *
 *     node is added   launch        alloc runs          free runs              graph is destroyed
 *     ──┼───────────────┼──────────────┼───────────────────┼──────────────────────┼──
 *       reserved        will_be_live   is_live             reserved               not reserved, unless is_live */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- struct graph_memory: creating and freeing ---------------------------------------------------------- */

static CUresult add_allocation(struct context *ctx, struct graph_memory *m, size_t bytes)
{
	struct allocation *a = calloc(1, sizeof *a);
	void *base = mmap(NULL, soft_graph_memory_rounded(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			  0);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!a || base == MAP_FAILED)
		goto unmap;
	*a = (struct allocation){ .kind = ALLOC_GRAPH, .base = (uintptr_t)base, .bytes = bytes, .graph = m };
	r = soft_allocation_enter(ctx, a, 0);
	if (r)
		goto unmap;
	m->allocation = a;
	return CUDA_SUCCESS;
unmap:
	if (base != MAP_FAILED)
		munmap(base, soft_graph_memory_rounded(bytes));
	free(a);
	return r;
}

CUresult soft_graph_memory_new(struct context *ctx, const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct graph_memory **out)
{
	struct graph_memory *m = calloc(1, sizeof *m);
	CUresult r;

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->refs = 1;
	m->params = *params;
	m->readers = m->writers = UINT32_C(1) << ctx->device->ordinal;
	for (size_t i = 0; i < params->accessDescCount; i++) {
		const CUmemAccessDesc *d = &params->accessDescs[i];

		if (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			m->readers |= UINT32_C(1) << d->location.id;
		if (d->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			m->writers |= UINT32_C(1) << d->location.id;
	}
	m->params.accessDescs = NULL;
	if (params->accessDescCount) {
		size_t bytes = params->accessDescCount * sizeof *params->accessDescs;

		m->descs = malloc(bytes);
		if (!m->descs) {
			free(m);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(m->descs, params->accessDescs, bytes);
		m->params.accessDescs = m->descs;
	}
	r = add_allocation(ctx, m, params->bytesize);
	if (r) {
		free(m->descs);
		free(m);
		return r;
	}
	m->params.dptr = m->allocation->base;
	*out = m;
	return CUDA_SUCCESS;
}

struct graph_memory *soft_graph_memory_at(uint64_t address)
{
	struct allocation *a = soft_allocation_at(address);

	return a && a->base == address ? a->graph : NULL;
}

/* ---- allocating and freeing ------------------------------------------------------------------------------ */

/* Returns true if the device has enough free memory for the allocation now. */
bool soft_graph_memory_fits(const struct graph_memory *m)
{
	const struct device *d;

	if (!m->allocation || m->is_live)
		return true;
	d = m->allocation->device;
	return m->allocation->bytes <= soft.memory_bytes && d->allocated_bytes <= soft.memory_bytes - m->allocation->bytes;
}

void soft_graph_memory_free(struct graph_memory *m)
{
	if (!m->allocation || !m->is_live)
		return;
	soft_graph_memory_set_live(m, false);
	soft_graph_memory_unref(m);
}

static void run_allocate(struct op *op)
{
	struct graph_memory *m = CONTAINER(op, struct memory_op, op)->memory;

	if (!m->allocation || !soft_graph_memory_fits(m)) {
		soft_report_fault(
			"a graph could not allocate memory: the device has no memory left, or the context of the memory was destroyed");
		soft_context_fail(op->ctx, CUDA_ERROR_OUT_OF_MEMORY);
		soft_op_end(op, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	if (m->is_live) /* with CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH: drop the contents, and allocate again */
		soft_graph_memory_drop(m->allocation);
	else
		m->refs++; /* the live memory holds a reference until it is freed, because the graph may be destroyed earlier */
	soft_graph_memory_set_live(m, true);
	soft_op_end(op, CUDA_SUCCESS);
}

static void end_free(struct op *op)
{
	soft_graph_memory_free(CONTAINER(op, struct memory_op, op)->memory);
}

static void release_memory(struct op *op)
{
	soft_graph_memory_unref(CONTAINER(op, struct memory_op, op)->memory);
}

static bool copy_memory(struct op *op)
{
	CONTAINER(op, struct memory_op, op)->memory->refs++;
	return true;
}

const struct op_kind soft_graph_alloc_kind = {
	.run = run_allocate,
	.release = release_memory,
	.copy = copy_memory,
	.is_node = true,
	.node_type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
	.bytes = sizeof(struct memory_op),
};

const struct op_kind soft_graph_free_kind = {
	.ended = end_free,
	.release = release_memory,
	.copy = copy_memory,
	.is_node = true,
	.node_type = CU_GRAPH_NODE_TYPE_MEM_FREE,
	.bytes = sizeof(struct memory_op),
};

CUresult soft_graph_memory_work(const struct op_kind *kind, struct stream *s, struct graph_memory *m, struct op **out)
{
	struct op *op = soft_op_new(s, kind);

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CONTAINER(op, struct memory_op, op)->memory = m;
	m->refs++;
	*out = op;
	return CUDA_SUCCESS;
}

/* ---- allocating and freeing in a capture ----------------------------------------------------------------- */

CUresult soft_graph_memory_capture(struct stream *s, size_t bytes, CUdeviceptr *out)
{
	const CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->ctx->device->ordinal } },
		.bytesize = bytes,
	};
	struct graph_memory *m;
	struct op *op;
	CUresult r = soft_graph_memory_new(s->ctx, &params, &m);

	if (r)
		return r;
	r = soft_graph_memory_work(&soft_graph_alloc_kind, s, m, &op);
	if (!r) {
		r = soft_capture_or_submit(op);
		soft_op_release(op);
	}
	if (!r)
		*out = m->allocation->base;
	soft_graph_memory_unref(m);
	return r;
}

CUresult soft_graph_memory_free_async(struct stream *s, struct graph_memory *m)
{
	struct op *op;
	CUresult r;

	if (s->capture ? m->is_freed_by_node : !m->will_be_live)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMemFreeAsync: the memory of the graph is not allocated, or its graph frees it");
	r = soft_graph_memory_work(&soft_graph_free_kind, s, m, &op);
	if (r)
		return r;
	if (s->capture)
		m->is_freed_by_node = true;
	else
		m->will_be_live = false;
	r = soft_capture_or_submit(op);
	soft_op_release(op);
	return r;
}

/* ---- attributes of a device ------------------------------------------------------------------------------ */

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	memcpy(value, &d->graph_memory[attribute], sizeof(cuuint64_t));
	soft_unlock();
	return CUDA_SUCCESS;
}

/* Only the maximum sizes can be set, and only to 0: each then restarts at the current size. */
EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	struct device *d;
	cuuint64_t wanted;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!value || (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&wanted, value, sizeof wanted);
	if (wanted)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	d->graph_memory[attribute] = d->graph_memory[attribute - 1];
	soft_unlock();
	return CUDA_SUCCESS;
}

/* Freed memory is returned to the system immediately, but until this call it is counted as used and reserved. */
EXPORT CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	soft_lock();
	d->graph_memory[CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT] = soft_graph_memory_blocks(d);
	d->graph_memory[CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] = soft_graph_memory_blocks(d);
	soft_unlock();
	return CUDA_SUCCESS;
}
