/* verbs_post.c — posts operations: one chain of work requests, and so one doorbell write, for each queue pair. */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

/* The work requests that one call of post collects. */
struct batch {
	struct ibv_send_wr requests[GPUL_VERBS_BATCH];
	struct ibv_sge pieces[GPUL_VERBS_BATCH];
	struct {
		struct ibv_send_wr *first, *last;
	} chains[GPUL_RDMA_MAX_QPS];
	unsigned recvs[GPUL_RDMA_MAX_QPS];
	unsigned n;
};

static void add_write(gpul_verbs_path *p, struct batch *b, const gpul_rdma_op *op)
{
	struct ibv_send_wr *wr = &b->requests[b->n];
	struct ibv_sge *piece = &b->pieces[b->n++];
	const bool signaled = op->flags & GPUL_RDMA_SIGNALED;

	*piece = (struct ibv_sge){ .addr = op->local, .length = op->bytes, .lkey = (uint32_t)op->local_key };
	wr->wr_id = op->id;
	wr->next = NULL;
	wr->sg_list = piece;
	wr->num_sge = op->bytes > 0;
	wr->opcode = op->kind == GPUL_RDMA_OP_WRITE_IMM ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	wr->send_flags = (signaled ? IBV_SEND_SIGNALED : 0u) | (op->flags & GPUL_RDMA_INLINE && op->bytes ? IBV_SEND_INLINE : 0u);
	wr->imm_data = htonl(op->imm);
	wr->wr.rdma.remote_addr = op->remote;
	wr->wr.rdma.rkey = (uint32_t)op->remote_key;
	if (b->chains[op->qp].last)
		b->chains[op->qp].last->next = wr;
	else
		b->chains[op->qp].first = wr;
	b->chains[op->qp].last = wr;
	gpul_verbs_count_post(&p->queues[op->qp], signaled);
}

/* Add an operation to the batch, or start it immediately (flushes, datagrams).  *accepted is false if there is no room now. */
static gpul_status add_op(gpul_verbs_path *p, struct batch *b, const gpul_rdma_op *op, bool *accepted, gpul_rdma_failure *why)
{
	assert(op->qp < p->n_qps);
	*accepted = true;
	switch ((gpul_rdma_op_kind)op->kind) {
	case GPUL_RDMA_OP_WRITE:
	case GPUL_RDMA_OP_WRITE_IMM:
		*accepted = gpul_verbs_room(&p->queues[op->qp]) > 0;
		if (*accepted)
			add_write(p, b, op);
		return GPUL_OK;
	case GPUL_RDMA_OP_RECV:
		b->recvs[op->qp] += op->bytes;
		return GPUL_OK;
	case GPUL_RDMA_OP_FLUSH:
		return gpul_verbs_flush(p, op, accepted, why);
	case GPUL_RDMA_OP_CONTROL:
		return gpul_verbs_send_datagram(p, op, accepted, why);
	case GPUL_RDMA_OP_COPY_OUT:
	case GPUL_RDMA_OP_COPY_IN:
		break;
	}
	return gpul_rdma_fail(why, GPUL_EINVAL, op->kind, "post", NULL, "operation %u cannot be posted to a NIC", op->kind);
}

/* Post the batch.  Receives are posted first, because a write in the same batch may be the grant that lets the peer use them. */
static gpul_status ring_doorbells(gpul_verbs_path *p, struct batch *b, gpul_rdma_failure *why)
{
	for (unsigned i = 0; i < p->n_qps; i++) {
		const int r = b->recvs[i] ? gpul_verbs_post_recvs(p, &p->queues[i], b->recvs[i]) : 0;

		if (r)
			return gpul_rdma_fail(why, GPUL_EVERBS, r, "ibv_post_recv", NULL,
					      "cannot post %u empty receives on queue pair %u: %s", b->recvs[i], i, strerror(r));
	}
	for (unsigned i = 0; i < p->n_qps; i++) {
		struct ibv_send_wr *bad = NULL;
		const int r = b->chains[i].first ? p->d->v->post_send(p->queues[i].qp, b->chains[i].first, &bad) : 0;

		if (r)
			return gpul_rdma_fail(why, GPUL_EVERBS, gpul_verbs_errno(r), "ibv_post_send", NULL,
					      "cannot post to queue pair %u: %s", i, strerror(gpul_verbs_errno(r)));
	}
	return GPUL_OK;
}

static gpul_status post_batch(gpul_verbs_path *p, const gpul_rdma_op *ops, unsigned n, unsigned *n_accepted, gpul_rdma_failure *why)
{
	struct batch b;
	gpul_status st = GPUL_OK;
	unsigned i;

	b.n = 0;
	memset(b.chains, 0, p->n_qps * sizeof b.chains[0]);
	memset(b.recvs, 0, p->n_qps * sizeof b.recvs[0]);
	for (i = 0; i < n && !st; i++) {
		bool accepted;

		st = add_op(p, &b, &ops[i], &accepted, why);
		if (!st && !accepted)
			break;
	}
	*n_accepted = i;
	return st ? st : ring_doorbells(p, &b, why);
}

gpul_status gpul_verbs_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why)
{
	gpul_verbs_path *p = path;
	gpul_status st = GPUL_OK;
	unsigned done = 0;

	if (atomic_load_explicit(&p->broken, memory_order_relaxed))
		return gpul_rdma_fail(why, GPUL_EVERBS, 0, "ibv_post_send", NULL,
				      "this side has already closed the connection after a failure");
	pthread_mutex_lock(&p->lock);
	while (!st && done < n) {
		const unsigned batch = n - done < GPUL_VERBS_BATCH ? n - done : GPUL_VERBS_BATCH;
		unsigned n_accepted = 0;

		st = post_batch(p, ops + done, batch, &n_accepted, why);
		done += n_accepted;
		if (n_accepted < batch)
			break;
	}
	pthread_mutex_unlock(&p->lock);
	if (!st)
		*n_posted = done;
	return st;
}

#endif
