/* verbs_path.c — creates, describes, connects, breaks and destroys a path: the queue pairs of one connection and their completion queue. */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum ibv_qp_type type_of(const gpul_verbs_device *d)
{
	return d->uc ? IBV_QPT_UC : IBV_QPT_RC;
}

/* Return the maximum number of completions at the same time: each operation and each receive can end with one, at the latest when
 * the queue pairs are broken. */
static unsigned count_completions(const gpul_verbs_device *d, unsigned n_qps, unsigned depth, unsigned n_recvs)
{
	return n_qps * (depth + n_recvs) + GPUL_VERBS_FLUSHES + (d->control_datagrams ? 2 * GPUL_VERBS_DATAGRAMS : 0);
}

static gpul_status check_sizes(const gpul_verbs_device *d, unsigned n_qps, unsigned depth, unsigned n_recvs, gpul_error *err)
{
	const struct ibv_device_attr *attr = &d->attr.orig_attr;

	if (n_qps < 1 || n_qps > GPUL_RDMA_MAX_QPS)
		return gpul_fail(err, GPUL_EINVAL, (int)n_qps, "the number of queue pairs is %u: expected 1 to %d", n_qps,
				 GPUL_RDMA_MAX_QPS);
	if (depth < 1 || depth > d->info.max_depth || depth & (depth - 1))
		return gpul_fail(err, GPUL_EINVAL, (int)depth,
				 "the number of operations in flight per queue pair is %u: expected a power of two, at most %u", depth,
				 d->info.max_depth);
	if (n_recvs < 1 || n_recvs > (unsigned)attr->max_qp_wr)
		return gpul_fail(err, GPUL_EINVAL, (int)n_recvs, "%u receives per queue pair are too many: %s supports %d", n_recvs,
				 d->info.name, attr->max_qp_wr);
	if (count_completions(d, n_qps, depth, n_recvs) > (unsigned)attr->max_cqe)
		return gpul_fail(err, GPUL_EINVAL, (int)n_qps,
				 "%u queue pairs need a completion queue of %u entries, but %s supports %d: use fewer queue pairs", n_qps,
				 count_completions(d, n_qps, depth, n_recvs), d->info.name, attr->max_cqe);
	return GPUL_OK;
}

int gpul_verbs_post_recvs(gpul_verbs_path *p, gpul_verbs_queue *q, unsigned n)
{
	while (n) {
		const unsigned batch = n < GPUL_VERBS_BATCH ? n : GPUL_VERBS_BATCH;
		struct ibv_recv_wr *const last = &p->recvs[batch - 1], *const next = last->next, *bad;
		int r;

		last->next = NULL;
		r = p->d->v->post_recv(q->qp, p->recvs, &bad);
		last->next = next;
		if (r)
			return gpul_verbs_errno(r);
		n -= batch;
	}
	return 0;
}

static gpul_status create_queues(gpul_verbs_path *p, unsigned n_qps, unsigned depth, unsigned n_recvs, gpul_error *err)
{
	for (unsigned i = 0; i < n_qps; i++) {
		gpul_status st = gpul_verbs_queue_create(p, &p->queues[i], type_of(p->d), depth, n_recvs,
							 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, err);
		int r;

		if (st)
			return st;
		p->n_qps++;
		r = gpul_verbs_post_recvs(p, &p->queues[i], n_recvs);
		if (r)
			return gpul_verbs_fail(err, r, 0, "ibv_post_recv of %u empty receives", n_recvs);
	}
	return GPUL_OK;
}

