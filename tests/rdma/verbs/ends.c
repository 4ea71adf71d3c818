/* ends.c — two ends of a verbs path in one process. */
#include "tests/rdma/verbs/ends.h"
#include "tests/support/cmocka.h"
#include <stdlib.h>

#include "core/clock.h"

const gpul_rdma_backend *end_backend = &gpul_rdma_verbs;

gpul_rdma_device_desc plain_desc(void)
{
	return (gpul_rdma_device_desc){ .gpu = -1, .gid_index = -1 };
}

gpul_status end_open(struct end *e, const gpul_rdma_device_desc *desc, unsigned n_qps, gpul_error *err)
{
	gpul_status st;

	*e = (struct end){ .memory = calloc(1, END_BYTES) };
	st = end_backend->open(desc, &e->device, err);
	if (!st)
		st = end_backend->reg(
			e->device,
			&(gpul_rdma_memory){
				.at = (uintptr_t)e->memory, .bytes = END_BYTES, .dmabuf_fd = -1, .flushed = true, .relaxed = true },
			&e->piece, &e->token, err);
	if (!st)
		st = end_backend->create_path(e->device, n_qps, END_DEPTH, END_RECVS, NULL, &e->path, err);
	if (st)
		end_close(e);
	return st;
}

void end_close(struct end *e)
{
	if (e->path)
		end_backend->destroy_path(e->path);
	if (e->token)
		end_backend->dereg(e->device, e->token);
	if (e->device)
		end_backend->close(e->device);
	free(e->memory);
	*e = (struct end){ 0 };
}

gpul_status ends_connect(struct end *a, struct end *b, gpul_error *err)
{
	unsigned char of_a[GPUL_RDMA_MAX_DESCRIPTION], of_b[GPUL_RDMA_MAX_DESCRIPTION];
	const size_t a_bytes = end_backend->describe(a->path, of_a), b_bytes = end_backend->describe(b->path, of_b);
	const gpul_status st = end_backend->connect_path(b->path, of_a, a_bytes, err);

	return st ? st : end_backend->connect_path(a->path, of_b, b_bytes, err);
}

void ends_open(struct end *a, struct end *b, const gpul_rdma_device_desc *desc, unsigned n_qps)
{
	gpul_error err = { 0 };

	if (end_open(a, desc, n_qps, &err) || end_open(b, desc, n_qps, &err) || ends_connect(a, b, &err))
		fail_msg("%s", err.text);
}

void post_all(struct end *e, const gpul_rdma_op *ops, unsigned n)
{
	gpul_rdma_failure why = { 0 };
	unsigned n_posted = 0;

	if (end_backend->post(e->path, ops, n, &n_posted, &why))
		fail_msg("%s: %s", why.call, why.what);
	assert_int_equal(n_posted, n);
}

unsigned poll_once(struct end *e, gpul_rdma_event *events, unsigned max)
{
	gpul_rdma_failure why = { 0 };
	unsigned n = 0;

	if (end_backend->poll(e->path, events, max, &n, &why))
		fail_msg("%s: %s", why.call, why.what);
	return n;
}

gpul_rdma_failure poll_failure(struct end *e)
{
	const uint64_t begin = gpul_clock_ns();
	gpul_rdma_failure why = { 0 };
	gpul_rdma_event events[8];
	unsigned n;

	while (end_backend->poll(e->path, events, 8, &n, &why) == GPUL_OK)
		if (gpul_clock_ns() - begin > 30000000000)
			fail_msg("the path has not failed");
	return why;
}

gpul_rdma_op write_op(const struct end *from, const struct end *to, gpul_rdma_op_kind kind, uint64_t offset, uint32_t n_bytes, uint64_t id)
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
