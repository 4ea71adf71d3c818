/* 2_write.c — an RDMA write between two queue pairs of one process; then a write with a wrong key.
 *
 *     2_write
 *
 * Read main(), then queue_pair.c. */
#include <string.h>

#include "queue_pair.h"

/* Write `bytes` from local memory to remote memory, and return the status of the completion. */
static struct ibv_wc write_and_wait(struct ibv_qp *qp, struct ibv_cq *cq, const struct ibv_mr *from, uint64_t to, uint32_t rkey)
{
	struct ibv_sge piece = { .addr = (uintptr_t)from->addr, .length = (uint32_t)from->length, .lkey = from->lkey };
	struct ibv_send_wr request = {
		.wr_id = 1, /* any number: the completion returns it */
		.sg_list = &piece,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED, /* request a completion */
		.wr.rdma = { .remote_addr = to, .rkey = rkey },
	};
	struct ibv_send_wr *bad;

	lesson_need(!ibv_post_send(qp, &request, &bad), "ibv_post_send"); /* returns immediately; the NIC writes without the CPU */
	return queue_wait(cq, "the end of a write");
}

static void print_end(const char *what, const struct ibv_wc *wc, const char *target)
{
	printf("%-22s  completion %2d, %s; target: \"%s\"\n", what, wc->status, ibv_wc_status_str(wc->status), target);
}

int main(void)
{
	char source[32] = "hello", target[32] = "";
	struct device d;
	struct ibv_mr *source_mr, *target_mr;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
	struct address address_a, address_b;
	struct ibv_wc wc;

	device_open(&d);

	/* Register: the kernel pins the pages, and gives the NIC their addresses.  The lkey is
	 * for local use, the rkey for peers. */
	source_mr = ibv_reg_mr(d.pd, source, sizeof source, 0);
	target_mr = ibv_reg_mr(d.pd, target, sizeof target, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	lesson_need(source_mr && target_mr, "ibv_reg_mr");
	printf("source: lkey 0x%x; target: rkey 0x%x\n", source_mr->lkey, target_mr->rkey);

	cq = ibv_create_cq(d.context, 16, NULL, NULL, 0);
	lesson_need(cq != NULL, "ibv_create_cq");
	a = queue_pair_create(&d, cq);
	b = queue_pair_create(&d, cq);
	address_a = queue_pair_address(&d, a);
	address_b = queue_pair_address(&d, b);
	queue_pair_connect(&d, a, &address_b);
	queue_pair_connect(&d, b, &address_a);
	printf("queue pairs %u and %u are connected\n", address_a.qpn, address_b.qpn);

	wc = write_and_wait(a, cq, source_mr, (uintptr_t)target, target_mr->rkey);
	print_end("write", &wc, target);

	strcpy(source, "not allowed");
	wc = write_and_wait(a, cq, source_mr, (uintptr_t)target, target_mr->rkey ^ 1);
	print_end("write, wrong key", &wc, target);

	wc = write_and_wait(a, cq, source_mr, (uintptr_t)target, target_mr->rkey);
	print_end("write, right key again", &wc, target);

	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(source_mr);
	ibv_dereg_mr(target_mr);
	device_close(&d);
	return 0;
}
