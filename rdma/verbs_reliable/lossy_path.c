/* lossy_path.c — the queue pairs of a connection, and its connection data: those of rdma/verbs, then the token for the peer's datagrams. */
#include "rdma/verbs_reliable/lossy_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"

enum { TOKEN_BYTES = 8 };

/* ---- create ------------------------------------------------------------------------------------------------------- */

/* A chunk and its header are one packet.  A message of several packets would be lost with any of them; and once rdma_rxe has lost the last
 * packet of an RDMA write, the queue pair accepts no other message. */
static uint32_t chunk_bytes(enum ibv_mtu mtu)
{
	return (128u << mtu) - LOSSY_HEADER;
}

int gpul_lossy_post_recvs(struct lossy_path *p, const uint64_t *ids, unsigned n)
{
	const unsigned queue = (unsigned)(ids[0] >> 32) & 0xffff;
	struct ibv_recv_wr requests[LOSSY_BATCH], *bad;
	struct ibv_sge pieces[LOSSY_BATCH];

	for (unsigned i = 0; i < n; i++) {
		pieces[i] = (struct ibv_sge){ .addr = (uintptr_t)lossy_buffer(p, queue, (uint32_t)ids[i]),
					      .length = p->stride,
					      .lkey = p->mr->lkey };
		requests[i] = (struct ibv_recv_wr){
			.wr_id = ids[i], .next = i + 1 < n ? &requests[i + 1] : NULL, .sg_list = &pieces[i], .num_sge = 1
		};
	}
	return gpul_verbs_errno(p->verbs.d->v->post_recv(p->queues[queue].q.qp, requests, &bad));
}

static gpul_status create_queue(struct lossy_path *p, unsigned i, gpul_error *err)
{
	uint64_t ids[LOSSY_BATCH];
	gpul_status st = gpul_verbs_queue_create(&p->verbs, &p->queues[i].q, p->device->ud ? IBV_QPT_UD : IBV_QPT_UC, LOSSY_DEPTH,
						 LOSSY_RECVS, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, err);

	for (uint32_t at = 0; !st && at < LOSSY_RECVS; at += LOSSY_BATCH) {
		int r;

		for (uint32_t k = 0; k < LOSSY_BATCH; k++)
			ids[k] = LOSSY_RECV_FLAG | LOSSY_ID(i, at + k);
		r = gpul_lossy_post_recvs(p, ids, LOSSY_BATCH);
		if (r)
			st = gpul_verbs_fail(err, r, 0, "ibv_post_recv of a datagram's buffer");
	}
	return st;
}

static gpul_status create_buffers(struct lossy_path *p, gpul_error *err)
{
	const struct lossy_device *d = p->device;
	const uint32_t most = GPUL_VERBS_GRH_BYTES + (128u << d->nic->mtu);
	size_t n_bytes;

	p->stride = (most > GPUL_VERBS_GRH_BYTES + GPUL_REL_MAX_HEADER ? most : GPUL_VERBS_GRH_BYTES + GPUL_REL_MAX_HEADER) + 63;
	p->stride = p->stride / 64 * 64;
	n_bytes = (size_t)p->n_paths * (LOSSY_RECVS + LOSSY_DEPTH) * p->stride;
	p->buffers = aligned_alloc(4096, (n_bytes + 4095) / 4096 * 4096);
	if (!p->buffers)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes of buffers for datagrams", n_bytes);
	p->mr = d->nic->v->reg_mr(d->nic->pd, p->buffers, n_bytes, IBV_ACCESS_LOCAL_WRITE);
	return p->mr ? GPUL_OK : gpul_verbs_fail(err, errno, n_bytes, "ibv_reg_mr of %zu bytes for datagrams failed", n_bytes);
}

