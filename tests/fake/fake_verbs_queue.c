/* fake_verbs_queue.c — the data path of the fake libibverbs. */
#if GPUL_HAVE_LIBIBVERBS
#include "tests/fake/fake_verbs_internal.h"

#include <errno.h>
#include <string.h>

struct fake_qp *fake_qp_find(uint32_t qp_num)
{
	struct fake_qp *q = fake_qps;

	while (q && q->qp.qp_num != qp_num)
		q = q->next;
	return q;
}

static void complete(struct fake_qp *q, struct ibv_cq *queue, struct ibv_wc wc, unsigned frees)
{
	struct fake_cq *cq = (struct fake_cq *)queue;

	wc.qp_num = q->qp.qp_num;
	if (cq->head - cq->tail == cq->room) {
		fake_verbs_event(IBV_EVENT_CQ_ERR, NULL, queue, 0);
		return;
	}
	cq->ring[cq->head++ % cq->room] = (struct fake_completion){ .wc = wc, .frees = frees };
}

static void complete_send(struct fake_qp *q, const struct ibv_send_wr *wr, struct ibv_wc wc)
{
	const unsigned frees = q->unsignaled + 1;

	wc.wr_id = wr->wr_id;
	q->unsignaled = 0;
	complete(q, q->qp.send_cq, wc, frees);
}

void fake_qp_break(struct fake_qp *q, bool keep_quiet)
{
	if (q->qp.state == IBV_QPS_ERR)
		return;
	q->qp.state = IBV_QPS_ERR;
	while (!keep_quiet && q->recvs_tail != q->recvs_head)
		complete(q, q->qp.recv_cq,
			 (struct ibv_wc){ .wr_id = q->recvs[q->recvs_tail++ % q->cap.max_recv_wr].wr_id,
					  .status = IBV_WC_WR_FLUSH_ERR,
					  .vendor_err = 0xf9 },
			 0);
}

/* Remove the entries of the queue pair from a completion queue. */
static void purge(struct ibv_cq *queue, uint32_t qp_num)
{
	struct fake_cq *cq = (struct fake_cq *)queue;
	unsigned kept = cq->tail;

	for (unsigned i = cq->tail; i != cq->head; i++)
		if (cq->ring[i % cq->room].wc.qp_num != qp_num)
			cq->ring[kept++ % cq->room] = cq->ring[i % cq->room];
	cq->head = kept;
}

void fake_qp_reset(struct fake_qp *q)
{
	q->recvs_tail = q->recvs_head;
	q->used = q->unsignaled = 0;
	purge(q->qp.send_cq, q->qp.qp_num);
	purge(q->qp.recv_cq, q->qp.qp_num);
}

/* Find a registration that covers the bytes and permits the access; NULL: none. */
static struct fake_mr *find_mr(uint32_t key, uint64_t at, uint32_t n_bytes, unsigned access)
{
	for (struct fake_mr *m = fake_mrs; m; m = m->next) {
		const uint64_t begin = (uintptr_t)m->mr.addr;

		if (m->mr.lkey == key && (m->access & access) == access &&
		    (m->null || (at >= begin && n_bytes <= m->mr.length && at - begin <= m->mr.length - n_bytes)))
			return m;
	}
	return NULL;
}

static void copy(uint64_t to, uint64_t from, size_t n_bytes)
{
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, n_bytes);
}

/* Return the queue pair at the other end, if the two queue pairs are connected to each other; else NULL. */
static struct fake_qp *find_peer(const struct fake_qp *q)
{
	struct fake_qp *peer = fake_qp_find(q->attr.dest_qp_num);

	if (!peer || (peer->qp.state != IBV_QPS_RTR && peer->qp.state != IBV_QPS_RTS) || peer->qp.qp_type != q->qp.qp_type ||
	    peer->attr.dest_qp_num != q->qp.qp_num || peer->attr.rq_psn != q->attr.sq_psn || peer->attr.path_mtu != q->attr.path_mtu)
		return NULL;
	return peer;
}

static enum ibv_wc_status refuse(struct fake_qp *peer)
{
	fake_qp_break(peer, false);
	fake_verbs_event(IBV_EVENT_QP_ACCESS_ERR, peer, NULL, 0);
	return IBV_WC_REM_ACCESS_ERR;
}

