/* request.c — isend, irecv, put, iflush, test, wait: call the link's functions with an absolute deadline, and make progress. */
#include "rdma/rdma_internal.h"

#include <sched.h>

#include "core/clock.h"

enum { TURNS_PER_YIELD = 64 };

/* Convert a relative time-out to an absolute deadline; 0: none. */
static uint64_t deadline_of(int timeout_ms)
{
	return timeout_ms > 0 ? gpul_clock_ns() + (uint64_t)timeout_ms * 1000000 : 0;
}

static gpul_rdma_span span_of(const gpul_rdma_buffer *b)
{
	return (gpul_rdma_span){ .at = b->at, .bytes = b->bytes, .area = b->region ? &b->region->area : NULL };
}

gpul_status gpul_rdma_isend(gpul_rdma_conn *c, const gpul_rdma_buffer *buffer, int timeout_ms, gpul_rdma_request *out, gpul_error *err)
{
	const gpul_rdma_span span = span_of(buffer);

	return gpul_rdma_link_send(c->link, &span, buffer->tag, deadline_of(timeout_ms), out, err);
}

bool gpul_rdma_may_send(gpul_rdma_conn *c, uint32_t tag)
{
	return gpul_rdma_link_may_send(c->link, tag);
}

gpul_status gpul_rdma_irecv(gpul_rdma_conn *c, const gpul_rdma_buffer *buffers, unsigned n, int timeout_ms, gpul_rdma_request *out,
			    gpul_error *err)
{
	gpul_rdma_span spans[GPUL_RDMA_MAX_PARTS];
	uint32_t tags[GPUL_RDMA_MAX_PARTS];

	for (unsigned i = 0; i < n && i < GPUL_RDMA_MAX_PARTS; i++) {
		spans[i] = span_of(&buffers[i]);
		tags[i] = buffers[i].tag;
	}
	return gpul_rdma_link_recv(c->link, spans, tags, n, deadline_of(timeout_ms), out, err);
}

gpul_status gpul_rdma_put(gpul_rdma_conn *c, const gpul_rdma_put_desc *put, int timeout_ms, gpul_rdma_request *out, gpul_error *err)
{
	return gpul_rdma_link_put(c->link, put, deadline_of(timeout_ms), out, err);
}

gpul_status gpul_rdma_iflush(gpul_rdma_conn *c, const gpul_rdma_buffer *buffer, int timeout_ms, gpul_rdma_request *out, gpul_error *err)
{
	const gpul_rdma_span span = span_of(buffer);

	return gpul_rdma_link_flush(c->link, &span, deadline_of(timeout_ms), out, err);
}

gpul_status gpul_rdma_test(gpul_rdma_conn *c, gpul_rdma_request request, bool *done, uint64_t *bytes, gpul_error *err)
{
	gpul_status st = gpul_rdma_link_test(c->link, request, done, bytes, err);

	if (st || *done)
		return st;
	(void)gpul_rdma_progress(c, NULL, NULL); /* a failure is ignored here: gpul_rdma_link_test() returns it, unless the request
						  * ended before */
	return gpul_rdma_link_test(c->link, request, done, bytes, err);
}

gpul_status gpul_rdma_wait(gpul_rdma_conn *c, gpul_rdma_request request, uint64_t *bytes, gpul_error *err)
{
	bool done = false;
	gpul_status st = GPUL_OK;

	for (unsigned turns = 1; !st && !done; turns++) {
		st = gpul_rdma_test(c, request, &done, bytes, err);
		if (turns % TURNS_PER_YIELD == 0)
			sched_yield(); /* let the peer run, if both share one CPU */
	}
	return st;
}
