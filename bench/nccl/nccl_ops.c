/* nccl_ops.c — a table of the operations that bench_nccl measures: how each is called, and its expected result. */
#include "bench/nccl/nccl.h"

float nccl_value(int rank, size_t i)
{
	return (float)((i * 7 + (size_t)rank * 31 + (i >> 9)) & 255);
}

static float sum_of(const struct nccl_rank *b, size_t i)
{
	float sum = 0;

	for (int r = 0; r < b->ranks; r++)
		sum += nccl_value(r, i);
	return sum;
}

static int queue_allreduce(const struct nccl_rank *b, const struct nccl_call *c)
{
	return b->nccl.AllReduce((void *)c->send, (void *)c->recv, c->count, NCCL_FLOAT32, NCCL_SUM, b->comm, b->stream);
}

static float expected_allreduce(const struct nccl_rank *b, const struct nccl_call *c, size_t i)
{
	(void)c;
	return sum_of(b, i);
}

static int queue_reducescatter(const struct nccl_rank *b, const struct nccl_call *c)
{
	return b->nccl.ReduceScatter((void *)c->send, (void *)c->recv, c->count, NCCL_FLOAT32, NCCL_SUM, b->comm, b->stream);
}

static float expected_reducescatter(const struct nccl_rank *b, const struct nccl_call *c, size_t i)
{
	return sum_of(b, (size_t)b->rank * c->count + i);
}

static int queue_allgather(const struct nccl_rank *b, const struct nccl_call *c)
{
	return b->nccl.AllGather((void *)c->send, (void *)c->recv, c->count, NCCL_FLOAT32, b->comm, b->stream);
}

/* If the call is in place, each rank's part has the values of its position in the whole buffer. */
static float expected_allgather(const struct nccl_rank *b, const struct nccl_call *c, size_t i)
{
	(void)b;
	return nccl_value((int)(i / c->count), c->in_place ? i : i % c->count);
}

static int queue_broadcast(const struct nccl_rank *b, const struct nccl_call *c)
{
	return b->nccl.Broadcast((void *)c->send, (void *)c->recv, c->count, NCCL_FLOAT32, 0, b->comm, b->stream);
}

static float expected_broadcast(const struct nccl_rank *b, const struct nccl_call *c, size_t i)
{
	(void)b;
	(void)c;
	return nccl_value(0, i);
}

/* Each rank sends to the next rank and receives from the previous one. */
static int queue_sendrecv(const struct nccl_rank *b, const struct nccl_call *c)
{
	int next = (b->rank + 1) % b->ranks, before = (b->rank + b->ranks - 1) % b->ranks;
	int bad = b->nccl.GroupStart();

	bad = bad ? bad : b->nccl.Send((void *)c->send, c->count, NCCL_FLOAT32, next, b->comm, b->stream);
	bad = bad ? bad : b->nccl.Recv((void *)c->recv, c->count, NCCL_FLOAT32, before, b->comm, b->stream);
	return bad ? bad : b->nccl.GroupEnd();
}

static float expected_sendrecv(const struct nccl_rank *b, const struct nccl_call *c, size_t i)
{
	(void)c;
	return nccl_value((b->rank + b->ranks - 1) % b->ranks, i);
}

static int queue_alltoall(const struct nccl_rank *b, const struct nccl_call *c)
{
	size_t part = c->count * sizeof(float);
	int bad = b->nccl.GroupStart();

	for (int r = 0; !bad && r < b->ranks; r++) {
		bad = b->nccl.Send((void *)(c->send + (size_t)r * part), c->count, NCCL_FLOAT32, r, b->comm, b->stream);
		bad = bad ? bad : b->nccl.Recv((void *)(c->recv + (size_t)r * part), c->count, NCCL_FLOAT32, r, b->comm, b->stream);
	}
	return bad ? bad : b->nccl.GroupEnd();
}

static float expected_alltoall(const struct nccl_rank *b, const struct nccl_call *c, size_t i)
{
	return nccl_value((int)(i / c->count), (size_t)b->rank * c->count + i % c->count);
}

const struct nccl_op nccl_ops[] = {
	{ GPUL_COMM_ALLREDUCE, queue_allreduce, expected_allreduce },
	{ GPUL_COMM_REDUCESCATTER, queue_reducescatter, expected_reducescatter },
	{ GPUL_COMM_ALLGATHER, queue_allgather, expected_allgather },
	{ GPUL_COMM_BROADCAST, queue_broadcast, expected_broadcast },
	{ GPUL_COMM_SENDRECV, queue_sendrecv, expected_sendrecv },
	{ GPUL_COMM_ALLTOALL, queue_alltoall, expected_alltoall },
};
const size_t nccl_n_ops = sizeof nccl_ops / sizeof *nccl_ops;
