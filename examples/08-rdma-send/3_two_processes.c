/* 3_two_processes.c — a message from one process to another: an RDMA write with immediate, of which the NIC notifies the
 * receiver.
 *
 *     3_two_processes                            both processes on this machine
 *     3_two_processes --listen                   the receiver
 *     3_two_processes HOST                       the sender, on another machine
 *
 * Read receiver() and sender(), then end.c. */
#include <arpa/inet.h>
#include <string.h>

#include "end.h"

static void receiver(const struct lesson_peer *peer)
{
	char buffer[64] = "", line[256];
	struct end e;
	struct ibv_wc wc;

	end_open(&e, peer, buffer, sizeof buffer, 1); /* 1: posts one receive */
	wc = queue_wait(e.cq, "a message");
	lesson_need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	printf("receiver: %s, immediate %u, %u bytes: \"%s\"\n", wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? "a write with immediate" : "?",
	       ntohl(wc.imm_data), wc.byte_len, buffer);
	lesson_meet(peer);

	lesson_hear(peer, line); /* waits until the sender has sent a second message, for which no receive is posted */
	printf("receiver: %d completions after the second message\n", ibv_poll_cq(e.cq, 1, &wc));
	end_close(&e);
}

static void sender(const struct lesson_peer *peer)
{
	char message[64] = "the first message";
	struct end e;
	struct ibv_wc wc;

	end_open(&e, peer, message, sizeof message, 0);
	end_post_write(&e, IBV_WR_RDMA_WRITE_WITH_IMM, message, sizeof message, e.remote, 1);
	wc = queue_wait(e.cq, "the end of a write");
	printf("sender:   first message: completion %d, %s\n", wc.status, ibv_wc_status_str(wc.status));
	lesson_meet(peer);

	strcpy(message, "the second message");
	end_post_write(&e, IBV_WR_RDMA_WRITE_WITH_IMM, message, sizeof message, e.remote, 2);
	wc = queue_wait(e.cq, "the end of a write");
	printf("sender:   second message: completion %d, %s\n", wc.status, ibv_wc_status_str(wc.status));
	lesson_tell(peer, "done");
	end_close(&e);
}

int main(int argc, char **argv)
{
	struct lesson_peer peer;

	lesson_two_processes(argc, argv, &peer);
	(peer.receives ? receiver : sender)(&peer);
	return lesson_end(&peer);
}
