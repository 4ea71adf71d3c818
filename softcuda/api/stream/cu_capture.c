/* cu_capture.c — stream capture: work for a capturing stream becomes nodes of a graph instead of being run.
 *
 *     cuStreamBeginCapture(A)            a capture begins; its graph is empty
 *     cuLaunchKernel(k1, A)              k1
 *     cuEventRecord(e, A)                 │ ╲                 e: the point after k1
 *     cuStreamWaitEvent(B, e)             │  ╲                B joins the capture (a fork)
 *     cuLaunchKernel(k2, B)               │   k2
 *     cuLaunchKernel(k3, A)              k3   │
 *     cuEventRecord(f, B)                 │  ╱
 *     cuStreamWaitEvent(A, f)             │ ╱                 A waits for B's work (the join, which must not be missing)
 *     cuStreamEndCapture(A)              the graph: k1, k2, k3
 *
 * A call that the capture cannot express makes the capture invalid, and so do calls that wait for the captured work, which
 * never runs.  Errors: CUDA Driver API, cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode; CUDA C++ Programming
 * Guide, "Prohibited and Unhandled Operations" and "Invalidation". */
#include "softcuda/api/stream/cu_graph_internal.h"

#include <stdlib.h>

static struct link captures = { &captures, &captures }; /* captures in progress */
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUstreamCaptureMode soft_capture_exchange_mode(CUstreamCaptureMode mode)
{
	CUstreamCaptureMode before = thread_mode;

	thread_mode = mode;
	return before;
}

static void unref_capture(struct capture *c)
{
	if (!--c->refs)
		free(c);
}

static void leave_capture(struct stream *s)
{
	list_remove(&s->in_capture);
	s->capture = NULL;
	soft_nodes_clear(&s->tips);
}

/* ---- refusing --------------------------------------------------------------------------------------- */

CUresult soft_capture_refuse(struct stream *s, const char *call)
{
	if (s->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	s->capture->is_invalid = true;
	return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s: the stream is capturing, and a graph cannot contain this call",
			   call);
}

