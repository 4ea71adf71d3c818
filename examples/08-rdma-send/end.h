/* end.h — steps 3 and 4: one end of a connection between two processes. */
#ifndef END_H
#define END_H

#include "queue_pair.h"

/* Memory of the peer that this end may write. */
struct remote {
	uint64_t address;
	uint32_t rkey;
};

struct end {
	struct device device;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;    /* this end's memory */
	struct remote remote; /* the memory of the other end */
};

/* Open the device, register `bytes` at `memory`, post n_receives empty receives, and connect to the other process. */
void end_open(struct end *e, const struct lesson_peer *peer, void *memory, size_t bytes, unsigned n_receives);
void end_close(struct end *e);

/* Post an empty receive: the next write with immediate of the peer consumes it. */
void end_post_receive(struct end *e);
/* Post a write of memory inside e->mr, with IBV_WR_RDMA_WRITE or IBV_WR_RDMA_WRITE_WITH_IMM. */
void end_post_write(struct end *e, enum ibv_wr_opcode opcode, const void *from, uint32_t bytes, struct remote to, uint32_t imm);

#endif
