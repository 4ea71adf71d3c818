/* enqueue.c — launches a kernel of the communicator on a stream. */
#include "comm/comm_internal.h"

/* The properties of a call's stream, queried once for each call.  A handle does not identify a stream: a new stream may get the
 * handle of a destroyed one, and all threads use the same handle for their default streams. */
struct call_stream {
	CUstream handle;
	unsigned long long id; /* valid if has_id is set */
	bool has_id;
	bool captures;
	cuuint64_t capture; /* id of the stream capture; 0: unknown */
};

static gpul_status describe_stream(gpul_comm *c, CUstream stream, struct call_stream *out, gpul_error *err)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	const gpul_status st = gpul_cu(c->drv, err, cuStreamIsCapturing(stream, &capturing));

	*out = (struct call_stream){ .handle = stream, .captures = capturing != CU_STREAM_CAPTURE_STATUS_NONE };
	if (st)
		return st;
	if (!out->captures) /* not queried during a capture, because NVIDIA's driver would invalidate the capture */
		out->has_id = c->drv->cuStreamGetId(stream, &out->id) == CUDA_SUCCESS;
	else if (c->drv->cuStreamGetCaptureInfo_v3(stream, &capturing, &out->capture, NULL, NULL, NULL, NULL))
		out->capture = 0;
	return GPUL_OK;
}

/* Make calls of one communicator run one after another: if the last call used another stream, let this stream wait for the event
 * recorded after that call.  The other stream itself may have been destroyed or be capturing now.  A captured call cannot wait for
 * work outside of its graph, so it waits for the last call in the same capture. */
static gpul_status follow_last_call(gpul_comm *c, const struct call_stream *s, gpul_error *err)
{
	const struct last_call *last = s->captures ? &c->last_captured : &c->last;

	if (!last->exists || (s->captures && last->capture != s->capture) || (s->has_id && last->has_id && last->stream_id == s->id))
		return GPUL_OK;
	return gpul_cu(c->drv, err, cuStreamWaitEvent(s->handle, last->ended, 0));
}

static gpul_status note_call(gpul_comm *c, const struct call_stream *s, gpul_error *err)
{
	struct last_call *last = s->captures ? &c->last_captured : &c->last;
	gpul_status st;

	if (s->captures && !s->capture)
		return GPUL_OK;
	st = gpul_cu(c->drv, err, cuEventRecord(last->ended, s->handle));
	if (st)
		return st;
	last->exists = true;
	last->has_id = s->has_id;
	last->stream_id = s->id;
	last->capture = s->capture;
	return GPUL_OK;
}

/* Limit the number of queued calls of an interpreting driver, whose kernels take far longer than their launches.  Otherwise a
 * program could queue hundreds of thousands of calls, and after a failure each of their kernels would still start and end.
 * NVIDIA's driver limits its queues itself. */
static void keep_pace(gpul_comm *c, const struct call_stream *s)
{
	enum { CALLS = 64 };

	if (!c->interprets || s->captures || ++c->n_calls % CALLS != 0)
		return;
	if (c->n_calls > CALLS)
		(void)c->drv->cuEventSynchronize(c->pace);
	(void)c->drv->cuEventRecord(c->pace, s->handle);
}

static gpul_status launch_call(gpul_comm *c, const struct launch *l, CUstream stream, gpul_error *err)
{
	void *arguments[] = { &c->view, l->argument };
	struct launch todo = *l;
	struct call_stream s;
	CUgraphExec graph = NULL;
	gpul_status st = gpul_comm_kernel(c, l->id, &todo.kernel, err);

	st = st ? st : describe_stream(c, stream, &s, err);
	st = st ? st : follow_last_call(c, &s, err);
	if (st)
		return st;
	if (l->id != KERNEL_sendrecv && !s.captures)
		graph = gpul_comm_replay(c, &todo);
	if (graph)
		st = gpul_cu(c->drv, err, cuGraphLaunch(graph, stream));
	else
		st = gpul_cu(c->drv, err, cuLaunchKernel(todo.kernel, l->n_blocks, 1, 1, l->n_threads, 1, 1, 0, stream, arguments, NULL));
	st = st ? st : note_call(c, &s, err);
	if (!st)
		keep_pace(c, &s);
	return st;
}

gpul_status gpul_comm_enqueue(gpul_comm *c, enum kernel_id id, void *argument, unsigned n_blocks, unsigned n_threads, CUstream stream,
			      gpul_error *err)
{
	gpul_error why = { 0 };
	CUstreamCaptureMode mode;
	gpul_status st = gpul_comm_idle(c, err);

	if (st)
		return st;
	gpul_bell_ring(gpul_boot_bell(c->boot));
	mode = gpul_comm_relax(c);
	st = launch_call(c, &(struct launch){ id, NULL, argument, n_blocks, n_threads }, stream, &why);
	gpul_comm_unrelax(c, mode);
	return st ? gpul_comm_rank_failed(c, &why, err) : GPUL_OK;
}
