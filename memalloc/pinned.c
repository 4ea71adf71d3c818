/* pinned.c — memory of kind pinned (cuMemHostAlloc): for one process only; the driver chooses the NUMA node. */
#include "memalloc/mem_internal.h"

static gpul_status create_pinned(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err)
{
	const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
	gpul_status st;

	(void)desc;
	st = gpul_mem_round(m, gpul_mem_page_bytes(), err);
	if (st)
		return st;
	st = mem_cu(m, err, cuMemHostAlloc(&m->cpu, m->about.mapped_bytes, flags));
	if (st)
		return st;
	st = mem_cu(m, err, cuMemHostGetDevicePointer(&m->gpu, m->cpu, 0));
	if (st)
		(void)m->drv->cuMemFreeHost(m->cpu);
	return st;
}

static void destroy_pinned(gpul_mem *m)
{
	(void)m->drv->cuMemFreeHost(m->cpu);
}

const struct mem_ops gpul_mem_pinned = { .create = create_pinned, .destroy = destroy_pinned };