gpul_status gpul_lossy_create(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
			      gpul_error *err)
{
	struct lossy_device *d = device;
	struct lossy_path *p = calloc(1, sizeof *p);
	const unsigned n_completions = d->n_paths * (LOSSY_RECVS + LOSSY_DEPTH) + GPUL_VERBS_FLUSHES;
	gpul_status st;

	(void)n_recvs, (void)from;
	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	p->device = d;
	p->n_paths = d->n_paths;
	p->verbs.d = d->nic;
	pthread_mutex_init(&p->verbs.lock, NULL);
	pthread_mutex_init(&p->verbs.async_lock, NULL);
	st = gpul_rel_ops_create(&p->ops, n_qps * depth, err);
	if (!st && (getrandom(&p->token, sizeof p->token, 0) != sizeof p->token ||
		    getrandom(&p->verbs.datagrams.qkey, sizeof p->verbs.datagrams.qkey, 0) != sizeof p->verbs.datagrams.qkey))
		st = gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	p->verbs.datagrams.qkey &= 0x7fffffff; /* a Q_Key with the highest bit set is privileged */
	if (!st)
		st = create_buffers(p, err);
	if (!st) {
		p->verbs.cq = d->nic->v->create_cq(d->nic->ctx, (int)n_completions, &p->verbs, NULL, 0);
		if (!p->verbs.cq)
			st = gpul_verbs_fail(err, errno, (size_t)n_completions * 64, "ibv_create_cq with %u entries", n_completions);
	}
	for (unsigned i = 0; !st && i < p->n_paths; i++)
		st = create_queue(p, i, err);
	if (!st)
		st = gpul_verbs_create_loop(&p->verbs, err);
	if (st)
		gpul_lossy_destroy(p);
	else
		*path = p;
	return st;
}

void gpul_lossy_destroy(void *path)
{
	struct lossy_path *p = path;
	const struct gpul_verbs *v;

	if (!p)
		return;
	v = p->verbs.d->v;
	for (unsigned i = 0; i < GPUL_RDMA_MAX_QPS; i++) {
		if (p->queues[i].q.qp)
			gpul_verbs_queue_destroy(&p->verbs, &p->queues[i].q);
		if (p->queues[i].ah)
			(void)v->destroy_ah(p->queues[i].ah);
	}
	gpul_verbs_queue_destroy(&p->verbs, &p->verbs.loop);
	if (p->verbs.cq)
		(void)v->destroy_cq(p->verbs.cq);
	if (p->mr)
		(void)v->dereg_mr(p->mr);
	free(p->buffers);
	gpul_rel_destroy(p->rel);
	gpul_rel_ops_destroy(&p->ops);
	pthread_mutex_destroy(&p->verbs.async_lock);
	pthread_mutex_destroy(&p->verbs.lock);
	free(p);
}

/* ---- connect ------------------------------------------------------------------------------------------------------- */

static void describe_queues(const struct lossy_path *p, gpul_verbs_description *out)
{
	gpul_verbs_describe_port(p->verbs.d, out);
	out->qp_type = p->device->ud ? GPUL_RDMA_UD : GPUL_RDMA_UC;
	out->n_qps = (uint8_t)p->n_paths;
	out->flags |= GPUL_VERBS_DATAGRAM_FLAG;
	out->datagram_qpn = p->queues[0].q.qp->qp_num;
	out->datagram_qkey = p->verbs.datagrams.qkey;
	for (unsigned i = 0; i < p->n_paths; i++) {
		out->qps[i].qpn = p->queues[i].q.qp->qp_num;
		out->qps[i].psn = p->queues[i].q.psn;
	}
}

size_t gpul_lossy_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION])
{
	const struct lossy_path *p = path;
	gpul_verbs_description own;
	size_t n_bytes;

	describe_queues(p, &own);
	n_bytes = gpul_verbs_description_write(&own, out);
	memcpy(out + n_bytes, &p->token, TOKEN_BYTES);
	return n_bytes + TOKEN_BYTES;
}

