/* comm_view.c — creates the description of the communicator that a rank's kernels read, and the words that they share with the CPU. */
#include <string.h>

#include "comm/comm_internal.h"

/* In device memory, the view is followed by the counters that the kernels keep. */
gpul_status gpul_comm_view_create(gpul_comm *c, gpul_error *err)
{
	const size_t calls_bytes = GPUL_COMM_MAX_BLOCKS * sizeof *c->view_copy.calls;
	const size_t bytes = sizeof c->view_copy + calls_bytes + c->sizes.n_blocks * GPUL_COMM_MAX_PEERS * sizeof *c->view_copy.steps;
	const gpul_mem_desc control = {
		.kind = GPUL_MEM_PINNED, .bytes = sizeof(gpul_comm_control), .devices = &c->device, .n_devices = 1
	};
	gpul_comm_view *v = &c->view_copy;
	gpul_status st = gpul_mem_create(c->drv, &control, &c->control_mem, err);

	if (st)
		return st;
	c->control = gpul_mem_cpu(c->control_mem);
	memset(c->control, 0, sizeof *c->control);
	st = gpul_cu(c->drv, err, cuMemAlloc(&c->view, bytes));
	st = st ? st : gpul_cu(c->drv, err, cuMemsetD8Async(c->view, 0, bytes, NULL));
	if (st)
		return st;
	v->rank = c->rank;
	v->direct = c->direct;
	v->sizes = c->sizes;
	v->timeout_ns = c->options.timeout_ms < 0 ? 0 : (uint64_t)c->options.timeout_ms * 1000 * 1000;
	/* A waiting kernel reads the abort word once per polls_per_check polls: rarely on a GPU, for which the read is a round trip to
	 * host memory; more often in an interpreted kernel, whose polls are slow. */
	v->polls_per_check = c->interprets ? GPUL_COMM_LEAST_POLLS : 1024;
	v->control = (gpul_comm_control *)(uintptr_t)gpul_mem_gpu(c->control_mem);
	v->calls = (uint64_t *)(uintptr_t)(c->view + sizeof *v);
	v->steps = (gpul_comm_steps *)(uintptr_t)(c->view + sizeof *v + calls_bytes);
	memcpy(v->order, c->hosts.order, sizeof v->order);
	v->place = c->hosts.place;
	v->ranks_per_host = c->hosts.ranks_per_host;
	gpul_comm_arenas_describe(c, v);
	gpul_comm_network_describe(c, v);
	return gpul_comm_view_upload(c, err);
}

/* Synchronise after the copy: cuMemcpyHtoD from pageable memory may return before the bytes are in device memory, and the program's
 * streams may not wait for the default stream. */
gpul_status gpul_comm_view_upload(gpul_comm *c, gpul_error *err)
{
	const gpul_status st = gpul_cu(c->drv, err, cuMemcpyHtoD(c->view, &c->view_copy, sizeof c->view_copy));

	return st ? st : gpul_cu(c->drv, err, cuStreamSynchronize(NULL));
}

void gpul_comm_view_destroy(gpul_comm *c)
{
	if (c->view)
		(void)c->drv->cuMemFree(c->view);
	if (c->trace)
		(void)c->drv->cuMemFree(c->trace);
	gpul_mem_destroy(c->control_mem);
}
