/* queue_pair.h — steps 2 to 4: open a device; create and connect a queue pair; wait for a completion. */
#ifndef QUEUE_PAIR_H
#define QUEUE_PAIR_H

#include <infiniband/verbs.h>

#include "lesson.h"

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd; /* protection domain: queue pairs and memory of one domain work together */
	uint8_t port;
	struct ibv_port_attr attr;
	int gid_index; /* index of this side's address in the port's GID table */
	union ibv_gid gid;
};

/* The information that one side needs about the other side's queue pair. */
struct address {
	uint32_t qpn; /* number of the queue pair */
	uint32_t psn; /* number of the first packet that it sends */
	uint16_t lid; /* InfiniBand: address of the port in its subnet */
	union ibv_gid gid;
};

/* Open the first device with an active port; ends the program with status 77 if there is none. */
void device_open(struct device *d);
void device_close(struct device *d);

/* Create a queue pair in state INIT.  Its completions go to cq. */
struct ibv_qp *queue_pair_create(const struct device *d, struct ibv_cq *cq);
struct address queue_pair_address(const struct device *d, const struct ibv_qp *qp);
/* Connect a queue pair to another one: INIT, RTR (ready to receive), RTS (ready to send). */
void queue_pair_connect(const struct device *d, struct ibv_qp *qp, const struct address *peer);

/* Poll until the queue has a completion. */
struct ibv_wc queue_wait(struct ibv_cq *cq, const char *for_what);

#endif
