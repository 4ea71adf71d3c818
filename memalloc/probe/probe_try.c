/* probe_try.c — finds out whether a kind of memory works: creates it, writes it, shares it. */
#include "memalloc/probe/probe_internal.h"

#include <stdio.h>
#include <string.h>

/* The seeds of the patterns, one for each writer. */
enum { GPU_WROTE = 1, CPU_WROTE = 2, FOR_CHILD = 3, CHILD_WROTE = 4 };

static void set_reason(gpul_mem_verdict *v, const gpul_error *err)
{
	if (!v->why[0])
		snprintf(v->why, sizeof v->why, "%s", err->text);
}

static gpul_status create_memory(const gpul_driver *drv, int device, gpul_mem_kind kind, bool fabric, bool exportable, gpul_mem **out,
				 gpul_error *err)
{
	const gpul_mem_desc desc = { .kind = kind,
				     .bytes = PROBE_BYTES,
				     .node = GPUL_MEM_NODE_OF_GPU,
				     .devices = &device,
				     .n_devices = 1,
				     .exportable = exportable,
				     .fabric = fabric };

	return gpul_mem_create(drv, &desc, out, err);
}

/* The GPU writes and the CPU checks, then the CPU writes and the GPU checks.  Without a CPU address, the GPU checks its own bytes. */
static gpul_status check_access(const gpul_driver *drv, gpul_mem *m, gpul_error *err)
{
	void *cpu = gpul_mem_cpu(m);
	gpul_status st = gpul_probe_gpu_write(drv, gpul_mem_gpu(m), GPU_WROTE, err);

	if (st || !cpu)
		return st ? st : gpul_probe_gpu_check(drv, gpul_mem_gpu(m), GPU_WROTE, err);
	st = gpul_probe_cpu_check(cpu, GPU_WROTE, err);
	if (st)
		return st;
	gpul_probe_cpu_write(cpu, CPU_WROTE);
	return gpul_probe_gpu_check(drv, gpul_mem_gpu(m), CPU_WROTE, err);
}

static gpul_status export_memory(gpul_mem *m, bool fabric, struct probe_question *q, int *fd, gpul_error *err)
{
	const gpul_mem_info *is = gpul_mem_about(m);

	*fd = -1;
	q->offer = (gpul_mem_offer){
		.kind = is->kind, .bytes = is->bytes, .mapped_bytes = is->mapped_bytes, .owner_device = is->device, .fabric = fabric
	};
	q->device = is->device;
	q->seed = FOR_CHILD;
	q->has_handle = fabric || is->kind == GPUL_MEM_DEVICE_IPC;
	return q->has_handle ? gpul_mem_export_handle(m, &q->handle, err) : gpul_mem_export_fd(m, fd, err);
}

/* Import the memory in another process, or, without gpuload-probe, in this process. */
static gpul_status try_import(struct probe_child *c, const struct probe_question *q, int fd, bool *tested_another, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = gpul_probe_child_start(c, &why);

	*tested_another = !c->none;
	if (c->none && q->offer.kind == GPUL_MEM_DEVICE_IPC)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "this kind was not tested: gpuload-probe was not found beside this program, and a process "
				 "cannot open its own cuIpc handle");
	if (c->none)
		return gpul_probe_answer(c->drv, q, fd, err);
	if (!st)
		st = gpul_probe_child_query(c, q, fd, &why);
	return st ? gpul_fail(err, st, why.native, "in another process: %s", why.text) : GPUL_OK;
}

static gpul_status try_sharing(struct probe_child *c, gpul_mem *m, bool fabric, gpul_mem_verdict *v, gpul_error *err)
{
	struct probe_question q;
	int fd;
	gpul_status st;

	memset(&q, 0, sizeof q); /* also clears the padding, because q is sent to another process */
	st = export_memory(m, fabric, &q, &fd, err);
	if (!st)
		st = gpul_probe_gpu_write(c->drv, gpul_mem_gpu(m), FOR_CHILD, err);
	if (!st)
		st = try_import(c, &q, fd, &v->tested_another, err);
	if (!st && gpul_mem_cpu(m))
		st = gpul_probe_cpu_check(gpul_mem_cpu(m), CHILD_WROTE, err);
	if (!st)
		st = gpul_probe_gpu_check(c->drv, gpul_mem_gpu(m), CHILD_WROTE, err);
	return st;
}

/* Create exportable memory.  If that fails, record the reason, and create memory that is not exportable instead. */
static gpul_status create_sharable(const gpul_driver *drv, int device, gpul_mem_kind kind, bool fabric, gpul_mem **out, gpul_mem_verdict *v)
{
	gpul_error err = { 0 };
	gpul_status st = create_memory(drv, device, kind, fabric, true, out, &err);

	if (!st)
		return GPUL_OK;
	set_reason(v, &err);
	return fabric ? st : create_memory(drv, device, kind, false, false, out, NULL);
}

void gpul_probe_try(struct probe_child *c, int device, gpul_mem_kind kind, bool fabric, gpul_mem_verdict *out)
{
	gpul_mem_verdict v = { 0 };
	gpul_error err = { 0 };
	gpul_mem *m = NULL;
	gpul_status st = create_sharable(c->drv, device, kind, fabric, &m, &v);

	if (!st) {
		v.granularity_bytes = gpul_mem_about(m)->granularity_bytes;
		st = check_access(c->drv, m, &err);
		v.works = !st;
	}
	if (!st && gpul_mem_about(m)->exportable) {
		st = try_sharing(c, m, fabric, &v, &err);
		v.shares = !st;
	}
	if (st)
		set_reason(&v, &err);
	gpul_mem_destroy(m);
	*out = v;
}
