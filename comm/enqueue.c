/* enqueue.c — launches a kernel of the communicator on a stream. */
#include "comm/comm_internal.h"

/* Calls of one communicator run one after another: a stream that is not that of the last call waits for it.  A call that is
 * captured into a graph cannot wait for work outside of the graph; its order is that of the graph's launches. */
static gpul_status follow_last_call(gpul_comm *c, CUstream stream, gpul_error *err)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	gpul_status st;

	if (!c->has_last || c->last_stream == stream)
		return GPUL_OK;
	st = gpul_cu(c->drv, err, cuStreamIsCapturing(stream, &capturing));
	if (st || capturing != CU_STREAM_CAPTURE_STATUS_NONE)
		return st;
	st = gpul_cu(c->drv, err, cuEventRecord(c->order, c->last_stream));
	return st ? st : gpul_cu(c->drv, err, cuStreamWaitEvent(stream, c->order, 0));
}

/* An interpreted kernel takes far longer than its launch.  Without a limit a program queues hundreds of thousands of calls, and
 * after a failure each of their kernels would start only to leave.  NVIDIA's driver limits its queues by itself. */
static void keep_pace(gpul_comm *c, CUstream stream)
{
	enum { CALLS = 64 };
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!c->interprets || ++c->n_calls % CALLS != 0 || c->drv->cuStreamIsCapturing(stream, &capturing) ||
	    capturing != CU_STREAM_CAPTURE_STATUS_NONE)
		return;
	if (c->n_calls > CALLS)
		(void)c->drv->cuEventSynchronize(c->pace);
	(void)c->drv->cuEventRecord(c->pace, stream);
}

gpul_status gpul_comm_enqueue(gpul_comm *c, enum kernel_id id, void *argument, unsigned n_blocks, unsigned n_threads,
			      CUstream stream, gpul_error *err)
{
	void *arguments[] = { &c->view, argument };
	gpul_error why = { 0 };
	CUfunction kernel;
	CUgraphExec graph = NULL;
	gpul_status st = gpul_comm_idle(c, err);

	if (st)
		return st;
	st = gpul_comm_kernel(c, id, &kernel, &why);
	st = st ? st : follow_last_call(c, stream, &why);
	if (!st && id != KERNEL_SENDRECV)
		graph = gpul_comm_replay(c, &(struct launch){ id, kernel, argument, n_blocks, n_threads }, stream);
	if (graph)
		st = gpul_cu(c->drv, &why, cuGraphLaunch(graph, stream));
	else if (!st)
		st = gpul_cu(c->drv, &why, cuLaunchKernel(kernel, n_blocks, 1, 1, n_threads, 1, 1, 0, stream, arguments, NULL));
	if (st)
		return gpul_comm_rank_failed(c, &why, err);
	c->last_stream = stream;
	c->has_last = true;
	keep_pace(c, stream);
	return GPUL_OK;
}
