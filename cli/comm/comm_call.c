/* comm_call.c — computes the buffers of a call and its bandwidth factor, and makes the call. */
#include "cli/comm/comm_bench.h"

double comm_bus_factor(gpul_comm_call call, int n_ranks)
{
	const double n = n_ranks, rounds = gpul_comm_call_info(call)->rounds;

	return rounds > 0 ? rounds * (n - 1) / n : 1;
}

struct comm_shape comm_shape_of(gpul_comm_call call, gpul_comm_dtype dtype, int rank, int n_ranks, size_t bytes)
{
	const struct gpul_comm_call_info *info = gpul_comm_call_info(call);
	const size_t element = gpul_comm_dtype_bytes(dtype), parts = info->has_parts ? (size_t)n_ranks : 1;
	struct comm_shape s = { .call = call, .count = bytes / element / parts, .n_parts = parts };
	size_t part;

	if (s.count == 0)
		s.count = 1;
	part = s.count * element;
	s.bytes = part * parts;
	s.send_bytes = info->sends_parts ? s.bytes : part;
	s.recv_bytes = info->receives_parts ? s.bytes : part;
	s.in_place = !info->transfers;
	s.send_at = s.bytes > s.send_bytes ? (size_t)rank * part : 0;
	s.recv_at = s.bytes > s.recv_bytes ? (size_t)rank * part : 0;
	return s;
}

/* Each rank sends to the next one, and receives from the one before it. */
static gpul_status enqueue_sendrecv(gpul_comm *c, const struct comm_shape *s, gpul_comm_dtype dtype, bool grouped, CUdeviceptr send,
				    CUdeviceptr recv, CUstream stream, gpul_error *err)
{
	const int rank = gpul_comm_rank(c), n = gpul_comm_size(c);
	gpul_status st = grouped ? gpul_comm_group_begin(c, err) : GPUL_OK;

	st = st ? st : gpul_comm_send(c, send, s->count, dtype, (rank + 1) % n, stream, err);
	st = st ? st : gpul_comm_recv(c, recv, s->count, dtype, (rank + n - 1) % n, stream, err);
	return st || !grouped ? st : gpul_comm_group_end(c, err);
}

/* An all-to-all without a group, as in some programs: all sends, then all receives.  A send waits until its message is in the
 * channel, so if messages are larger than a channel, no rank ever starts to receive. */
static gpul_status enqueue_ungrouped(gpul_comm *c, const struct comm_shape *s, gpul_comm_dtype dtype, CUdeviceptr send, CUdeviceptr recv,
				     CUstream stream, gpul_error *err)
{
	const int rank = gpul_comm_rank(c), n = gpul_comm_size(c);
	const size_t part = s->bytes / s->n_parts;
	gpul_status st = gpul_comm_group_begin(c, err); /* a rank can send to itself only in a group */

	st = st ? st : gpul_comm_send(c, send + (size_t)rank * part, s->count, dtype, rank, stream, err);
	st = st ? st : gpul_comm_recv(c, recv + (size_t)rank * part, s->count, dtype, rank, stream, err);
	st = st ? st : gpul_comm_group_end(c, err);
	for (int d = 1; !st && d < n; d++) {
		const int to = (rank + d) % n;

		st = gpul_comm_send(c, send + (size_t)to * part, s->count, dtype, to, stream, err);
	}
	for (int d = 1; !st && d < n; d++) {
		const int from = (rank + n - d) % n;

		st = gpul_comm_recv(c, recv + (size_t)from * part, s->count, dtype, from, stream, err);
	}
	return st;
}

gpul_status comm_call_enqueue(gpul_comm *c, const struct comm_shape *s, const struct comm_request *q, CUdeviceptr send, CUdeviceptr recv,
			      CUstream stream, gpul_error *err)
{
	switch (s->call) {
	case GPUL_COMM_SENDRECV:
		return enqueue_sendrecv(c, s, q->dtype, !q->ungrouped || gpul_comm_size(c) == 1, send, recv, stream, err);
	case GPUL_COMM_ALLTOALL:
		if (q->ungrouped)
			return enqueue_ungrouped(c, s, q->dtype, send, recv, stream, err);
		return gpul_comm_alltoall(c, send, recv, s->count, q->dtype, stream, err);
	case GPUL_COMM_ALLREDUCE:
		return gpul_comm_allreduce(c, send, recv, s->count, q->dtype, q->op, stream, err);
	case GPUL_COMM_REDUCESCATTER:
		return gpul_comm_reducescatter(c, send, recv, s->count, q->dtype, q->op, stream, err);
	case GPUL_COMM_ALLGATHER:
		return gpul_comm_allgather(c, send, recv, s->count, q->dtype, stream, err);
	default:
		return gpul_comm_broadcast(c, send, recv, s->count, q->dtype, q->root, stream, err);
	}
}
