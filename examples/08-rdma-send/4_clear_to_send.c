/* 4_clear_to_send.c — first the sender guesses when a buffer is free, and overwrites messages;
 * then the receiver decides, with slots in the sender's memory.
 *
 *     4_clear_to_send                            both processes on this machine
 *     4_clear_to_send --listen                   the receiver
 *     4_clear_to_send HOST                       the sender, on another machine
 *
 * Read guesses_*() first, then grant(), receives_granted() and sends_granted(). */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"

enum { BUFFERS = 4, SLOTS = 4, FEW = 8, MANY = 1000 };

struct message {
	uint32_t number;
	char text[60];
};

/* A clear-to-send slot means "write one message here".  The receiver writes it into the sender's memory. */
struct slot {
	uint64_t address;
	uint32_t rkey;
	uint32_t bytes; /* number of bytes that may be written at address */
	uint32_t reserved[3];
	_Atomic uint32_t sequence; /* number of the slot, from 1; last, so that it arrives last */
};

struct receiver_memory {
	struct message buffers[BUFFERS];
	struct slot grants[SLOTS]; /* source of the writes to the sender's slots */
};

struct sender_memory {
	struct slot slots[SLOTS]; /* written by the receiver; at the start of the memory, so that the receiver knows their addresses */
	struct message messages[SLOTS];
};

static struct ibv_wc next_completion(struct end *e, const char *for_what)
{
	const struct ibv_wc wc = queue_wait(e->cq, for_what);

	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "lesson: %s: completion %d, %s\n", for_what, wc.status, ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

/* ---- the sender guesses: message n goes to buffer n mod 4 -------------------------------------------------- */

static void guesses_receiver(struct end *e, const struct receiver_memory *m, const struct lesson_peer *peer)
{
	lesson_meet(peer); /* simulates a slow receiver: all messages have arrived before it reads the first one */
	for (int i = 0; i < FEW; i++) {
		const uint32_t n = ntohl(next_completion(e, "a message").imm_data);
		const uint32_t found = m->buffers[n % BUFFERS].number;

		printf("receiver: message %u arrived, buffer %u contains message %u%s\n", n, n % BUFFERS, found,
		       found == n ? "" : ": overwritten");
		end_post_receive(e);
	}
	lesson_meet(peer);
}

static void guesses_sender(struct end *e, struct sender_memory *m, const struct lesson_peer *peer)
{
	for (uint32_t n = 0; n < FEW; n++) {
		const struct remote to = { e->remote.address + n % BUFFERS * sizeof(struct message), e->remote.rkey };

		m->messages[0].number = n;
		end_post_write(e, IBV_WR_RDMA_WRITE_WITH_IMM, &m->messages[0], sizeof(struct message), to, n);
		next_completion(e, "the end of a write");
	}
	lesson_meet(peer);
	lesson_meet(peer);
}

/* ---- the receiver decides ------------------------------------------------------------------------------------- */

/* Permit the sender to write message n, to this buffer. */
static void grant(struct end *e, struct receiver_memory *m, uint32_t n, struct message *buffer)
{
	struct slot *s = &m->grants[n % SLOTS];
	const struct remote to = { e->remote.address + n % SLOTS * sizeof(struct slot), e->remote.rkey };

	*s = (struct slot){ .address = (uintptr_t)buffer, .rkey = e->mr->rkey, .bytes = sizeof *buffer, .sequence = n + 1 };
	end_post_write(e, IBV_WR_RDMA_WRITE, s, sizeof *s, to, 0);
}

static void receives_granted(struct end *e, struct receiver_memory *m)
{
	uint32_t n_granted = 0, n_wrong = 0;

	while (n_granted < BUFFERS) {
		grant(e, m, n_granted, &m->buffers[n_granted]);
		n_granted++;
	}
	for (uint32_t n_read = 0; n_read < MANY;) {
		const struct ibv_wc wc = next_completion(e, "a message");
		const uint32_t n = ntohl(wc.imm_data);

		if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			continue; /* this is the completion of our own write of a grant */
		n_wrong += m->buffers[n % BUFFERS].number != n;
		n_read++;
		end_post_receive(e); /* before the grant, because the granted message consumes the receive */
		if (n_granted < MANY)
			grant(e, m, n_granted++, &m->buffers[n % BUFFERS]); /* the buffer is free again */
	}
	printf("receiver: %d messages, %u overwritten\n", MANY, n_wrong);
}

static void sends_granted(struct end *e, struct sender_memory *m)
{
	uint32_t n_waits = 0;

	for (uint32_t n = 0; n < MANY; n++) {
		struct slot *s = &m->slots[n % SLOTS];
		struct message *message = &m->messages[n % SLOTS];
		uint64_t since = 0;

		while (atomic_load_explicit(&s->sequence, memory_order_acquire) != n + 1)
			lesson_wait(&since, "a slot");
		n_waits += since != 0;
		message->number = n;
		end_post_write(e, IBV_WR_RDMA_WRITE_WITH_IMM, message, sizeof *message, (struct remote){ s->address, s->rkey }, n);
		next_completion(e, "the end of a write");
	}
	printf("sender:   waited for %u of %d slots\n", n_waits, MANY);
}

int main(int argc, char **argv)
{
	static struct receiver_memory receiver;
	static struct sender_memory sender;
	struct lesson_peer peer;
	struct end e;

	lesson_two_processes(argc, argv, &peer);
	if (peer.receives) {
		end_open(&e, &peer, &receiver, sizeof receiver, 2 * FEW);
		puts("-- the sender guesses: 8 messages, 4 buffers");
		guesses_receiver(&e, &receiver, &peer);
		puts("-- the receiver decides: 1000 messages, 4 buffers");
		receives_granted(&e, &receiver);
	} else {
		end_open(&e, &peer, &sender, sizeof sender, 0);
		guesses_sender(&e, &sender, &peer);
		sends_granted(&e, &sender);
	}
	lesson_meet(&peer); /* before the memory is freed, wait until the last grants and
			      * messages have arrived */
	end_close(&e);
	return lesson_end(&peer);
}
