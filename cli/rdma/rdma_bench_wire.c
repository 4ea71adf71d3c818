/* rdma_bench_wire.c — checks the messages of the other end. */
#include "cli/rdma/rdma_bench_wire.h"

#include <string.h>

#include "cli/rdma/rdma_bench_memory.h"

static void end_texts(struct rdma_end *e)
{
	e->backend[sizeof e->backend - 1] = e->device[sizeof e->device - 1] = e->why[sizeof e->why - 1] = 0;
	e->host[sizeof e->host - 1] = e->memory[sizeof e->memory - 1] = 0;
}

gpul_status rdma_wire_check_hello(struct rdma_hello *h, uint64_t bytes, gpul_error *err)
{
	if (bytes != sizeof *h || h->magic != RDMA_WIRE_MAGIC)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the client is not gpuload rdma bench of this version");
	end_texts(&h->client);
	if (h->n_flows < 1 || h->n_flows > RDMA_MOST_FLOWS || h->flow >= h->n_flows)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the client requests flow %u of %u, but at most %d flows are possible", h->flow,
				 h->n_flows, RDMA_MOST_FLOWS);
	if (h->mode >= RDMA_N_MODES || h->flush > 1 || h->n_parts < 1 || h->n_parts > GPUL_RDMA_MAX_PARTS || h->n_requests < 1 ||
	    h->n_requests > RDMA_MOST_REQUESTS || h->n_requests * h->n_parts > RDMA_MOST_RING)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the client requests mode %u with %u messages in each of %u requests, which is out of range", h->mode,
				 h->n_parts, h->n_requests);
	if (h->buffer_bytes < 1 || h->buffer_bytes > rdma_memory_limit() / 2 / h->n_flows)
		return gpul_fail(err, GPUL_ENOMEM, 0, "%u flows with %llu bytes per direction are more than the limit of %llu MiB",
				 h->n_flows, (unsigned long long)h->buffer_bytes, (unsigned long long)(rdma_memory_limit() >> 20));
	return GPUL_OK;
}

/* Copy the error that the other end has sent, without trusting its fields. */
static gpul_status report_peer(gpul_error *theirs, gpul_error *err)
{
	theirs->text[sizeof theirs->text - 1] = 0;
	return gpul_fail(err, theirs->status < GPUL_EINVAL || theirs->status > GPUL_EVERBS ? GPUL_ESYS : theirs->status, theirs->native,
			 "the server reports: %s", theirs->text);
}

gpul_status rdma_wire_check_welcome(struct rdma_welcome *w, uint64_t bytes, gpul_error *err)
{
	if (bytes != sizeof *w || w->magic != RDMA_WIRE_MAGIC)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the server is not gpuload rdma serve of this version");
	end_texts(&w->server);
	return w->err.status ? report_peer(&w->err, err) : GPUL_OK;
}

gpul_status rdma_wire_check_plan(const struct rdma_plan *p, uint64_t bytes, uint64_t number, const struct rdma_shape *shape,
				 gpul_error *err)
{
	if (bytes != sizeof *p || p->magic != RDMA_WIRE_MAGIC || p->number != number || p->kind > RDMA_PLAN_END)
		return gpul_fail(err, GPUL_EFORMAT, 0, "test plan %llu of the client is malformed", (unsigned long long)number);
	if (p->kind == RDMA_PLAN_END)
		return GPUL_OK;
	if (p->count < 1 || p->count > 1ull << 40 || p->window < 1 || p->window > RDMA_MOST_REQUESTS || p->n_parts < 1 ||
	    p->n_parts > shape->n_parts || p->window * p->n_parts > RDMA_MOST_RING || p->bytes > GPUL_RDMA_MAX_PUT ||
	    rdma_memory_stride(p->bytes) > shape->buffer_bytes / (p->window * p->n_parts) || p->n_places < 1 ||
	    p->n_places > p->window * p->n_parts ||
	    (p->kind == RDMA_PLAN_CHECK && (p->count > p->window || p->n_places < p->window * p->n_parts)))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "test plan %llu of the client has %u x %u messages of %llu bytes, which do not fit into the "
				 "buffers",
				 (unsigned long long)number, p->window, p->n_parts, (unsigned long long)p->bytes);
	return GPUL_OK;
}

gpul_status rdma_wire_check_answer(struct rdma_answer *a, uint64_t bytes, uint64_t number, bool ran, gpul_error *err)
{
	if (bytes != sizeof *a || a->magic != RDMA_WIRE_MAGIC || a->number != number)
		return gpul_fail(err, GPUL_EFORMAT, 0, "answer %llu of the server is malformed", (unsigned long long)number);
	if (a->err.status)
		return report_peer(&a->err, err);
	if (a->ran != ran)
		return gpul_fail(err, GPUL_EFORMAT, 0, "answer %llu of the server came too early", (unsigned long long)number);
	return GPUL_OK;
}