gpul_status gpul_verbs_create_path(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				   gpul_error *err)
{
	gpul_verbs_device *d = device;
	gpul_verbs_path *p;
	gpul_status st = check_sizes(d, n_qps, depth, n_recvs, err);
	unsigned n_completions;

	(void)from; /* not used, because the GID belongs to the device */
	if (st)
		return st;
	n_completions = count_completions(d, n_qps, depth, n_recvs);
	p = calloc(1, sizeof *p);
	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a verbs path");
	p->d = d;
	p->n_recvs = n_recvs;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->async_lock, NULL);
	for (unsigned i = 0; i < GPUL_VERBS_BATCH; i++)
		p->recvs[i] = (struct ibv_recv_wr){ .wr_id = GPUL_VERBS_RECV_ID,
						    .next = i + 1 < GPUL_VERBS_BATCH ? &p->recvs[i + 1] : NULL };
	p->cq = d->v->create_cq(d->ctx, (int)n_completions, p, NULL, 0);
	st = p->cq ? GPUL_OK : gpul_verbs_fail(err, errno, (size_t)n_completions * 64, "ibv_create_cq with %u entries", n_completions);
	if (!st)
		st = create_queues(p, n_qps, depth, n_recvs, err);
	if (!st)
		st = gpul_verbs_create_loop(p, err);
	if (!st && d->control_datagrams)
		st = gpul_verbs_create_datagrams(p, err);
	if (st) {
		gpul_verbs_destroy_path(p);
		return st;
	}
	*path = p;
	return GPUL_OK;
}

void gpul_verbs_destroy_path(void *path)
{
	gpul_verbs_path *p = path;

	if (!p)
		return;
	for (unsigned i = 0; i < p->n_qps; i++)
		gpul_verbs_queue_destroy(p, &p->queues[i]);
	gpul_verbs_queue_destroy(p, &p->loop);
	gpul_verbs_destroy_datagrams(p);
	if (p->cq) /* destroyed after the queue pairs that use it */
		(void)p->d->v->destroy_cq(p->cq);
	pthread_mutex_destroy(&p->async_lock);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* True if packets need a global route header, which contains both GIDs: on Ethernet, on InfiniBand networks that require it, and
 * between InfiniBand subnets. */
static bool needs_global(const gpul_verbs_device *d)
{
	return d->ethernet || !d->port_attr.lid || d->port_attr.flags & 1 /* IBV_QPF_GRH_REQUIRED */;
}

void gpul_verbs_describe_port(const gpul_verbs_device *d, gpul_verbs_description *out)
{
	*out = (gpul_verbs_description){
		.link_layer = d->ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
		.gid_type = (uint8_t)d->gid.gid_type,
		.mtu = (uint8_t)d->mtu,
		.lid = d->ethernet ? 0 : d->port_attr.lid,
		.gid = d->gid.gid,
		.flags = needs_global(d) ? GPUL_VERBS_GLOBAL_FLAG : 0,
	};
}

static void describe_path(const gpul_verbs_path *p, gpul_verbs_description *out)
{
	const gpul_verbs_queue *datagrams = &p->datagrams.queue;

	gpul_verbs_describe_port(p->d, out);
	out->qp_type = p->d->uc ? GPUL_RDMA_UC : GPUL_RDMA_RC;
	out->n_qps = (uint8_t)p->n_qps;
	out->flags |= datagrams->qp ? GPUL_VERBS_DATAGRAM_FLAG : 0;
	out->datagram_qpn = datagrams->qp ? datagrams->qp->qp_num : 0;
	out->datagram_qkey = p->datagrams.qkey;
	for (unsigned i = 0; i < p->n_qps; i++) {
		out->qps[i].qpn = p->queues[i].qp->qp_num;
		out->qps[i].psn = p->queues[i].psn;
	}
}

size_t gpul_verbs_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION])
{
	gpul_verbs_description own;

	describe_path(path, &own);
	return gpul_verbs_description_write(&own, out);
}

