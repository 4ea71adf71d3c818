/* transfers.c — sends, receives, flushes and tests. */
#include "nccl/net/transfers.h"

/* ---- memory ---------------------------------------------------------------------------------------------------- */

gpul_status gpul_net_register(gpul_net_end *e, void *at, size_t n_bytes, gpul_rdma_region **out, gpul_error *err)
{
	return gpul_rdma_register(e->r, at, n_bytes, e->sends ? GPUL_RDMA_SOURCE : GPUL_RDMA_DATA, out, err);
}

gpul_status gpul_net_register_dmabuf(gpul_net_end *e, void *at, size_t n_bytes, uint64_t offset, int dmabuf_fd, gpul_rdma_region **out,
				     gpul_error *err)
{
	const gpul_rdma_memory piece = { .at = (uint64_t)(uintptr_t)at,
					 .bytes = n_bytes,
					 .dmabuf_fd = dmabuf_fd,
					 .dmabuf_offset = offset,
					 .relaxed = true,
					 .source = e->sends };
	gpul_rdma_device_info info;

	gpul_rdma_about(e->r, &info);
	if (!info.dmabuf)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the backend %s cannot register dma-bufs", info.name);
	return gpul_rdma_register_pieces(e->r, &piece, 1, true, out, err);
}

/* ---- send ------------------------------------------------------------------------------------------------------ */

gpul_status gpul_net_isend(gpul_net_end *e, const gpul_rdma_buffer *from, gpul_net_request **out, gpul_error *err)
{
	gpul_net_request *r;
	gpul_status st = GPUL_OK;

	*out = NULL;
	if (!e->sends)
		return gpul_fail(err, GPUL_EINVAL, 0, "NCCL called isend on a connection that only receives");
	if (!gpul_rdma_may_send(e->conn, from->tag)) { /* make progress, because only then slots arrive and earlier sends leave */
		st = gpul_rdma_progress(e->conn, NULL, err);
		if (st || !gpul_rdma_may_send(e->conn, from->tag))
			return st;
	}
	r = gpul_net_request_take(&e->requests, e, 1, true);
	if (!r)
		return GPUL_OK;
	st = gpul_rdma_isend(e->conn, from, 0, &r->posted[0], err);
	if (!st && r->posted[0]) {
		r->n_posted = 1;
		st = gpul_rdma_progress(e->conn, NULL, err);
	}
	if (st || !r->n_posted)
		gpul_net_request_free(r);
	else
		*out = r;
	return st;
}

/* ---- receive --------------------------------------------------------------------------------------------------- */

/* Post the buffers of the last receive that are not posted yet, in order; those for which there is no room stay for a later call. */
static gpul_status post_parts(gpul_net_end *e, gpul_error *err)
{
	gpul_net_request *r = e->unposted;

	while (r->n_posted < gpul_net_request_parts(r)) {
		gpul_rdma_request *request = &r->posted[r->n_posted];
		const gpul_status st = gpul_rdma_irecv(e->conn, &e->later[r->n_posted], r->together ? r->n : 1, 0, request, err);

		if (st || !*request)
			return st;
		r->n_posted++;
	}
	e->unposted = NULL;
	return GPUL_OK;
}

static gpul_status check_receive(const gpul_net_end *e, unsigned n, gpul_error *err)
{
	if (e->sends)
		return gpul_fail(err, GPUL_EINVAL, 0, "NCCL called irecv on a connection that only sends");
	if (n < 1 || n > GPUL_NCCL_MAX_RECVS)
		return gpul_fail(err, GPUL_EINVAL, 0, "a receive has %u buffers: expected 1 to %d", n, GPUL_NCCL_MAX_RECVS);
	return GPUL_OK;
}

gpul_status gpul_net_irecv(gpul_net_end *e, const gpul_rdma_buffer *to, unsigned n, gpul_net_request **out, gpul_error *err)
{
	size_t n_bytes[GPUL_NCCL_MAX_RECVS];
	int tags[GPUL_NCCL_MAX_RECVS];
	gpul_net_request *r;
	gpul_status st = check_receive(e, n, err);

	*out = NULL;
	if (!st && e->unposted) {
		st = gpul_rdma_progress(e->conn, NULL, err);
		st = st ? st : post_parts(e, err);
	}
	if (st || e->unposted)
		return st;
	for (unsigned i = 0; i < n; i++) {
		e->later[i] = to[i];
		n_bytes[i] = to[i].bytes;
		tags[i] = (int)to[i].tag;
	}
	r = gpul_net_request_take(&e->requests, e, n, gpul_net_fits_together(n_bytes, tags, n, GPUL_NET_SEGMENT_BYTES));
	if (!r)
		return GPUL_OK;
	e->unposted = r;
	st = post_parts(e, err);
	st = st ? st : gpul_rdma_progress(e->conn, NULL, err);
	if (st) {
		e->unposted = NULL;
		gpul_net_request_free(r);
	} else {
		*out = r;
	}
	return st;
}

/* ---- flush ----------------------------------------------------------------------------------------------------- */

gpul_status gpul_net_iflush(gpul_net_end *e, const gpul_rdma_buffer *at, unsigned n, gpul_net_request **out, gpul_error *err)
{
	gpul_net_request *r = NULL;
	gpul_status st = check_receive(e, n, err);

	*out = NULL;
	for (unsigned i = 0; !st && i < n; i++) {
		if (!at[i].bytes || !gpul_rdma_region_area(at[i].region)->flush)
			continue;
		r = r ? r : gpul_net_request_take(&e->requests, e, 0, false);
		if (!r)
			return gpul_fail(err, GPUL_ENOMEM, 0, "more than %d requests are in flight", GPUL_NET_REQUESTS);
		st = gpul_rdma_iflush(e->conn, &at[i], 0, &r->posted[r->n], err);
		if (!st && !r->posted[r->n])
			st = gpul_fail(err, GPUL_ENOMEM, 0, "too many flushes are in flight");
		if (!st)
			r->n_posted = ++r->n;
	}
	if (st && r)
		gpul_net_request_free(r);
	else
		*out = r;
	return st;
}

/* ---- test ------------------------------------------------------------------------------------------------------ */

gpul_status gpul_net_test(gpul_net_request *r, bool *done, gpul_error *err)
{
	gpul_net_end *e = r->end;
	gpul_status st = GPUL_OK;

	*done = false;
	while (r->n_ended < r->n_posted) {
		bool ended = false;

		st = gpul_rdma_test(e->conn, r->posted[r->n_ended], &ended, &r->bytes[r->n_ended], err);
		if (st || !ended)
			return st;
		r->n_ended++;
	}
	if (e->unposted == r)
		st = post_parts(e, err);
	if (st || !gpul_net_request_ended(r))
		return st;
	*done = true;
	gpul_net_request_free(r);
	return GPUL_OK;
}