CUresult soft_capture_refuse_in(struct context *ctx, const char *call)
{
	CUresult r = CUDA_SUCCESS;

	if (list_empty(&captures))
		return r;
	for (struct link *i = ctx->streams.next; i != &ctx->streams; i = i->next) {
		struct stream *s = CONTAINER(i, struct stream, link);

		if (!s->capture)
			continue;
		s->capture->is_invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return r ? soft_refuse(r, "%s: a stream of the context is capturing", call) : r;
}

CUresult soft_capture_check_query(struct stream *s, bool invalidate)
{
	struct context *ctx = s->ctx;
	CUresult r = CUDA_SUCCESS;

	if (list_empty(&captures) || s != ctx->legacy)
		return r;
	for (struct link *i = ctx->streams.next; i != &ctx->streams; i = i->next) {
		struct stream *other = CONTAINER(i, struct stream, link);

		if (!other->capture || !other->blocking)
			continue;
		other->capture->is_invalid |= invalidate;
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return r;
}

CUresult soft_capture_check_legacy(struct stream *s)
{
	const CUresult r = soft_capture_check_query(s, true);

	return r ? soft_refuse(r, "the legacy stream includes the work of a blocking stream that is capturing: "
				  "create the stream with CU_STREAM_NON_BLOCKING")
		 : r;
}

/* Returns true if the capture's mode forbids unsafe calls on this thread (CUDA Driver API, cuThreadExchangeStreamCaptureMode). */
static bool forbids_unsafe_calls(const struct capture *c)
{
	if (c->thread == soft_thread_id())
		return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult soft_capture_check_unsafe(const char *call)
{
	CUresult r = CUDA_SUCCESS;

	for (struct link *i = captures.next; i != &captures; i = i->next) {
		struct capture *c = CONTAINER(i, struct capture, link);

		if (!forbids_unsafe_calls(c))
			continue;
		c->is_invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return r ? soft_refuse(r,
			       "%s: forbidden while a stream is capturing, unless the capture's mode "
			       "or the thread's (cuThreadExchangeStreamCaptureMode) is relaxed",
			       call)
		 : r;
}

/* ---- beginning and ending a capture ----------------------------------------------------------------- */

static bool add_nodes(struct node_list *to, const struct node_list *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (!soft_nodes_add(to, from->at[i], &from->data[i]))
			return false;
	return true;
}

CUresult soft_capture_begin(struct stream *s, CUstreamCaptureMode mode, struct graph *to, const struct node_list *after)
{
	struct capture *c;
	CUresult r;

	if (s == s->ctx->legacy)
		return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuStreamBeginCapture: the legacy stream cannot be captured");
	if (s->capture)
		return soft_refuse(CUDA_ERROR_ILLEGAL_STATE, "cuStreamBeginCapture: the stream is capturing already");
	c = calloc(1, sizeof *c);
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = to ? CUDA_SUCCESS : soft_graph_new(&c->graph);
	if (!r && after && !add_nodes(&s->tips, after)) {
		soft_nodes_clear(&s->tips);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r) {
		free(c);
		return r;
	}
	if (to)
		c->graph = to;
	c->graph->is_of_program = to != NULL;
	c->graph->is_captured_now = true;
	c->refs = 1;
	c->origin = s;
	c->mode = mode;
	c->thread = soft_thread_id();
	c->id = ++soft.next_id;
	list_init(&c->streams);
	list_append(&captures, &c->link);
	list_append(&c->streams, &s->in_capture);
	s->capture = c;
	return CUDA_SUCCESS;
}

/* Check that the stream that began the capture waits for all other streams: some node waits for each last node (tip) of another
 * stream.  Nodes added by cuStreamUpdateCaptureDependencies are exempt, because NCCL passes event record nodes to that call. */
static CUresult check_joined(const struct capture *c)
{
	for (struct link *i = c->streams.next; i != &c->streams; i = i->next) {
		const struct stream *s = CONTAINER(i, struct stream, in_capture);

		for (size_t k = 0; k < s->tips.n; k++)
			if (s->tips.at[k]->is_captured && !s->tips.at[k]->n_dependents && !soft_nodes_have(&c->origin->tips, s->tips.at[k]))
				return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
						   "cuStreamEndCapture: work of another stream was captured, but the stream that began "
						   "the capture does not wait for it: record an event after it and wait for the event");
	}
	return CUDA_SUCCESS;
}

/* End the capture; *out receives its graph, or the graph is freed. */
static void end_capture(struct capture *c, struct graph **out)
{
	while (!list_empty(&c->streams))
		leave_capture(CONTAINER(c->streams.next, struct stream, in_capture));
	list_remove(&c->link);
	c->has_ended = true;
	c->graph->is_captured_now = false;
	if (out)
		*out = c->graph;
	else if (!c->graph->is_of_program)
		soft_graph_free(c->graph);
	c->graph = NULL;
	unref_capture(c);
}

CUresult soft_capture_end(struct stream *s, struct graph **out)
{
	struct capture *c = s->capture;
	CUresult r;

	if (!c)
		return soft_refuse(CUDA_ERROR_ILLEGAL_STATE, "cuStreamEndCapture: the stream is not capturing");
	if (s != c->origin) {
		c->is_invalid = true;
		return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "cuStreamEndCapture: the capture began in another stream");
	}
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != soft_thread_id()) {
		c->is_invalid = true;
		return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
				   "cuStreamEndCapture: another thread began the capture, and its mode is not relaxed");
	}
	r = c->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(c);
	end_capture(c, r ? NULL : out);
	return r;
}

/* Remove a destroyed stream from its capture, which ends if this stream began it. */
void soft_capture_leave(struct stream *s)
{
	if (!s->capture)
		return;
	if (s == s->capture->origin)
		end_capture(s->capture, NULL);
	else
		leave_capture(s);
}

/* ---- captured work ------------------------------------------------------------------------------------ */

