/* datagram.c — sends and receives slots as datagrams (UD), which need no connection state in the
 * NIC and are not acknowledged; the protocol repeats lost datagrams.
 *
 *     ┌ 40 bytes: GRH ┬ slots ┐   a receive buffer: the network's global route header comes first
 *     └───────────────┴───────┘ */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static unsigned char *buffer(gpul_verbs_datagrams *g, unsigned index)
{
	return g->buffers + (size_t)index * g->stride;
}

static int post_buffer(gpul_verbs_path *p, unsigned index)
{
	gpul_verbs_datagrams *g = &p->datagrams;
	struct ibv_sge piece = { .addr = (uintptr_t)buffer(g, index), .length = g->stride, .lkey = g->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = &piece, .num_sge = 1 }, *bad;
	const int r = p->d->v->post_recv(g->queue.qp, &wr, &bad);

	return r ? gpul_verbs_errno(r) : 0;
}

gpul_status gpul_verbs_create_datagrams(gpul_verbs_path *p, gpul_error *err)
{
	gpul_verbs_datagrams *g = &p->datagrams;
	const struct gpul_verbs *v = p->d->v;
	size_t n_bytes;
	gpul_status st;

	g->stride = GPUL_VERBS_GRH_BYTES + (128u << p->d->mtu);
	n_bytes = (size_t)g->stride * 2 * GPUL_VERBS_DATAGRAMS;
	if (getrandom(&g->qkey, sizeof g->qkey, 0) != (ssize_t)sizeof g->qkey)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	g->qkey &= 0x7fffffff; /* a Q_Key with the highest bit set is privileged */
	g->buffers = aligned_alloc(64, n_bytes);
	if (!g->buffers)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes of buffers for datagrams", n_bytes);
	g->mr = v->reg_mr(p->d->pd, g->buffers, n_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!g->mr)
		return gpul_verbs_fail(err, errno, n_bytes, "ibv_reg_mr of %zu bytes for datagrams failed", n_bytes);
	st = gpul_verbs_queue_create(p, &g->queue, IBV_QPT_UD, GPUL_VERBS_DATAGRAMS, GPUL_VERBS_DATAGRAMS, 0, err);
	for (unsigned i = 0; i < GPUL_VERBS_DATAGRAMS && !st; i++) {
		const int r = post_buffer(p, i);

		if (r)
			st = gpul_verbs_fail(err, r, 0, "ibv_post_recv of a datagram's buffer");
	}
	return st;
}

gpul_status gpul_verbs_connect_datagrams(gpul_verbs_path *p, const gpul_verbs_description *peer, const gpul_verbs_remote *to,
					 gpul_error *err)
{
	gpul_verbs_datagrams *g = &p->datagrams;
	struct ibv_ah_attr address;

	gpul_verbs_address(p->d, to, &address);
	g->ah = p->d->v->create_ah(p->d->pd, &address);
	if (!g->ah)
		return gpul_verbs_fail(err, errno, 0, "ibv_create_ah");
	g->peer_qpn = peer->datagram_qpn;
	g->peer_qkey = peer->datagram_qkey;
	return gpul_verbs_queue_connect(p, &g->queue, IBV_QPT_UD, to, err);
}

void gpul_verbs_destroy_datagrams(gpul_verbs_path *p)
{
	gpul_verbs_datagrams *g = &p->datagrams;

	gpul_verbs_queue_destroy(p, &g->queue);
	if (g->ah)
		(void)p->d->v->destroy_ah(g->ah);
	if (g->mr)
		(void)p->d->v->dereg_mr(g->mr);
	free(g->buffers);
}

gpul_status gpul_verbs_send_datagram(gpul_verbs_path *p, const gpul_rdma_op *op, bool *accepted, gpul_rdma_failure *why)
{
	gpul_verbs_datagrams *g = &p->datagrams;
	unsigned char *copy; /* the caller may change its slots before the NIC reads them, so the datagram is a copy */
	struct ibv_sge piece = { .length = op->bytes };
	struct ibv_send_wr wr = { .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	int r;

	if (!g->ah || op->bytes > g->stride - GPUL_VERBS_GRH_BYTES)
		return gpul_rdma_fail(
			why, GPUL_EINVAL, (int)op->bytes, "ibv_post_send", NULL,
			g->ah ? "cannot send a datagram of %u bytes: the MTU allows %u bytes"
			      : "cannot send a datagram of %u bytes: this connection has no datagram queue pair (its limit is "
				"%u bytes)",
			op->bytes, g->ah ? g->stride - GPUL_VERBS_GRH_BYTES : 0);
	*accepted = gpul_verbs_room(&g->queue) > 0;
	if (!*accepted)
		return GPUL_OK;
	copy = buffer(g, GPUL_VERBS_DATAGRAMS + g->queue.posted % GPUL_VERBS_DATAGRAMS);
	memcpy(copy, (const void *)(uintptr_t)op->local, op->bytes);
	piece.addr = (uintptr_t)copy;
	piece.lkey = g->mr->lkey;
	wr.wr.ud.ah = g->ah;
	wr.wr.ud.remote_qpn = g->peer_qpn;
	wr.wr.ud.remote_qkey = g->peer_qkey;
	r = p->d->v->post_send(g->queue.qp, &wr, &bad);
	if (r)
		return gpul_rdma_fail(why, GPUL_EVERBS, gpul_verbs_errno(r), "ibv_post_send", NULL,
				      "cannot send a datagram of %u bytes: %s", op->bytes, strerror(gpul_verbs_errno(r)));
	gpul_verbs_count_post(&g->queue, true);
	return GPUL_OK;
}

bool gpul_verbs_datagram_arrived(gpul_verbs_path *p, const struct ibv_wc *wc, gpul_rdma_event *out)
{
	gpul_verbs_datagrams *g = &p->datagrams;

	if (wc->wr_id >= GPUL_VERBS_DATAGRAMS)
		return false;
	g->used[g->n_used++] = (uint16_t)wc->wr_id; /* there is always room, because each buffer is posted only once */
	if (wc->src_qp != g->peer_qpn || wc->byte_len <= GPUL_VERBS_GRH_BYTES || wc->byte_len > g->stride)
		return false;
	*out = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_CONTROL,
				  .bytes = wc->byte_len - GPUL_VERBS_GRH_BYTES,
				  .data = buffer(g, (unsigned)wc->wr_id) + GPUL_VERBS_GRH_BYTES };
	return true;
}

int gpul_verbs_recycle_datagrams(gpul_verbs_path *p)
{
	gpul_verbs_datagrams *g = &p->datagrams;

	while (g->n_used) {
		const int r = post_buffer(p, g->used[g->n_used - 1]);

		if (r)
			return r;
		g->n_used--;
	}
	return 0;
}

#endif
