/* ends.c — two ends of a libfabric path in one process. */
#include "tests/rdma/ofi/ends.h"
#include "tests/support/cmocka.h"
#include <stdlib.h>

gpul_status ofi_end_open(struct ofi_end *e, const gpul_rdma_device_desc *desc, unsigned n_qps, gpul_error *err)
{
	const gpul_rdma_backend *b = &gpul_rdma_libfabric;
	gpul_status st;

	*e = (struct ofi_end){ .memory = calloc(1, OFI_END_BYTES) };
	st = b->open(desc, &e->device, err);
	if (!st)
		st = b->reg(e->device, &(gpul_rdma_memory){ .at = (uintptr_t)e->memory, .bytes = OFI_END_BYTES, .dmabuf_fd = -1 },
			    &e->piece, &e->token, err);
	if (!st)
		st = b->create_path(e->device, n_qps, OFI_END_DEPTH, 0, NULL, &e->path, err);
	if (st)
		ofi_end_close(e);
	return st;
}

void ofi_end_close(struct ofi_end *e)
{
	if (e->path)
		gpul_rdma_libfabric.destroy_path(e->path);
	if (e->token)
		gpul_rdma_libfabric.dereg(e->device, e->token);
	if (e->device)
		gpul_rdma_libfabric.close(e->device);
	free(e->memory);
	*e = (struct ofi_end){ 0 };
}

gpul_status ofi_ends_connect(struct ofi_end *a, struct ofi_end *b, gpul_error *err)
{
	unsigned char of_a[GPUL_RDMA_MAX_DESCRIPTION], of_b[GPUL_RDMA_MAX_DESCRIPTION];
	const size_t a_bytes = gpul_rdma_libfabric.describe(a->path, of_a), b_bytes = gpul_rdma_libfabric.describe(b->path, of_b);
	const gpul_status st = gpul_rdma_libfabric.connect_path(b->path, of_a, a_bytes, err);

	return st ? st : gpul_rdma_libfabric.connect_path(a->path, of_b, b_bytes, err);
}

void ofi_ends_open(struct ofi_end *a, struct ofi_end *b, const char *provider, unsigned n_qps)
{
	const gpul_rdma_device_desc desc = { .gpu = -1, .provider = provider };
	gpul_error err = { 0 };

	if (ofi_end_open(a, &desc, n_qps, &err) || ofi_end_open(b, &desc, n_qps, &err) || ofi_ends_connect(a, b, &err))
		fail_msg("%s", err.text);
}

unsigned ofi_post(struct ofi_end *e, const gpul_rdma_op *ops, unsigned n)
{
	gpul_rdma_failure why = { 0 };
	unsigned n_posted = 0;

	if (gpul_rdma_libfabric.post(e->path, ops, n, &n_posted, &why))
		fail_msg("%s: %s", why.call, why.what);
	return n_posted;
}

unsigned ofi_poll(struct ofi_end *e, gpul_rdma_event *events, unsigned max)
{
	gpul_rdma_failure why = { 0 };
	unsigned n = 0;

	if (gpul_rdma_libfabric.poll(e->path, events, max, &n, &why))
		fail_msg("%s: %s", why.call, why.what);
	return n;
}

gpul_rdma_op ofi_write_op(const struct ofi_end *from, const struct ofi_end *to, gpul_rdma_op_kind kind, uint64_t offset, uint32_t n_bytes,
			  uint64_t id)
{
	return (gpul_rdma_op){
		.kind = (uint8_t)kind,
		.flags = GPUL_RDMA_SIGNALED,
		.bytes = n_bytes,
		.id = id,
		.local = from->piece.at + offset,
		.local_key = from->piece.local_key,
		.remote = to->piece.remote + offset,
		.remote_key = to->piece.remote_key,
	};
}