static enum ibv_wc_status do_write(struct fake_qp *q, struct fake_qp *peer, const struct ibv_send_wr *wr, uint64_t from, uint32_t n_bytes)
{
	const bool with_imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) ||
	    (n_bytes && !find_mr(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, n_bytes, IBV_ACCESS_REMOTE_WRITE)))
		return refuse(peer);
	if (with_imm && peer->recvs_tail == peer->recvs_head)
		return q->qp.qp_type == IBV_QPT_UC ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR;
	if (n_bytes)
		copy(wr->wr.rdma.remote_addr, from, n_bytes);
	if (with_imm) {
		struct ibv_wc wc = { .wr_id = peer->recvs[peer->recvs_tail++ % peer->cap.max_recv_wr].wr_id,
				     .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
				     .byte_len = n_bytes,
				     .wc_flags = IBV_WC_WITH_IMM };

		wc.imm_data = wr->imm_data;
		wc.status = fake_verbs_planned(IBV_WC_SUCCESS, &wc.vendor_err);
		complete(peer, peer->qp.recv_cq, wc, 0);
		if (wc.status != IBV_WC_SUCCESS)
			fake_qp_break(peer, false);
	}
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status do_read(struct fake_qp *peer, const struct ibv_send_wr *wr, uint64_t to, uint32_t n_bytes)
{
	if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
	    !find_mr(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, n_bytes, IBV_ACCESS_REMOTE_READ))
		return refuse(peer);
	copy(to, wr->wr.rdma.remote_addr, n_bytes);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status do_swap(struct fake_qp *peer, const struct ibv_send_wr *wr, const struct fake_mr *result, uint64_t to)
{
	const uint64_t at = wr->wr.atomic.remote_addr;
	uint64_t old;

	if (at % 8)
		return IBV_WC_REM_INV_REQ_ERR;
	if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || !find_mr(wr->wr.atomic.rkey, at, 8, IBV_ACCESS_REMOTE_ATOMIC))
		return refuse(peer);
	copy((uintptr_t)&old, at, 8);
	if (old == wr->wr.atomic.compare_add)
		copy(at, (uintptr_t)&wr->wr.atomic.swap, 8);
	if (!result->null)
		copy(to, (uintptr_t)&old, 8);
	return IBV_WC_SUCCESS;
}

/* Whether the network loses the next message of a UC or UD queue pair. */
static bool is_lost(const struct fake_qp *q)
{
	static uint64_t random = 1;
	const fake_verbs_behaviour *b = fake_verbs_behave();

	random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (q->qp.qp_type == IBV_QPT_UC || q->qp.qp_type == IBV_QPT_UD) &&
	       ((random >> 33) % 1000 < b->loss_permille || (b->every_path && q->qp.qp_num % b->every_path == 0));
}

/* Deliver a SEND of one or two pieces into the next receive of the peer; it is lost if the peer does not expect it. */
static void do_send(const struct fake_qp *q, struct fake_qp *peer, const struct ibv_send_wr *wr)
{
	const uint32_t skip = q->qp.qp_type == IBV_QPT_UD ? 40 : 0;
	uint32_t n_bytes = skip;
	struct fake_recv *r;

	for (int i = 0; i < wr->num_sge; i++)
		n_bytes += wr->sg_list[i].length;
	if (!peer || (peer->qp.state != IBV_QPS_RTR && peer->qp.state != IBV_QPS_RTS) || peer->recvs_tail == peer->recvs_head)
		return;
	r = &peer->recvs[peer->recvs_tail++ % peer->cap.max_recv_wr];
	if (r->num_sge != 1 || r->sge.length < n_bytes || !find_mr(r->sge.lkey, r->sge.addr, r->sge.length, IBV_ACCESS_LOCAL_WRITE))
		return;
	memset((void *)(uintptr_t)r->sge.addr, 0x60, skip);
	n_bytes = skip;
	for (int i = 0; i < wr->num_sge; n_bytes += wr->sg_list[i++].length)
		copy(r->sge.addr + n_bytes, wr->sg_list[i].addr, wr->sg_list[i].length);
	complete(peer, peer->qp.recv_cq,
		 (struct ibv_wc){ .wr_id = r->wr_id,
				  .opcode = IBV_WC_RECV,
				  .byte_len = n_bytes,
				  .src_qp = q->qp.qp_num,
				  .wc_flags = skip ? IBV_WC_GRH : 0 },
		 0);
}

static struct fake_qp *find_datagram_peer(const struct ibv_send_wr *wr)
{
	struct fake_qp *peer = fake_qp_find(wr->wr.ud.remote_qpn);

	return peer && peer->qp.qp_type == IBV_QPT_UD && peer->attr.qkey == wr->wr.ud.remote_qkey ? peer : NULL;
}