/* Add a node with the work op to the graph of the capture. */
static CUresult add_captured(struct op *op)
{
	struct stream *s = op->stream;
	struct node *n;
	CUresult r;

	if (s->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!op->kind->is_node)
		return soft_capture_refuse(s, "this call");
	op->stream = NULL;
	op->ctx = NULL;
	op->refs++;
	r = soft_node_new(s->capture->graph, op->kind->node_type, op, NULL, &s->tips, &n);
	if (!r) {
		n->is_captured = true;
		s->tips.n = 0;
		if (!soft_nodes_add(&s->tips, n, NULL))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r)
		s->capture->is_invalid = true;
	return r;
}

CUresult soft_capture_or_submit(struct op *op)
{
	CUresult r;

	if (op->stream->capture)
		return add_captured(op);
	r = soft_capture_check_legacy(op->stream);
	return r ? r : soft_op_submit(op, NULL);
}

/* ---- events in a capture ----------------------------------------------------------------------------- */

void soft_capture_forget(struct event *e)
{
	struct capture_point *p = e->captured;

	if (!p)
		return;
	unref_capture(p->capture);
	soft_nodes_clear(&p->nodes);
	free(p);
	e->captured = NULL;
}

CUresult soft_capture_record(struct stream *s, struct event *e)
{
	struct capture_point *p;

	if (s->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	p = calloc(1, sizeof *p);
	if (!p || !add_nodes(&p->nodes, &s->tips)) {
		if (p)
			soft_nodes_clear(&p->nodes);
		free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->capture = s->capture;
	p->capture->refs++;
	soft_capture_forget(e);
	e->captured = p;
	return CUDA_SUCCESS;
}

/* Check that s may wait for an event that was recorded in the capture `theirs`; NULL: the event was not captured. */
static CUresult check_wait_event(struct stream *s, struct capture *theirs)
{
	struct capture *ours = s->capture;

	if (theirs && theirs->has_ended && !ours)
		return soft_refuse(CUDA_ERROR_CAPTURED_EVENT,
				   "cuStreamWaitEvent: the event was last recorded in a capture, which has ended");
	if ((ours && ours->is_invalid) || (theirs && theirs->is_invalid))
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (ours && (!theirs || theirs->has_ended)) {
		ours->is_invalid = true;
		return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
				   "cuStreamWaitEvent: the stream is capturing, but the event was not recorded in its capture");
	}
	if (ours && ours != theirs) {
		ours->is_invalid = theirs->is_invalid = true;
		return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE,
				   "cuStreamWaitEvent: the stream and the event belong to different captures");
	}
	if (s == s->ctx->legacy) {
		theirs->is_invalid = true;
		return soft_refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "cuStreamWaitEvent: the legacy stream cannot join a capture");
	}
	return CUDA_SUCCESS;
}

CUresult soft_capture_set_tips(struct stream *s, const struct node_list *nodes, bool add)
{
	if (!s->capture)
		return soft_refuse(CUDA_ERROR_ILLEGAL_STATE, "cuStreamUpdateCaptureDependencies: the stream is not capturing");
	if (s->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!add)
		s->tips.n = 0;
	if (add_nodes(&s->tips, nodes))
		return CUDA_SUCCESS;
	s->capture->is_invalid = true;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult soft_capture_wait(struct stream *s, struct event *e)
{
	struct capture *theirs = e->captured ? e->captured->capture : NULL;
	CUresult r;

	/* an event that was never recorded counts as complete, as on an H200, so there is nothing to wait for */
	if (s->capture && !theirs && !e->recorded && !soft_shared_event_is_remote(e->shared))
		return s->capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
	r = check_wait_event(s, theirs);
	if (r)
		return r;
	if (!s->capture) { /* a fork: waiting for the event makes s join the capture */
		s->capture = theirs;
		list_append(&theirs->streams, &s->in_capture);
	}
	if (add_nodes(&s->tips, &e->captured->nodes))
		return CUDA_SUCCESS;
	s->capture->is_invalid = true;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult soft_capture_check_event(struct event *e)
{
	if (!e->captured)
		return CUDA_SUCCESS;
	e->captured->capture->is_invalid = true;
	return soft_refuse(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a stream capture, so it never completes");
}
