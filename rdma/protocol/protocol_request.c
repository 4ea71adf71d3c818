/* protocol_request.c — the table of requests, and the handles that programs get for them. */
#include "rdma/protocol/protocol_link_internal.h"

#include <string.h>

static_assert(GPUL_RDMA_REQUESTS == 1 << INDEX_BITS && LAST_GENERATION == UINT32_MAX >> INDEX_BITS, "a handle has 32 bits");

/* A handle consists of the generation and the index.  Generations are 1 to LAST_GENERATION, so no handle is 0, which means "no request". */
gpul_rdma_request gpul_rdma_request_handle(const struct request *r)
{
	return r->generation << INDEX_BITS | r->index;
}

struct request *gpul_rdma_request_new(gpul_rdma_link *l, enum request_kind kind, uint64_t deadline_ns, gpul_rdma_request *out)
{
	struct request *r;

	*out = 0;
	if (!l->n_free_requests)
		return NULL;
	r = &l->requests[l->free_requests[--l->n_free_requests]];
	r->kind = (uint8_t)kind;
	r->ended = r->emitted = false;
	r->ops_left = 0;
	r->deadline_ns = deadline_ns;
	r->begun_ns = l->now_ns;
	if (deadline_ns && deadline_ns < l->next_deadline_ns)
		l->next_deadline_ns = deadline_ns;
	*out = gpul_rdma_request_handle(r);
	return r;
}

struct request *gpul_rdma_request_find(gpul_rdma_link *l, gpul_rdma_request handle)
{
	struct request *r = &l->requests[handle & REQUEST_MASK];

	return r->kind != FREE && gpul_rdma_request_handle(r) == handle ? r : NULL;
}

gpul_status gpul_rdma_link_test(gpul_rdma_link *l, gpul_rdma_request request, bool *done, uint64_t *bytes, gpul_error *err)
{
	struct request *r = gpul_rdma_request_find(l, request);

	*done = false;
	if (!r)
		return gpul_fail(err, GPUL_EINVAL, 0, "request 0x%x does not exist, or an earlier test has already reported its completion",
				 request);
	if (!r->ended)
		return l->failure.status ? gpul_rdma_failure_error(&l->failure, err) : GPUL_OK;
	*done = true;
	if (bytes && r->kind == RECV)
		memcpy(bytes, r->recv.bytes, r->n_parts * sizeof *bytes);
	else if (bytes)
		*bytes = r->span.bytes;
	r->kind = FREE;
	r->generation = r->generation < LAST_GENERATION ? r->generation + 1 : 1;
	l->free_requests[l->n_free_requests++] = r->index;
	return GPUL_OK;
}

bool gpul_rdma_link_emitted(const gpul_rdma_link *l, gpul_rdma_request request)
{
	return l->requests[request & REQUEST_MASK].emitted;
}

gpul_status gpul_rdma_check_span(const gpul_rdma_link *l, const gpul_rdma_span *span, gpul_error *err)
{
	if (l->failure.status)
		return gpul_rdma_failure_error(&l->failure, err);
	if (!span->area || !span->area->n_pieces || !inside(span->area, span->at, span->bytes))
		return gpul_fail(err, GPUL_EINVAL, 0, "%llu bytes at 0x%llx are not inside the registered region",
				 (unsigned long long)span->bytes, (unsigned long long)span->at);
	if (span->area->staged && !l->desc.n_stages)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "this connection has no staging buffers for GPU memory");
	return GPUL_OK;
}

void gpul_rdma_request_retired(gpul_rdma_link *l, struct request *r)
{
	if (--r->ops_left)
		return;
	if (r->kind == PUT && r->put.signal_left) {
		l->signals[l->signals_head++ & REQUEST_MASK] = r->index;
		return;
	}
	if (r->kind == PUT)
		l->queues[r->put.qp].put_busy = false;
	r->ended = r->emitted;
}