gpul_status gpul_verbs_check_peer(const gpul_verbs_device *d, const gpul_verbs_description *mine, const gpul_verbs_description *peer,
				  gpul_error *err)
{
	static const char *const layers[] = { "unknown", "InfiniBand", "Ethernet" };
	char own[GPUL_VERBS_GID_TEXT], other[GPUL_VERBS_GID_TEXT];

	gpul_verbs_gid_text(&d->gid.gid, own);
	gpul_verbs_gid_text(&peer->gid, other);
	if ((peer->link_layer == IBV_LINK_LAYER_ETHERNET) != d->ethernet)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the link layer of the peer's port is %s, but that of this port (%s) is %s: choose devices of "
				 "the same network",
				 layers[peer->link_layer], d->info.name, layers[d->ethernet ? 2 : 1]);
	if (peer->gid_type != d->gid.gid_type)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the peer's GID %s is %s, but this side's GID %s is %s: choose GID indexes of the same type", other,
				 gpul_verbs_gid_type(peer->gid_type), own, gpul_verbs_gid_type(d->gid.gid_type));
	if (d->ethernet && gpul_verbs_gid_ipv4(&peer->gid) != gpul_verbs_gid_ipv4(&d->gid.gid))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "one of the peer's GID %s and this side's GID %s is IPv4, the other IPv6: choose GID indexes of "
				 "the same kind",
				 other, own);
	if (peer->qp_type != mine->qp_type || peer->n_qps != mine->n_qps || (peer->datagram_qpn != 0) != (mine->datagram_qpn != 0))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the peer has %u %s queue pairs%s, but this side has %u %s queue pairs%s: use the same options "
				 "on both sides",
				 peer->n_qps, gpul_rdma_qp_name(peer->qp_type), peer->datagram_qpn ? " and datagrams" : "", mine->n_qps,
				 gpul_rdma_qp_name(mine->qp_type), mine->datagram_qpn ? " and datagrams" : "");
	return GPUL_OK;
}

static void log_gids(const gpul_verbs_device *d)
{
	struct ibv_gid_entry *entries = calloc(GPUL_VERBS_MAX_GIDS, sizeof *entries);

	if (entries)
		gpul_verbs_gid_log(GPUL_LOG_NOTICE, entries, gpul_verbs_gids(d, entries), d->port);
	free(entries);
}

gpul_verbs_remote gpul_verbs_remote_of(const gpul_verbs_device *d, const gpul_verbs_description *peer)
{
	return (gpul_verbs_remote){
		.lid = peer->lid,
		.gid = peer->gid,
		.mtu = peer->mtu < d->mtu ? (enum ibv_mtu)peer->mtu : d->mtu,
		.global = needs_global(d) || peer->flags & GPUL_VERBS_GLOBAL_FLAG ||
			  peer->gid.global.subnet_prefix != d->gid.gid.global.subnet_prefix,
	};
}

gpul_status gpul_verbs_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err)
{
	gpul_verbs_path *p = path;
	gpul_verbs_description own, peer;
	gpul_verbs_remote to;
	gpul_status st = gpul_verbs_description_read(description, n_bytes, &peer, err);

	describe_path(p, &own);
	if (!st)
		st = gpul_verbs_check_peer(p->d, &own, &peer, err);
	if (st)
		return st;
	to = gpul_verbs_remote_of(p->d, &peer);
	for (unsigned i = 0; i < p->n_qps && !st; i++) {
		to.qpn = peer.qps[i].qpn;
		to.psn = peer.qps[i].psn;
		st = gpul_verbs_queue_connect(p, &p->queues[i], type_of(p->d), &to, err);
	}
	if (!st && p->datagrams.queue.qp)
		st = gpul_verbs_connect_datagrams(p, &peer, &to, err);
	if (st)
		log_gids(p->d);
	return st;
}

void gpul_verbs_queue_stop(gpul_verbs_path *p, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	(void)p->d->v->modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RESET;
	(void)p->d->v->modify_qp(qp, &attr, IBV_QP_STATE);
}

void gpul_verbs_break(void *path)
{
	gpul_verbs_path *p = path;

	atomic_store(&p->broken, true); /* set before the mutex is locked, so that post and poll stop taking the mutex */
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->n_qps; i++)
		gpul_verbs_queue_stop(p, p->queues[i].qp);
	if (p->loop.qp)
		gpul_verbs_queue_stop(p, p->loop.qp);
	if (p->datagrams.queue.qp)
		gpul_verbs_queue_stop(p, p->datagrams.queue.qp);
	pthread_mutex_unlock(&p->lock);
}

#endif
