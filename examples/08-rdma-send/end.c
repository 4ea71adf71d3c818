/* end.c — steps 3 and 4: one end of a connection between two processes. */
#include "end.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

/* Exchange one line of text with the other process: queue pair, number of the first packet, LID, address and key of the memory, GID. */
static void exchange(struct end *e, const struct lesson_peer *peer, struct address *other)
{
	const struct address own = queue_pair_address(&e->device, e->qp);
	char line[256], gid[INET6_ADDRSTRLEN];
	unsigned qpn, psn, lid, rkey;

	inet_ntop(AF_INET6, own.gid.raw, gid, sizeof gid);
	lesson_tell(peer, "%x %x %x %" PRIx64 " %x %s", own.qpn, own.psn, own.lid, (uint64_t)(uintptr_t)e->mr->addr, e->mr->rkey, gid);
	lesson_hear(peer, line);
	lesson_need(sscanf(line, "%x %x %x %" SCNx64 " %x %45s", &qpn, &psn, &lid, &e->remote.address, &rkey, gid) == 6 &&
			    inet_pton(AF_INET6, gid, other->gid.raw) == 1,
		    "the other process's line");
	other->qpn = qpn;
	other->psn = psn;
	other->lid = (uint16_t)lid;
	e->remote.rkey = rkey;
}

void end_open(struct end *e, const struct lesson_peer *peer, void *memory, size_t bytes, unsigned n_receives)
{
	struct address other;

	device_open(&e->device);
	e->mr = ibv_reg_mr(e->device.pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	lesson_need(e->mr != NULL, "ibv_reg_mr");
	e->cq = ibv_create_cq(e->device.context, 128, NULL, NULL, 0);
	lesson_need(e->cq != NULL, "ibv_create_cq");
	e->qp = queue_pair_create(&e->device, e->cq);
	for (unsigned i = 0; i < n_receives; i++)
		end_post_receive(e);
	exchange(e, peer, &other);
	queue_pair_connect(&e->device, e->qp, &other);
	lesson_meet(peer); /* neither process sends before the other one is ready to receive */
}

void end_close(struct end *e)
{
	ibv_destroy_qp(e->qp);
	ibv_destroy_cq(e->cq);
	ibv_dereg_mr(e->mr);
	device_close(&e->device);
}

void end_post_receive(struct end *e)
{
	struct ibv_recv_wr request = { .num_sge = 0 }; /* needs no buffer, because the peer's write contains the address */
	struct ibv_recv_wr *bad;

	lesson_need(!ibv_post_recv(e->qp, &request, &bad), "ibv_post_recv");
}

void end_post_write(struct end *e, enum ibv_wr_opcode opcode, const void *from, uint32_t bytes, struct remote to, uint32_t imm)
{
	struct ibv_sge piece = { .addr = (uintptr_t)from, .length = bytes, .lkey = e->mr->lkey };
	struct ibv_send_wr request = {
		.sg_list = &piece,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(imm), /* the receiver's completion contains these four bytes, in network order */
		.wr.rdma = { .remote_addr = to.address, .rkey = to.rkey },
	};
	struct ibv_send_wr *bad;

	lesson_need(!ibv_post_send(e->qp, &request, &bad), "ibv_post_send");
}