static gpul_status create_reliable(struct lossy_path *p, enum ibv_mtu mtu, uint64_t peer_token, gpul_error *err)
{
	const bool ud = p->device->ud;
	/* The packets of a queue pair keep their order over UC; a switch that sprays packets would lose those of UC anyway. */
	/* clang-format off */
	const gpul_rel_options o = {
		.chunk_bytes = chunk_bytes(mtu), .window = GPUL_REL_MAX_WRITES, .messages = 1024, .n_paths = p->n_paths,
		.spread = GPUL_REL_TWO_CHOICES, .burst = 16, .path_window = LOSSY_WINDOW, .threshold = ud ? 3 : 1,
		.control = GPUL_REL_SWIFT, .target_ns = 20000000, .rto_min_ns = 20000000, .rto_max_ns = UINT64_C(500000000), .ack_every = 16,
		.ack_delay_ns = 20000, .writes = !ud, .fence_ns = 500000000, .token = p->token, .peer_token = peer_token, .seed = p->token,
	};
	/* clang-format on */

	return gpul_rel_create(&o, gpul_clock_ns(), &p->rel, err);
}

static gpul_status connect_queue(struct lossy_path *p, unsigned i, const gpul_verbs_description *peer, gpul_verbs_remote *to,
				 gpul_error *err)
{
	struct lossy_queue *q = &p->queues[i];
	struct ibv_ah_attr address;

	to->qpn = q->peer_qpn = peer->qps[i].qpn;
	to->psn = peer->qps[i].psn;
	if (p->device->ud) {
		gpul_verbs_address(p->verbs.d, to, &address);
		q->ah = p->verbs.d->v->create_ah(p->verbs.d->pd, &address);
		if (!q->ah)
			return gpul_verbs_fail(err, errno, 0, "ibv_create_ah");
	}
	return gpul_verbs_queue_connect(&p->verbs, &q->q, p->device->ud ? IBV_QPT_UD : IBV_QPT_UC, to, err);
}

gpul_status gpul_lossy_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err)
{
	struct lossy_path *p = path;
	gpul_verbs_description own, peer;
	gpul_verbs_remote to;
	uint64_t token;
	gpul_status st;

	if (n_bytes < TOKEN_BYTES)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the peer's connection data has only %zu bytes", n_bytes);
	n_bytes -= TOKEN_BYTES;
	memcpy(&token, description + n_bytes, TOKEN_BYTES);
	st = gpul_verbs_description_read(description, n_bytes, &peer, err);
	if (st)
		return st;
	p->n_paths = peer.n_qps < p->n_paths ? peer.n_qps : p->n_paths; /* the other queue pairs stay unused */
	peer.n_qps = (uint8_t)p->n_paths;
	describe_queues(p, &own);
	st = gpul_verbs_check_peer(p->verbs.d, &own, &peer, err);
	if (st)
		return st;
	to = gpul_verbs_remote_of(p->verbs.d, &peer);
	p->peer_qkey = peer.datagram_qkey;
	for (unsigned i = 0; i < p->n_paths && !st; i++)
		st = connect_queue(p, i, &peer, &to, err);
	return st ? st : create_reliable(p, to.mtu, token, err);
}

/* ---- reports, end --------------------------------------------------------------------------------------------------- */

unsigned gpul_lossy_stats(void *path, gpul_rel_counters *out, gpul_rel_path_info *paths, unsigned max)
{
	const struct lossy_path *p = path;

	gpul_rel_count(p->rel, out);
	for (unsigned i = 0; i < p->n_paths && i < max; i++)
		gpul_rel_path_about(p->rel, i, &paths[i]);
	return p->n_paths;
}

void gpul_lossy_record(void *path, gpul_rel_trace *trace)
{
	gpul_rel_record(((struct lossy_path *)path)->rel, trace);
}

void gpul_lossy_break(void *path)
{
	struct lossy_path *p = path;

	atomic_store(&p->verbs.broken, true);
	for (unsigned i = 0; i < p->device->n_paths; i++)
		if (p->queues[i].q.qp && !p->queues[i].stopped)
			gpul_verbs_queue_stop(&p->verbs, p->queues[i].q.qp);
	if (p->verbs.loop.qp)
		gpul_verbs_queue_stop(&p->verbs, p->verbs.loop.qp);
}

#endif