static enum ibv_wc_status execute(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	static const struct ibv_sge nothing;
	const struct ibv_sge *piece = wr->num_sge ? wr->sg_list : &nothing;
	struct fake_mr *local = NULL;
	struct fake_qp *peer;

	for (int i = 0; i < wr->num_sge && !(wr->send_flags & IBV_SEND_INLINE); i++) {
		local = find_mr(wr->sg_list[i].lkey, wr->sg_list[i].addr, wr->sg_list[i].length, 0);
		if (!local && wr->sg_list[i].length)
			return IBV_WC_LOC_PROT_ERR;
	}
	if (is_lost(q))
		return IBV_WC_SUCCESS;
	peer = q->qp.qp_type == IBV_QPT_UD ? find_datagram_peer(wr) : find_peer(q);
	if (wr->opcode == IBV_WR_SEND) {
		do_send(q, peer, wr);
		return IBV_WC_SUCCESS;
	}
	if (!peer)
		return q->qp.qp_type == IBV_QPT_UC ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
	switch ((int)wr->opcode) {
	case IBV_WR_RDMA_READ:
		return do_read(peer, wr, piece->addr, piece->length);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return do_swap(peer, wr, local, piece->addr);
	default:
		return do_write(q, peer, wr, piece->addr, piece->length);
	}
}

static enum ibv_wc_opcode opcode_of(const struct ibv_send_wr *wr)
{
	switch ((int)wr->opcode) {
	case IBV_WR_SEND:
		return IBV_WC_SEND;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

static int post_one(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	struct ibv_wc wc = { .opcode = opcode_of(wr) };

	if (q->qp.state != IBV_QPS_RTS && q->qp.state != IBV_QPS_ERR)
		return EINVAL;
	if (q->used == q->cap.max_send_wr)
		return ENOMEM;
	if (wr->num_sge > (q->qp.qp_type == IBV_QPT_UD ? 2 : 1) ||
	    (wr->send_flags & IBV_SEND_INLINE && wr->num_sge && wr->sg_list->length > q->cap.max_inline_data))
		return EINVAL;
	q->used++;
	if (fake_verbs_behave()->deaf) {
		q->unsignaled++;
		return 0;
	}
	wc.status = q->qp.state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : execute(q, wr);
	if (wc.status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED)) {
		q->unsignaled++;
		return 0;
	}
	if (wc.status == IBV_WC_SUCCESS)
		wc.status = fake_verbs_planned(wc.status, &wc.vendor_err);
	complete_send(q, wr, wc);
	if (wc.status != IBV_WC_SUCCESS)
		fake_qp_break(q, false);
	return 0;
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int r;

	pthread_mutex_lock(&fake_verbs_lock);
	r = fake_verbs_step();
	fake_verbs_count_doorbell();
	for (*bad = wr; !r && wr; wr = wr->next) {
		*bad = wr;
		r = post_one((struct fake_qp *)qp, wr);
	}
	pthread_mutex_unlock(&fake_verbs_lock);
	return r;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *q = (struct fake_qp *)qp;
	int r;

	pthread_mutex_lock(&fake_verbs_lock);
	r = fake_verbs_step();
	for (*bad = wr; !r && wr; wr = wr->next) {
		*bad = wr;
		if (q->qp.state == IBV_QPS_RESET)
			r = EINVAL;
		else if (q->recvs_head - q->recvs_tail == q->cap.max_recv_wr)
			r = ENOMEM;
		else if (q->qp.state == IBV_QPS_ERR)
			complete(q, q->qp.recv_cq, (struct ibv_wc){ .wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR }, 0);
		else
			q->recvs[q->recvs_head++ % q->cap.max_recv_wr] = (struct fake_recv){
				wr->wr_id, wr->num_sge ? *wr->sg_list : (struct ibv_sge){ 0 }, wr->num_sge
			};
	}
	pthread_mutex_unlock(&fake_verbs_lock);
	return r;
}

int fake_poll_cq(struct ibv_cq *queue, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)queue;
	int i = 0;

	pthread_mutex_lock(&fake_verbs_lock);
	for (; i < n && cq->tail != cq->head; i++) {
		const struct fake_completion *c = &cq->ring[cq->tail++ % cq->room];
		struct fake_qp *q = fake_qp_find(c->wc.qp_num);

		wc[i] = c->wc;
		if (q)
			q->used -= c->frees;
	}
	pthread_mutex_unlock(&fake_verbs_lock);
	return i;
}

#else
typedef int no_libibverbs; /* ISO C forbids an empty translation unit */
#endif
