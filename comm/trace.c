/* trace.c — starts, stops and reads the trace of a rank's kernels. */
#include "comm/trace.h"

#include "comm/comm_internal.h"

/* Turn recording on or off for kernels that start later; trace 0: off. */
static gpul_status publish_trace(gpul_comm *c, CUdeviceptr trace, gpul_error *err)
{
	gpul_status st;

	if (c->persistent_runs) /* cuCtxSynchronize() would wait forever for the persistent kernel */
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a persistent kernel of this communicator is running: stop that kernel before you start or stop "
				 "a trace");
	st = gpul_cu(c->drv, err, cuCtxSynchronize());
	c->view_copy.trace = (gpul_comm_trace *)(uintptr_t)trace;
	return st ? st : gpul_comm_view_upload(c, err);
}

static gpul_status allocate_trace(gpul_comm *c, size_t max_events, gpul_error *err)
{
	const gpul_comm_trace head = { .max_events = max_events };
	gpul_status st;

	if (c->trace)
		(void)c->drv->cuMemFree(c->trace);
	c->trace = 0;
	st = gpul_cu(c->drv, err, cuMemAlloc(&c->trace, sizeof head + max_events * sizeof(gpul_comm_event)));
	return st ? st : gpul_cu(c->drv, err, cuMemcpyHtoD(c->trace, &head, sizeof head));
}

static gpul_status start_net(gpul_comm *c, size_t max_events, gpul_error *err)
{
	gpul_comm_net_trace *net = gpul_comm_proxy_trace(c->network.proxy);

	return net ? gpul_net_trace_start(net, max_events, err) : GPUL_OK;
}

gpul_status gpul_comm_trace_start(gpul_comm *c, size_t max_events, gpul_error *err)
{
	gpul_status st;

	if (max_events > SIZE_MAX / sizeof(gpul_comm_event) / 2)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace of %zu events", max_events);
	if (max_events == 0 && !c->trace)
		return gpul_fail(err, GPUL_EINVAL, 0, "max_events is 0, which continues an earlier trace, but no trace was started");
	st = max_events ? publish_trace(c, 0, err) : GPUL_OK;
	if (max_events)
		st = st ? st : allocate_trace(c, max_events, err);
	st = st ? st : publish_trace(c, c->trace, err);
	return st ? st : start_net(c, max_events, err);
}

gpul_status gpul_comm_trace_stop(gpul_comm *c, gpul_error *err)
{
	gpul_comm_net_trace *net = gpul_comm_proxy_trace(c->network.proxy);
	gpul_status st = publish_trace(c, 0, err);

	if (net)
		gpul_net_trace_stop(net);
	return st;
}

void gpul_comm_trace_read_net(gpul_comm *c, gpul_comm_net_event *out, size_t max, size_t *n, size_t *n_lost)
{
	gpul_comm_net_trace *net = gpul_comm_proxy_trace(c->network.proxy);

	*n = *n_lost = 0;
	if (net)
		gpul_net_trace_read(net, out, max, n, n_lost);
}

gpul_status gpul_comm_trace_read(gpul_comm *c, gpul_comm_event *out, size_t max, size_t *n, size_t *n_lost, gpul_error *err)
{
	gpul_comm_trace head = { 0 };
	gpul_status st = c->trace ? gpul_cu(c->drv, err, cuMemcpyDtoH(&head, c->trace, sizeof head)) : GPUL_OK;
	const uint64_t kept = head.n_events < head.max_events ? head.n_events : head.max_events;

	*n = kept < max ? kept : max;
	*n_lost = head.n_events - *n;
	return st || *n == 0 ? st : gpul_cu(c->drv, err, cuMemcpyDtoH(out, c->trace + sizeof head, *n * sizeof *out));
}
