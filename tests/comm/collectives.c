/* collectives.c — data and reference results of collectives.
 *
 * The elements are small whole numbers, so sums and products of up to 8 ranks are exact in every type, in any order.  AVG is rounded once,
 * from the exact sum. */
#include "tests/comm/collectives.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 0xa5 };

void new_buffers(struct rank *r, size_t bytes, bool in_windows, struct buffers *out)
{
	gpul_error err = { 0 };

	*out = (struct buffers){ .bytes = bytes, .in_windows = in_windows };
	if (in_windows) {
		must(gpul_comm_alloc(r->comm, bytes, &out->send, &err), &err, "gpul_comm_alloc");
		must(gpul_comm_alloc(r->comm, bytes, &out->recv, &err), &err, "gpul_comm_alloc");
	} else {
		must(gpul_cu(r->drv, &err, cuMemAlloc(&out->send, bytes)), &err, "cuMemAlloc");
		must(gpul_cu(r->drv, &err, cuMemAlloc(&out->recv, bytes)), &err, "cuMemAlloc");
	}
	/* zeros for tests that do not prepare data; synchronize, because other threads copy to the buffers in other streams */
	must(gpul_cu(r->drv, &err, cuMemsetD8Async(out->send, 0, bytes, r->stream)), &err, "cuMemsetD8Async");
	must(gpul_cu(r->drv, &err, cuStreamSynchronize(r->stream)), &err, "cuStreamSynchronize");
}

void free_buffers(struct rank *r, struct buffers *b)
{
	gpul_error err = { 0 };

	if (b->in_windows) {
		must(gpul_comm_free(r->comm, b->send, &err), &err, "gpul_comm_free");
		must(gpul_comm_free(r->comm, b->recv, &err), &err, "gpul_comm_free");
	} else {
		must(gpul_cu(r->drv, &err, cuMemFree(b->send)), &err, "cuMemFree");
		must(gpul_cu(r->drv, &err, cuMemFree(b->recv)), &err, "cuMemFree");
	}
}

/* Round a float (a normal number or 0) to nearest even in a 16-bit format. */
static uint16_t round_16(float x, int mantissa_bits, int bias)
{
	uint32_t bits, kept;
	const int dropped = 23 - mantissa_bits;

	memcpy(&bits, &x, 4);
	if ((bits & 0x7fffffff) == 0)
		return (uint16_t)(bits >> 16);
	kept = (bits & 0x7fffffff) - ((uint32_t)(127 - bias) << 23);
	kept += (1u << (dropped - 1)) - 1 + (kept >> dropped & 1);
	return (uint16_t)((bits >> 16 & 0x8000) | kept >> dropped);
}

static void store_element(unsigned char *at, gpul_comm_dtype dtype, double x)
{
	const float f = (float)x;
	const int32_t i = (int32_t)x;
	const uint8_t u = (uint8_t)(int32_t)x;
	const uint16_t h = dtype == GPUL_COMM_F16 ? round_16(f, 10, 15) : round_16(f, 7, 127);

	switch (dtype) {
	case GPUL_COMM_F16:
	case GPUL_COMM_BF16:
		memcpy(at, &h, 2);
		break;
	case GPUL_COMM_F32:
		memcpy(at, &f, 4);
		break;
	case GPUL_COMM_F64:
		memcpy(at, &x, 8);
		break;
	case GPUL_COMM_I32:
		memcpy(at, &i, 4);
		break;
	default:
		*at = u;
	}
}

/* Return element i of a rank's send buffer. */
static double term(const struct collective *x, int rank, size_t i)
{
	const uint32_t hash = (uint32_t)(i * 2654435761u + (size_t)rank * 40503u * 65537u + 12345u) >> 13;

	if (x->op == GPUL_COMM_PROD)
		return 1 + hash % 2;
	if (x->dtype != GPUL_COMM_U8 && x->op != GPUL_COMM_SUM)
		return (double)(hash % 31) - 15;
	return hash % 31;
}

