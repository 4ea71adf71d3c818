/* fake_verbs_internal.h — the objects of the fake libibverbs. */
#ifndef GPULOAD_TESTS_FAKE_VERBS_INTERNAL_H
#define GPULOAD_TESTS_FAKE_VERBS_INTERNAL_H

#include <pthread.h>

#include "tests/fake/fake_verbs.h"

struct fake_completion {
	struct ibv_wc wc;
	unsigned frees; /* number of operations of the send queue that this completion retires */
};

struct fake_cq {
	struct ibv_cq cq;
	struct fake_completion *ring;
	unsigned head, tail, room;
};

struct fake_mr {
	struct ibv_mr mr;
	unsigned access;
	bool null;
	struct fake_mr *next;
};

struct fake_recv {
	uint64_t wr_id;
	struct ibv_sge sge;
	int num_sge;
};

struct fake_qp {
	struct ibv_qp qp;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	struct fake_recv *recvs;
	unsigned recvs_head, recvs_tail;
	unsigned used, unsignaled; /* used: operations in the send queue; unsignaled: those after the last signaled one */
	struct fake_qp *next;
};

struct fake_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

extern pthread_mutex_t fake_verbs_lock;
extern struct fake_qp *fake_qps;
extern struct fake_mr *fake_mrs;

/* Count one call; returns 0 or the errno number with which it must fail. */
int fake_verbs_step(void);

/* Count a call that returns an object, and allocate the object; NULL, with errno, if the call must fail. */
void *fake_new_object(size_t bytes);
int fake_free_object(void *object);
uint32_t fake_verbs_number(void); /* a number that no other object has */

/* Call the following functions with the lock held. */
struct fake_qp *fake_qp_find(uint32_t qp_num);
void fake_qp_break(struct fake_qp *q, bool keep_quiet); /* change to state ERR, and flush the receives */
void fake_qp_reset(struct fake_qp *q);                  /* forget receives and completions */
enum ibv_wc_status fake_verbs_planned(enum ibv_wc_status status, uint32_t *vendor);
void fake_verbs_count_doorbell(void);
void fake_verbs_event(enum ibv_event_type type, struct fake_qp *q, struct ibv_cq *cq, int port);

/* Functions of the table that fake_verbs() returns. */
struct ibv_cq *fake_create_cq(struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector);
int fake_destroy_cq(struct ibv_cq *cq);
struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int fake_destroy_qp(struct ibv_qp *qp);
int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int fake_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
struct ibv_ah *fake_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int fake_destroy_ah(struct ibv_ah *ah);
struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *ctx);
int fake_destroy_comp_channel(struct ibv_comp_channel *c);
int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void fake_ack_cq_events(struct ibv_cq *cq, unsigned n);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);

#endif
