/* group.c — sends and receives, alone or in groups. */
#include "comm/comm_internal.h"

/* Blocks of a transfer: the same on both sides, because it depends on the plan, which depends on the size. */
static void place(gpul_comm *c, gpul_comm_transfers *t, const gpul_comm_plan *plan)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const gpul_comm_plan own = gpul_comm_plan_for(c, GPUL_COMM_SENDRECV, t->items[i].bytes);

		t->items[i].n_blocks = (uint16_t)own.n_blocks;
		t->items[i].first_block = next;
		next += own.n_blocks;
	}
	(void)plan;
}

static gpul_status launch_transfers(gpul_comm *c, gpul_comm_transfers *t, CUstream stream, gpul_error *err)
{
	gpul_comm_plan plan;
	const gpul_comm_transfer *last = &t->items[t->n - 1];

	if (t->n == 0)
		return GPUL_OK;
	plan = gpul_comm_plan_for(c, GPUL_COMM_SENDRECV, last->bytes);
	place(c, t, &plan);
	return gpul_comm_enqueue(c, KERNEL_SENDRECV, t, last->first_block + last->n_blocks, plan.n_threads, stream, err);
}

static gpul_status add(gpul_comm *c, bool sends, CUdeviceptr at, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream,
		       gpul_error *err)
{
	gpul_comm_transfers one = { 0 }, *t = c->in_group ? &c->group : &one;
	gpul_comm_transfer item = { .at = at, .bytes = count * gpul_comm_dtype_bytes(dtype), .peer = peer, .sends = sends };
	const gpul_status st = gpul_comm_usable(c, err);

	if (st || count == 0)
		return st;
	if (gpul_comm_dtype_bytes(dtype) == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "%d is not an element type", (int)dtype);
	if (peer < 0 || peer >= c->n_ranks)
		return gpul_fail(err, GPUL_EINVAL, 0, "rank %d does not exist: the communicator has ranks 0 to %d", peer,
				 c->n_ranks - 1);
	if (t->n == GPUL_COMM_MAX_P2P)
		return gpul_fail(err, GPUL_EINVAL, 0, "a group has at most %d sends and receives", GPUL_COMM_MAX_P2P);
	if (t->n > 0 && c->group_stream != stream)
		return gpul_fail(err, GPUL_EINVAL, 0, "the calls of a group use different streams");
	item.window = gpul_comm_window_of(c, at, item.bytes, &item.offset);
	t->items[t->n++] = item;
	c->group_stream = stream;
	return c->in_group ? GPUL_OK : launch_transfers(c, t, stream, err);
}

gpul_status gpul_comm_send(gpul_comm *c, CUdeviceptr send, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream,
			   gpul_error *err)
{
	return add(c, true, send, count, dtype, peer, stream, err);
}

gpul_status gpul_comm_recv(gpul_comm *c, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream,
			   gpul_error *err)
{
	return add(c, false, recv, count, dtype, peer, stream, err);
}

gpul_status gpul_comm_group_begin(gpul_comm *c, gpul_error *err)
{
	if (c->in_group)
		return gpul_fail(err, GPUL_EINVAL, 0, "a group has begun already; groups cannot be nested");
	c->in_group = true;
	c->group.n = 0;
	return GPUL_OK;
}

gpul_status gpul_comm_group_end(gpul_comm *c, gpul_error *err)
{
	if (!c->in_group)
		return gpul_fail(err, GPUL_EINVAL, 0, "no group has begun");
	c->in_group = false;
	return c->group.n ? launch_transfers(c, &c->group, c->group_stream, err) : GPUL_OK;
}
