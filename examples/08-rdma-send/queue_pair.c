/* queue_pair.c — steps 2 to 4: open a device; create and connect a queue pair; wait for a completion. */
#include "queue_pair.h"

#include <arpa/inet.h>
#include <string.h>

enum { DEPTH = 64, RETRY_TIMEOUT = 14, RETRIES = 6, RNR_TIMER = 12, RNR_RETRIES = 3 };

/* Choose an entry of the port's GID table: on Ethernet, an IPv4 address with RoCE v2, which routers forward. */
static int choose_gid(struct device *d)
{
	static const unsigned char ipv4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;

	if (d->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return 0;
	for (int i = 0; i < d->attr.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(d->context, d->port, (uint32_t)i, &entry, 0) && entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entry.gid.raw, ipv4, sizeof ipv4) == 0)
			return i;
	return -1;
}

static bool use_device(struct device *d, struct ibv_device *which)
{
	struct ibv_device_attr a;

	d->context = ibv_open_device(which);
	lesson_need(d->context != NULL, "ibv_open_device");
	lesson_need(!ibv_query_device(d->context, &a), "ibv_query_device");
	for (d->port = 1; d->port <= a.phys_port_cnt; d->port++) {
		lesson_need(!ibv_query_port(d->context, d->port, &d->attr), "ibv_query_port");
		d->gid_index = d->attr.state == IBV_PORT_ACTIVE ? choose_gid(d) : -1;
		if (d->gid_index >= 0)
			return true;
	}
	ibv_close_device(d->context);
	return false;
}

void device_open(struct device *d)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool found = false;

	for (int i = 0; list && i < n && !found; i++)
		found = use_device(d, list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!found)
		lesson_skip(n ? "no RDMA device has an active port with an IPv4 address" : "no RDMA device on this machine");
	lesson_need(!ibv_query_gid(d->context, d->port, d->gid_index, &d->gid), "ibv_query_gid");
	d->pd = ibv_alloc_pd(d->context);
	lesson_need(d->pd != NULL, "ibv_alloc_pd");
}

void device_close(struct device *d)
{
	ibv_dealloc_pd(d->pd);
	ibv_close_device(d->context);
}

struct ibv_qp *queue_pair_create(const struct device *d, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC, /* RC: a reliable connection; the NIC retransmits lost
								       * packets */
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 32 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = d->port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, /* the peer may write; each registration decides to which
							      * memory */
	};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	lesson_need(qp != NULL, "ibv_create_qp");
	lesson_need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		    "ibv_modify_qp to INIT");
	return qp;
}

struct address queue_pair_address(const struct device *d, const struct ibv_qp *qp)
{
	/* A random number would protect against packets of an earlier connection; the lesson
	 * uses the number of the queue pair. */
	return (struct address){ .qpn = qp->qp_num, .psn = qp->qp_num, .lid = d->attr.lid, .gid = d->gid };
}

void queue_pair_connect(const struct device *d, struct ibv_qp *qp, const struct address *peer)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = d->attr.active_mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = { .port_num = d->port,
			     .dlid = peer->lid,
			     .is_global = 1,
			     .grh = { .dgid = peer->gid, .sgid_index = (uint8_t)d->gid_index, .hop_limit = 64 } },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = queue_pair_address(d, qp).psn,
		.timeout = RETRY_TIMEOUT,
		.retry_cnt = RETRIES, /* 4.096 us * 2^14 = 67 ms for each of seven retries: 0.5 s */
		.rnr_retry = RNR_RETRIES,
		.max_rd_atomic = 1,
	};

	lesson_need(!ibv_modify_qp(qp, &rtr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		    "ibv_modify_qp to RTR");
	lesson_need(!ibv_modify_qp(qp, &rts,
				   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		    "ibv_modify_qp to RTS");
}

struct ibv_wc queue_wait(struct ibv_cq *cq, const char *for_what)
{
	struct ibv_wc wc;
	int n;

	for (uint64_t since = 0; (n = ibv_poll_cq(cq, 1, &wc)) == 0; lesson_wait(&since, for_what))
		;
	lesson_need(n == 1, "ibv_poll_cq");
	return wc;
}
