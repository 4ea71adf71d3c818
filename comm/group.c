/* group.c — sends and receives, single or in groups. */
#include "comm/comm_internal.h"

/* The kernel of a group has at most GROUP_BLOCKS * sizes.n_blocks blocks, so that all of them are resident at the same time. */
enum { GROUP_BLOCKS = 4 };

/* Choose the protocol and the number of blocks from the size of the transfer only, so that sender and receiver choose the same. */
static unsigned choose(gpul_comm *c, gpul_comm_transfer *t)
{
	const gpul_comm_plan plan = gpul_comm_plan_for(c, GPUL_COMM_SENDRECV, t->bytes);
	const unsigned n_peers = c->n_ranks > 1 ? (unsigned)c->n_ranks - 1 : 1;
	const unsigned at_most = GROUP_BLOCKS * c->sizes.n_blocks / (2 * n_peers);

	t->proto = (uint8_t)plan.proto;
	t->n_blocks = (uint16_t)(plan.n_blocks < at_most ? plan.n_blocks : at_most ? at_most : 1);
	return plan.n_threads;
}

static bool same_channel(const gpul_comm_transfer *a, const gpul_comm_transfer *b)
{
	return a->peer == b->peer && a->kind == b->kind && a->kind != GPUL_COMM_TRANSFER_COPY;
}

/* Assign blocks to the transfers; transfers on different channels get different blocks.  Returns the total number of blocks. */
static unsigned place(gpul_comm_transfers *t)
{
	unsigned next = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		gpul_comm_transfer *item = &t->items[i];
		unsigned most = item->n_blocks;
		uint32_t k = 0;

		while (k < i && !same_channel(&t->items[k], item))
			k++;
		if (k < i) {
			item->first_block = t->items[k].first_block;
			continue;
		}
		for (k = i + 1; k < t->n; k++)
			if (same_channel(&t->items[k], item) && t->items[k].n_blocks > most)
				most = t->items[k].n_blocks;
		item->first_block = next;
		next += most;
	}
	return next;
}

gpul_status gpul_comm_launch_transfers(gpul_comm *c, gpul_comm_transfers *t, CUstream stream, gpul_error *err)
{
	unsigned n_blocks, n_threads = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const unsigned wanted = choose(c, &t->items[i]);

		n_threads = wanted > n_threads ? wanted : n_threads;
	}
	n_blocks = place(t);
	return gpul_comm_enqueue(c, t->n <= GPUL_COMM_FEW_P2P ? KERNEL_sendrecv_few : KERNEL_sendrecv, t, n_blocks, n_threads, stream, err);
}

static bool receives_from(const gpul_comm_transfer *t, int rank)
{
	return t->kind == GPUL_COMM_TRANSFER_RECV && t->peer == rank;
}

/* Replace the sends of this rank to itself, and the matching receives, by copies. */
static gpul_status pair_own(gpul_comm *c, gpul_comm_transfers *t, gpul_error *err)
{
	for (uint32_t i = 0; i < t->n; i++) {
		gpul_comm_transfer *send = &t->items[i];
		uint32_t k = 0;

		if (send->kind != GPUL_COMM_TRANSFER_SEND || send->peer != c->rank)
			continue;
		while (k < t->n && !receives_from(&t->items[k], c->rank))
			k++;
		if (k == t->n)
			return gpul_fail(err, GPUL_EINVAL, 0, "rank %d sends %llu bytes to itself, but the group does not receive them",
					 c->rank, (unsigned long long)send->bytes);
		if (t->items[k].bytes != send->bytes)
			return gpul_fail(err, GPUL_EINVAL, 0, "rank %d sends %llu bytes to itself, but receives %llu bytes from itself",
					 c->rank, (unsigned long long)send->bytes, (unsigned long long)t->items[k].bytes);
		send->kind = GPUL_COMM_TRANSFER_COPY;
		send->offset = t->items[k].at;
		t->items[k].kind = GPUL_COMM_TRANSFER_COPY;
		t->items[k].bytes = 0; /* marks the item as empty; the loop below removes it */
	}
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		if (receives_from(&t->items[i], c->rank))
			return gpul_fail(err, GPUL_EINVAL, 0, "rank %d receives %llu bytes from itself, but the group does not send them",
					 c->rank, (unsigned long long)t->items[i].bytes);
		if (t->items[i].bytes)
			t->items[n++] = t->items[i];
	}
	t->n = n;
	return GPUL_OK;
}

static gpul_status launch_group(gpul_comm *c, gpul_comm_transfers *t, CUstream stream, gpul_error *err)
{
	const gpul_status st = pair_own(c, t, err);

	return st || t->n == 0 ? st : gpul_comm_launch_transfers(c, t, stream, err);
}

static gpul_status add(gpul_comm *c, bool sends, CUdeviceptr at, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream,
		       gpul_error *err)
{
	gpul_comm_transfers one = { 0 }, *t = c->in_group ? &c->group : &one;
	const size_t element_bytes = gpul_comm_dtype_bytes(dtype);
	gpul_comm_transfer item = { .at = at, .peer = peer, .kind = sends ? GPUL_COMM_TRANSFER_SEND : GPUL_COMM_TRANSFER_RECV };
	gpul_status st = gpul_comm_usable(c, err);

	if (st)
		return st;
	if (element_bytes == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "element type %d is unknown: expected a value of gpul_comm_dtype", (int)dtype);
	if (peer < 0 || peer >= c->n_ranks)
		return gpul_fail(err, GPUL_EINVAL, 0, "rank %d does not exist: the communicator has ranks 0 to %d", peer, c->n_ranks - 1);
	if (count > SIZE_MAX / 2 / element_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu elements of %zu bytes are more than the address space", count, element_bytes);
	if (count == 0)
		return GPUL_OK;
	st = gpul_comm_check_buffer(sends ? "send" : "recv", at, count * element_bytes, element_bytes, err);
	if (st)
		return st;
	if (t->n == GPUL_COMM_MAX_P2P)
		return gpul_fail(err, GPUL_EINVAL, 0, "a group has at most %d sends and receives", GPUL_COMM_MAX_P2P);
	if (t->n > 0 && c->group_stream != stream)
		return gpul_fail(err, GPUL_EINVAL, 0, "the calls of a group use different streams");
	item.bytes = count * element_bytes;
	item.window = gpul_comm_window_of(c, at, item.bytes, &item.offset);
	t->items[t->n++] = item;
	if (c->in_group) {
		c->group_stream = stream;
		return GPUL_OK;
	}
	return launch_group(c, t, stream, err);
}

gpul_status gpul_comm_send(gpul_comm *c, CUdeviceptr send, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream, gpul_error *err)
{
	return add(c, true, send, count, dtype, peer, stream, err);
}

gpul_status gpul_comm_recv(gpul_comm *c, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream, gpul_error *err)
{
	return add(c, false, recv, count, dtype, peer, stream, err);
}

gpul_status gpul_comm_group_begin(gpul_comm *c, gpul_error *err)
{
	if (c->in_group)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "gpul_comm_group_begin() was called twice without gpul_comm_group_end(): groups cannot be nested");
	c->in_group = true;
	c->group.n = 0;
	return GPUL_OK;
}

gpul_status gpul_comm_group_end(gpul_comm *c, gpul_error *err)
{
	if (!c->in_group)
		return gpul_fail(err, GPUL_EINVAL, 0, "gpul_comm_group_end() was called without gpul_comm_group_begin()");
	c->in_group = false;
	return launch_group(c, &c->group, c->group_stream, err);
}
