/* cu_graph_pages.c — the pages and the access rights of the memory of graphs: see cu_graph_memory.c. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <sys/mman.h>

enum {
	PAGE_BYTES = 2 << 20,
	BLOCK_BYTES = 32 << 20, /* unit in which the memory of graphs is counted, as on an H200 */
};

size_t soft_graph_memory_rounded(size_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

uint64_t soft_graph_memory_blocks(const struct device *d)
{
	return (d->graph_live_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* Change the number of live bytes, and raise the numbers of used and reserved bytes if necessary.  They never fall here, because a
 * GPU keeps freed memory for the next launches until cuDeviceGraphMemTrim(). */
static void count_live(struct device *d, int64_t bytes)
{
	uint64_t *n = d->graph_memory;

	d->graph_live_bytes += (uint64_t)bytes;
	for (int i = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT; i <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH; i++)
		if (n[i] < soft_graph_memory_blocks(d))
			n[i] = soft_graph_memory_blocks(d);
}

uint32_t soft_graph_memory_denied(const struct graph_memory *m)
{
	return m->is_live ? ~m->readers : ~UINT32_C(0);
}

uint32_t soft_graph_memory_unwritable(const struct graph_memory *m)
{
	return m->readers & ~m->writers;
}

/* Unmap the address range of an allocation that is freed with its context, or whose last reference is dropped. */
void soft_graph_memory_unmap(struct allocation *a)
{
	struct graph_memory *m = a->graph;

	if (m->is_live)
		count_live(a->device, -(int64_t)soft_graph_memory_rounded(a->bytes));
	m->is_live = m->will_be_live = false;
	m->allocation = NULL;
	munmap((void *)(uintptr_t)a->base, soft_graph_memory_rounded(a->bytes));
}

/* Return the pages to the system; their contents are lost. */
void soft_graph_memory_drop(const struct allocation *a)
{
	madvise((void *)(uintptr_t)a->base, soft_graph_memory_rounded(a->bytes), MADV_DONTNEED);
}

void soft_graph_memory_set_live(struct graph_memory *m, bool is_live)
{
	struct allocation *a = m->allocation;
	int64_t bytes = (int64_t)soft_graph_memory_rounded(a->bytes);

	if (m->is_live == is_live)
		return;
	m->is_live = is_live;
	gpul_exec_memory_set_rights(soft.memory, a->base, soft_graph_memory_denied(m), soft_graph_memory_unwritable(m));
	if (is_live) {
		a->device->allocated_bytes += a->bytes;
	} else {
		a->device->allocated_bytes -= a->bytes;
		gpul_exec_machine_settle(soft.machine); /* wait for memory accesses that kernels have begun */
		soft_graph_memory_drop(a);
	}
	count_live(a->device, is_live ? bytes : -bytes);
}