static double reduced(const struct collective *x, int n_ranks, size_t i)
{
	double sum = term(x, 0, i);

	for (int r = 1; r < n_ranks; r++) {
		const double y = term(x, r, i);

		switch (x->op) {
		case GPUL_COMM_PROD:
			sum *= y;
			break;
		case GPUL_COMM_MIN:
			sum = fmin(sum, y);
			break;
		case GPUL_COMM_MAX:
			sum = fmax(sum, y);
			break;
		default:
			sum += y;
		}
	}
	if (x->op != GPUL_COMM_AVG)
		return sum;
	return x->dtype == GPUL_COMM_F64                               ? sum / n_ranks
	       : x->dtype == GPUL_COMM_I32 || x->dtype == GPUL_COMM_U8 ? trunc(sum / n_ranks)
								       : (double)((float)sum / (float)n_ranks);
}

static double expected(const struct collective *x, const struct rank *r, size_t i)
{
	const size_t part = x->count ? i / x->count : 0, in_part = x->count ? i % x->count : 0;

	switch (x->call) {
	case GPUL_COMM_ALLREDUCE:
		return reduced(x, r->n_ranks, i);
	case GPUL_COMM_REDUCESCATTER:
		return reduced(x, r->n_ranks, (size_t)r->rank * x->count + i);
	case GPUL_COMM_ALLGATHER:
		return term(x, (int)part, in_part);
	case GPUL_COMM_BROADCAST:
		return term(x, x->root, i);
	default:
		return term(x, (int)part, (size_t)r->rank * x->count + in_part);
	}
}

struct shape {
	size_t n_send, n_recv; /* numbers of elements */
	CUdeviceptr send, recv;
	size_t element_bytes;
};

static struct shape shape_of(const struct rank *r, const struct buffers *b, const struct collective *x)
{
	const size_t n = (size_t)r->n_ranks, e = gpul_comm_dtype_bytes(x->dtype), shift = (size_t)r->rank * x->offset_of_rank;
	struct shape s = {
		.element_bytes = e,
		.n_send = x->call == GPUL_COMM_REDUCESCATTER || x->call == GPUL_COMM_ALLTOALL ? n * x->count : x->count,
		.n_recv = x->call == GPUL_COMM_ALLGATHER || x->call == GPUL_COMM_ALLTOALL ? n * x->count : x->count,
		.send = b->send + (x->send_offset + shift) * e,
		.recv = b->recv + (x->recv_offset + shift) * e,
	};

	if (x->in_place && x->call == GPUL_COMM_REDUCESCATTER)
		s.recv = s.send + (size_t)r->rank * x->count * e;
	else if (x->in_place && x->call == GPUL_COMM_ALLGATHER)
		s.send = s.recv + (size_t)r->rank * x->count * e;
	else if (x->in_place)
		s.recv = s.send;
	if (s.send + s.n_send * e > b->send + b->bytes && !x->in_place)
		abort();
	return s;
}

gpul_status start_collective(struct rank *r, const struct buffers *b, const struct collective *x, gpul_error *err)
{
	const struct shape s = shape_of(r, b, x);
	gpul_comm_work work = {
		.send = s.send,
		.recv = s.recv,
		.count = x->count,
		.call = x->call,
		.dtype = x->dtype,
		.op = x->op,
		.root = x->root,
		.n_blocks = x->n_blocks,
		.element_bytes = (uint32_t)s.element_bytes,
	};

	work.send_window = gpul_comm_window_of(r->comm, s.send, s.n_send * s.element_bytes, &work.send_offset);
	work.recv_window = gpul_comm_window_of(r->comm, s.recv, s.n_recv * s.element_bytes, &work.recv_offset);
	return gpul_comm_enqueue(r->comm, gpul_comm_kernel_of(x->call, x->algo, x->proto), &work, x->n_blocks, x->n_threads, r->stream,
				 err);
}

