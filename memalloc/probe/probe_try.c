/* probe_try.c — does one kind of memory work?  Nothing is believed: it is made, written,
 * shared. */
#include "memalloc/probe/probe_internal.h"

#include <stdio.h>
#include <string.h>

enum { GPU_WROTE = 1, CPU_WROTE = 2, FOR_ANOTHER = 3 /* which leaves 4 */ };

static void say_why(gpul_mem_verdict *v, const gpul_error *err)
{
	if (!v->why[0])
		snprintf(v->why, sizeof v->why, "%s", err->text);
}

static gpul_status make(const gpul_driver *drv, int device, gpul_mem_kind kind, bool fabric,
			bool exportable, gpul_mem **out, gpul_error *err)
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

/* The GPU writes, the CPU looks; the CPU writes, the GPU looks.  Where the CPU has no address
 * the GPU looks at its own. */
static gpul_status look(const gpul_driver *drv, gpul_mem *m, gpul_error *err)
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

static gpul_status export(gpul_mem *m, bool fabric, struct probe_question *q, int *fd,
			  gpul_error *err)
{
	const gpul_mem_info *is = gpul_mem_about(m);

	*fd = -1;
	q->offer = (gpul_mem_offer){ .kind = is->kind,
				     .bytes = is->bytes,
				     .mapped_bytes = is->mapped_bytes,
				     .owner_device = is->device,
				     .fabric = fabric };
	q->device = is->device;
	q->seed = FOR_ANOTHER;
	q->has_handle = fabric || is->kind == GPUL_MEM_DEVICE_IPC;
	return q->has_handle ? gpul_mem_export_handle(m, &q->handle, err)
			     : gpul_mem_export_fd(m, fd, err);
}

/* Ask another process; where there is no program for it, this one. */
static gpul_status ask(struct probe_child *c, const struct probe_question *q, int fd,
		       bool *asked_another, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = gpul_probe_child_start(c, &why);

	*asked_another = !c->none;
	if (c->none && q->offer.kind == GPUL_MEM_DEVICE_IPC)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "nobody to ask: gpuload-probe is not beside this program, and a process "
				 "cannot open its own cuIpc handle");
	if (c->none)
		return gpul_probe_answer(c->drv, q, fd, err);
	if (!st)
		st = gpul_probe_child_ask(c, q, fd, &why);
	return st ? gpul_fail(err, st, why.native, "in another process: %s", why.text)
		  : GPUL_OK;
}

static gpul_status share(struct probe_child *c, gpul_mem *m, bool fabric, gpul_mem_verdict *v,
			 gpul_error *err)
{
	struct probe_question q;
	int fd;
	gpul_status st;

	memset(&q, 0, sizeof q); /* it goes to another process, padding and all */
	st = export(m, fabric, &q, &fd, err);
	if (!st)
		st = gpul_probe_gpu_write(c->drv, gpul_mem_gpu(m), FOR_ANOTHER, err);
	if (!st)
		st = ask(c, &q, fd, &v->asked_another, err);
	if (!st && gpul_mem_cpu(m))
		st = gpul_probe_cpu_check(gpul_mem_cpu(m), FOR_ANOTHER + 1, err);
	if (!st)
		st = gpul_probe_gpu_check(c->drv, gpul_mem_gpu(m), FOR_ANOTHER + 1, err);
	return st;
}

/* Memory that can be shared; where it cannot, why, and plain memory of the kind. */
static gpul_status make_either(const gpul_driver *drv, int device, gpul_mem_kind kind,
			       bool fabric, gpul_mem **out, gpul_mem_verdict *v)
{
	gpul_error err = { 0 };
	gpul_status st = make(drv, device, kind, fabric, true, out, &err);

	if (!st)
		return GPUL_OK;
	say_why(v, &err);
	return fabric ? st : make(drv, device, kind, false, false, out, NULL);
}

void gpul_probe_try(struct probe_child *c, int device, gpul_mem_kind kind, bool fabric,
		    gpul_mem_verdict *out)
{
	gpul_mem_verdict v = { 0 };
	gpul_error err = { 0 };
	gpul_mem *m = NULL;
	gpul_status st = make_either(c->drv, device, kind, fabric, &m, &v);

	if (!st) {
		v.granularity_bytes = gpul_mem_about(m)->granularity_bytes;
		st = look(c->drv, m, &err);
		v.works = !st;
	}
	if (!st && gpul_mem_about(m)->exportable) {
		st = share(c, m, fabric, &v, &err);
		v.shares = !st;
	}
	if (st)
		say_why(&v, &err);
	gpul_mem_destroy(m);
	*out = v;
}
