/* queue.c — creates and connects one queue pair: RESET ─ create ─> INIT ─ connect ─> RTR (ready to receive) ─> RTS (ready to send). */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Choose a random initial packet sequence number, so that packets of an earlier connection with the same queue pair numbers are not
 * accepted. */
static uint32_t random_psn(void)
{
	uint32_t psn = 0;

	if (getrandom(&psn, sizeof psn, GRND_NONBLOCK) != (ssize_t)sizeof psn)
		psn = (uint32_t)(uintptr_t)&psn >> 4;
	return psn & 0xffffff;
}

static gpul_status to_init(gpul_verbs_path *p, gpul_verbs_queue *q, enum ibv_qp_type type, unsigned access, gpul_error *err)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = p->d->port, .qp_access_flags = access };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT, r;

	if (type == IBV_QPT_UD) {
		attr.qkey = p->datagrams.qkey;
		mask |= IBV_QP_QKEY;
	} else {
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	r = p->d->v->modify_qp(q->qp, &attr, mask);
	return r ? gpul_verbs_fail(err, gpul_verbs_errno(r), 0, "ibv_modify_qp to INIT on %s", p->d->info.name) : GPUL_OK;
}

gpul_status gpul_verbs_queue_create(gpul_verbs_path *p, gpul_verbs_queue *q, enum ibv_qp_type type, unsigned depth, unsigned n_recvs,
				    unsigned access, gpul_error *err)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = p,
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.qp_type = type,
		.cap = { .max_send_wr = depth,
			 .max_recv_wr = n_recvs,
			 .max_send_sge = type == IBV_QPT_UD ? 2 : 1, /* a header and its data */
			 .max_recv_sge = 1,
			 .max_inline_data = p->d->info.inline_bytes },
	};
	gpul_status st;

	q->marks = calloc(depth, sizeof *q->marks);
	if (!q->marks)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a queue pair of %u operations", depth);
	q->depth = depth;
	q->psn = random_psn();
	q->qp = p->d->v->create_qp(p->d->pd, &attr);
	if (!q->qp) {
		st = gpul_verbs_fail(err, errno, (size_t)depth * 256, "ibv_create_qp with %u sends and %u receives", depth, n_recvs);
		goto free_marks;
	}
	st = to_init(p, q, type, access, err);
	if (st)
		goto destroy_qp;
	return GPUL_OK;
destroy_qp:
	(void)p->d->v->destroy_qp(q->qp);
	q->qp = NULL;
free_marks:
	free(q->marks);
	q->marks = NULL;
	return st;
}

void gpul_verbs_queue_destroy(gpul_verbs_path *p, gpul_verbs_queue *q)
{
	if (q->qp)
		(void)p->d->v->destroy_qp(q->qp);
	free(q->marks);
	*q = (gpul_verbs_queue){ 0 };
}

void gpul_verbs_address(const gpul_verbs_device *d, const gpul_verbs_remote *to, struct ibv_ah_attr *out)
{
	*out = (struct ibv_ah_attr){ .dlid = to->lid, .port_num = d->port };
	if (to->global) {
		out->is_global = 1;
		out->grh = (struct ibv_global_route){
			.dgid = to->gid,
			.sgid_index = (uint8_t)d->gid.gid_index,
			.hop_limit = GPUL_VERBS_HOPS,
			.traffic_class = d->traffic_class,
		};
	}
}

static gpul_status to_rtr(gpul_verbs_path *p, gpul_verbs_queue *q, enum ibv_qp_type type, const gpul_verbs_remote *to, gpul_error *err)
{
	const gpul_verbs_device *d = p->d;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = to->mtu,
		.dest_qp_num = to->qpn,
		.rq_psn = to->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = GPUL_VERBS_RNR_TIMER,
	};
	int mask = IBV_QP_STATE, r;

	if (type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	gpul_verbs_address(d, to, &attr.ah_attr);
	r = d->v->modify_qp(q->qp, &attr, mask);
	if (r) {
		char own[GPUL_VERBS_GID_TEXT], peer[GPUL_VERBS_GID_TEXT];

		gpul_verbs_gid_text(&d->gid.gid, own);
		gpul_verbs_gid_text(&to->gid, peer);
		return gpul_verbs_fail(err, gpul_verbs_errno(r), 0, "ibv_modify_qp to RTR: own GID %u %s LID %u, peer's GID %s LID %u",
				       d->gid.gid_index, own, d->port_attr.lid, peer, to->lid);
	}
	return GPUL_OK;
}

static gpul_status to_rts(gpul_verbs_path *p, gpul_verbs_queue *q, enum ibv_qp_type type, gpul_error *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = q->psn,
		.timeout = p->d->timeout,
		.retry_cnt = p->d->retry,
		.rnr_retry = 6,
		.max_rd_atomic = 1,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, r;

	if (type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	r = p->d->v->modify_qp(q->qp, &attr, mask);
	return r ? gpul_verbs_fail(err, gpul_verbs_errno(r), 0, "ibv_modify_qp to RTS on %s", p->d->info.name) : GPUL_OK;
}

gpul_status gpul_verbs_queue_connect(gpul_verbs_path *p, gpul_verbs_queue *q, enum ibv_qp_type type, const gpul_verbs_remote *to,
				     gpul_error *err)
{
	gpul_status st = to_rtr(p, q, type, to, err);

	return st ? st : to_rts(p, q, type, err);
}

#endif