static void fail_at(const struct rank *r, const struct collective *x, const char *what, size_t at, size_t n)
{
	(void)fprintf(stderr, "rank %d of %d: %s %s %s %s %s, %zu elements%s, %u blocks of %u: %s %zu of %zu is wrong\n", r->rank,
		      r->n_ranks, gpul_comm_call_name(x->call), gpul_comm_algo_name(x->algo), gpul_comm_proto_name(x->proto),
		      gpul_comm_dtype_name(x->dtype), gpul_comm_op_name(x->op), x->count, x->in_place ? ", in place" : "", x->n_blocks,
		      x->n_threads, what, at, n);
	abort();
}

/* Number of bytes before and after a buffer in which the test checks that no rank has changed them. */
enum { MARGIN = 64 };

static void check_result(const struct rank *r, const struct collective *x, const struct shape *s, const struct buffers *b)
{
	const size_t bytes = s->n_recv * s->element_bytes;
	const CUdeviceptr base = s->recv >= b->recv && s->recv < b->recv + b->bytes ? b->recv : b->send;
	const size_t before = s->recv - base < MARGIN ? s->recv - base : MARGIN;
	unsigned char *found = malloc(before + bytes + MARGIN), wanted[8];
	gpul_error err = { 0 };

	if (!found)
		abort();
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(found, s->recv - before, before + bytes + MARGIN)), &err, "cuMemcpyDtoH");
	for (size_t i = 0; i < s->n_recv; i++) {
		store_element(wanted, x->dtype, expected(x, r, i));
		if (memcmp(found + before + i * s->element_bytes, wanted, s->element_bytes) != 0)
			fail_at(r, x, "element", i, s->n_recv);
	}
	for (size_t i = 0; !x->in_place && i < before; i++)
		if (found[i] != CANARY)
			fail_at(r, x, "a byte before the buffer: byte", i, before);
	for (size_t i = 0; !x->in_place && i < MARGIN; i++)
		if (found[before + bytes + i] != CANARY)
			fail_at(r, x, "a byte behind the buffer: byte", i, MARGIN);
	free(found);
}

void prepare_collective(struct rank *r, const struct buffers *b, const struct collective *x)
{
	const struct shape s = shape_of(r, b, x);
	unsigned char *data = malloc(s.n_send * s.element_bytes + 1);
	gpul_error err = { 0 };

	if (!data)
		abort();
	for (size_t i = 0; i < s.n_send; i++)
		store_element(data + i * s.element_bytes, x->dtype, term(x, r->rank, i));
	must(gpul_cu(r->drv, &err, cuMemsetD8Async(b->recv, CANARY, b->bytes, r->stream)), &err, "cuMemsetD8Async");
	must(gpul_cu(r->drv, &err, cuStreamSynchronize(r->stream)), &err, "cuStreamSynchronize");
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(s.send, data, s.n_send * s.element_bytes)), &err, "cuMemcpyHtoD");
	/* the copy may still read `data`, which is freed below */
	must(gpul_cu(r->drv, &err, cuStreamSynchronize(NULL)), &err, "cuStreamSynchronize");
	free(data);
}

void check_collective(struct rank *r, const struct buffers *b, const struct collective *x)
{
	const struct shape s = shape_of(r, b, x);

	check_result(r, x, &s, b);
}

gpul_status post_collective(gpul_comm_persistent *p, struct rank *r, const struct buffers *b, const struct collective *x, uint64_t *ticket,
			    gpul_error *err)
{
	const struct shape s = shape_of(r, b, x);
	const gpul_comm_posting posting = {
		.call = x->call, .send = s.send, .recv = s.recv, .count = x->count, .dtype = x->dtype, .op = x->op, .root = x->root
	};

	return gpul_comm_persistent_post(p, &posting, ticket, err);
}

void run_collective(struct rank *r, const struct buffers *b, const struct collective *x)
{
	gpul_error err = { 0 };

	prepare_collective(r, b, x);
	must(start_collective(r, b, x, &err), &err, "start_collective");
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	check_collective(r, b, x);
}
