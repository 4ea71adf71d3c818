/* fake_verbs_objects.c — queues, queue pairs and addresses of the fake libibverbs. */
#if GPUL_HAVE_LIBIBVERBS
#include "tests/fake/fake_verbs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake_qp *fake_qps;

struct ibv_cq *fake_create_cq(struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq = fake_new_object(sizeof *cq);

	(void)vector;
	if (!cq)
		return NULL;
	cq->room = (unsigned)cqe;
	cq->ring = calloc(cq->room, sizeof *cq->ring);
	cq->cq = (struct ibv_cq){ .context = ctx, .cq_context = cq_context, .channel = channel, .cqe = cqe };
	return &cq->cq;
}

int fake_destroy_cq(struct ibv_cq *cq)
{
	for (struct fake_qp *q = fake_qps; q; q = q->next)
		if (q->qp.send_cq == cq || q->qp.recv_cq == cq)
			return EBUSY;
	free(((struct fake_cq *)cq)->ring);
	return fake_free_object(cq);
}

struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *q;

	if (attr->cap.max_inline_data > fake_verbs_behave()->max_inline) {
		errno = EINVAL;
		return NULL;
	}
	q = fake_new_object(sizeof *q);
	if (!q)
		return NULL;
	q->qp = (struct ibv_qp){ .context = pd->context,
				 .qp_context = attr->qp_context,
				 .pd = pd,
				 .send_cq = attr->send_cq,
				 .recv_cq = attr->recv_cq,
				 .state = IBV_QPS_RESET,
				 .qp_type = attr->qp_type };
	q->cap = attr->cap;
	q->recvs = calloc(q->cap.max_recv_wr + 1, sizeof *q->recvs);
	pthread_mutex_lock(&fake_verbs_lock);
	q->qp.qp_num = fake_verbs_number();
	q->next = fake_qps;
	fake_qps = q;
	pthread_mutex_unlock(&fake_verbs_lock);
	return &q->qp;
}

int fake_destroy_qp(struct ibv_qp *qp)
{
	struct fake_qp **at = &fake_qps;

	pthread_mutex_lock(&fake_verbs_lock);
	while (*at != (struct fake_qp *)qp)
		at = &(*at)->next;
	*at = (*at)->next;
	fake_qp_reset((struct fake_qp *)qp);
	pthread_mutex_unlock(&fake_verbs_lock);
	free(((struct fake_qp *)qp)->recvs);
	return fake_free_object(qp);
}

/* Return the attributes that a change of state requires.  Source: InfiniBand Architecture 11.2.5.2. */
static int needed_mask(const struct fake_qp *q, enum ibv_qp_state to)
{
	const bool rc = q->qp.qp_type == IBV_QPT_RC, ud = q->qp.qp_type == IBV_QPT_UD;

	switch (to) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		return IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
		       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	case IBV_QPS_RTS:
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	default:
		return IBV_QP_STATE;
	}
}

static int check_address(const struct ibv_ah_attr *address)
{
	if (fake_verbs_behave()->ports[0].link_layer == IBV_LINK_LAYER_ETHERNET && !address->is_global)
		return EINVAL;
	if (!address->is_global)
		return address->dlid ? 0 : EINVAL;
	for (unsigned i = 0; i < fake_verbs_behave()->n_gids; i++)
		if (memcmp(&fake_verbs_behave()->gids[i].gid, &address->grh.dgid, sizeof(union ibv_gid)) == 0)
			return 0;
	return ETIMEDOUT; /* the error that a peer which does not reply to ARP would cause */
}

static void set_attributes(struct fake_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_QKEY)
		q->attr.qkey = attr->qkey;
	if (mask & IBV_QP_ACCESS_FLAGS)
		q->attr.qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_AV) {
		q->attr.ah_attr = attr->ah_attr;
		q->attr.path_mtu = attr->path_mtu;
		q->attr.dest_qp_num = attr->dest_qp_num;
		q->attr.rq_psn = attr->rq_psn;
	}
	if (mask & IBV_QP_SQ_PSN)
		q->attr.sq_psn = attr->sq_psn;
	if (mask & IBV_QP_TIMEOUT) {
		q->attr.timeout = attr->timeout;
		q->attr.retry_cnt = attr->retry_cnt;
		q->attr.rnr_retry = attr->rnr_retry;
	}
}

int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *q = (struct fake_qp *)qp;
	const enum ibv_qp_state to = attr->qp_state;
	const bool stop = to == IBV_QPS_ERR || to == IBV_QPS_RESET;
	int r = stop ? 0 : fake_verbs_step();

	pthread_mutex_lock(&fake_verbs_lock);
	if (!r && (mask != needed_mask(q, to) || (!stop && to != qp->state + 1)))
		r = EINVAL;
	if (!r && mask & IBV_QP_AV)
		r = check_address(&attr->ah_attr);
	if (!r) {
		set_attributes(q, attr, mask);
		if (to == IBV_QPS_ERR)
			fake_qp_break(q, false);
		if (to == IBV_QPS_RESET)
			fake_qp_reset(q);
		qp->state = to;
	}
	pthread_mutex_unlock(&fake_verbs_lock);
	return r;
}

int fake_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	(void)mask, (void)init;
	*attr = ((struct fake_qp *)qp)->attr;
	attr->qp_state = qp->state;
	return fake_verbs_step();
}

struct ibv_ah *fake_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fake_ah *a = fake_new_object(sizeof *a);

	if (!a)
		return NULL;
	a->ah.context = pd->context;
	a->attr = *attr;
	return &a->ah;
}

int fake_destroy_ah(struct ibv_ah *ah)
{
	return fake_free_object(ah);
}

struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *c = fake_new_object(sizeof *c);

	if (c)
		c->context = ctx;
	return c;
}

int fake_destroy_comp_channel(struct ibv_comp_channel *c)
{
	return fake_free_object(c);
}

int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	(void)channel, (void)cq, (void)cq_context;
	errno = EAGAIN;
	return -1;
}

void fake_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq, (void)n;
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq, (void)solicited_only;
	return fake_verbs_step();
}

#else
typedef int no_libibverbs; /* ISO C forbids an empty translation unit */
#endif
