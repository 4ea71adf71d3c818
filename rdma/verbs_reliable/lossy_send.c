/* lossy_send.c — posts datagrams and writes: one chain of work requests, and so one doorbell write, for each queue pair.
 *
 * A write, and the first copy of a datagram over UD, refer to the data of the message; the operation is done only after the NIC has read
 * them.  All other datagrams are copied. */
#include "rdma/verbs_reliable/lossy_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <arpa/inet.h>
#include <string.h>

#include "core/clock.h"

static void post_batch(struct lossy_path *p)
{
	for (unsigned i = 0; i < p->n_paths && p->n_requests; i++) {
		struct lossy_queue *q = &p->queues[i];
		struct ibv_send_wr *bad;
		const int r = q->first ? p->verbs.d->v->post_send(q->q.qp, q->first, &bad) : 0;

		q->first = q->last = NULL;
		if (r && !p->failed.status)
			(void)gpul_rdma_fail(&p->failed, GPUL_EVERBS, gpul_verbs_errno(r), "ibv_post_send", NULL,
					     "cannot post to queue pair %u: %s", i, strerror(gpul_verbs_errno(r)));
	}
	p->n_requests = p->n_pieces = 0;
}

static void add_piece(struct lossy_path *p, struct ibv_send_wr *wr, uint64_t at, uint32_t n_bytes, uint32_t key)
{
	wr->sg_list = wr->sg_list ? wr->sg_list : &p->pieces[p->n_pieces];
	wr->num_sge++;
	p->pieces[p->n_pieces++] = (struct ibv_sge){ .addr = at, .length = n_bytes, .lkey = key };
}

/* Fill in the request for a datagram with a header, from the buffer. */
static void fill_datagram(struct lossy_path *p, const struct lossy_queue *q, const gpul_rel_datagram *d, unsigned char *buffer, bool refers,
			  struct ibv_send_wr *wr)
{
	wr->opcode = IBV_WR_SEND;
	memcpy(buffer, d->header, d->header_bytes);
	if (d->bytes && !refers)
		memcpy(buffer + d->header_bytes, (const void *)(uintptr_t)d->local, d->bytes);
	add_piece(p, wr, (uintptr_t)buffer, d->header_bytes + (refers ? 0 : d->bytes), p->mr->lkey);
	if (refers)
		add_piece(p, wr, d->local, d->bytes, (uint32_t)d->local_key);
	if (p->device->ud) {
		wr->wr.ud.ah = q->ah;
		wr->wr.ud.remote_qpn = q->peer_qpn;
		wr->wr.ud.remote_qkey = p->peer_qkey;
	}
}

/* Add a datagram to the batch.  If its queue pair is full, it counts as sent, so it is lost, and will be sent again. */
static void add_datagram(struct lossy_path *p, const gpul_rel_datagram *d)
{
	struct lossy_queue *q = &p->queues[d->path];
	struct ibv_send_wr *wr = &p->requests[p->n_requests];
	const uint32_t slot = q->q.posted % LOSSY_DEPTH;
	const bool refers = d->write || (p->device->ud && d->bytes && !d->again);

	if (q->stopped || !gpul_verbs_room(&q->q))
		return;
	p->n_requests++;
	*wr = (struct ibv_send_wr){ .wr_id = LOSSY_ID(d->path, slot), .send_flags = IBV_SEND_SIGNALED };
	if (d->write) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = htonl(d->imm);
		wr->wr.rdma.remote_addr = d->address;
		wr->wr.rdma.rkey = (uint32_t)d->key;
		add_piece(p, wr, d->local, d->bytes, (uint32_t)d->local_key);
	} else {
		fill_datagram(p, q, d, lossy_buffer(p, d->path, LOSSY_RECVS + slot), refers, wr);
	}
	q->held[slot] = refers ? d->id : LOSSY_NONE;
	if (refers)
		gpul_rel_ops_hold(&p->ops, d->id);
	q->q.posted++;
	if (q->last)
		q->last->next = wr;
	else
		q->first = wr;
	q->last = wr;
}

void gpul_lossy_send(struct lossy_path *p)
{
	const uint64_t now_ns = gpul_clock_ns();
	gpul_rel_datagram d;

	while (!p->failed.status && gpul_rel_next(p->rel, now_ns, &d)) {
		add_datagram(p, &d);
		if (p->n_requests == LOSSY_BATCH)
			post_batch(p);
	}
	post_batch(p);
}

gpul_status gpul_lossy_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why)
{
	struct lossy_path *p = path;
	unsigned i;

	if (atomic_load_explicit(&p->verbs.broken, memory_order_relaxed))
		return gpul_rdma_fail(why, GPUL_EVERBS, 0, "ibv_post_send", NULL,
				      "this side has already closed the connection after a failure");
	for (i = 0; i < n; i++) {
		bool accepted = true;

		if (ops[i].kind == GPUL_RDMA_OP_FLUSH) {
			if (gpul_verbs_flush(&p->verbs, &ops[i], &accepted, why))
				return why->status;
		} else {
			accepted = gpul_rel_ops_add(&p->ops, &ops[i]);
		}
		if (!accepted)
			break;
	}
	gpul_rel_ops_start(&p->ops, p->rel);
	gpul_lossy_send(p);
	if (p->failed.status && !why->status)
		*why = p->failed;
	*n_posted = i;
	return p->failed.status;
}

#endif
