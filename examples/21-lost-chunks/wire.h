// What wire.c, exercise.c and solution.c have in common: a sender and a receiver, and one wire in each direction that keeps the order.
//
//     next_chunk ── packet 0, 1, 2 ... with a chunk each ──────> receive        one packet in each unit of time; it takes DELAY units
//     acknowledged <── an answer to each packet that arrives ── receive        DELAY units, too; answers are not lost
#ifndef WIRE_H
#define WIRE_H

enum { CHUNKS = 20000, WINDOW = 1000, DELAY = 100, TIMEOUT = 1000, NOTHING = -1 };

struct answer {
	int next;    // the receiver has all chunks before this one
	int packet;  // the packet that is answered, and its chunk
	int chunk;
	int again;  // the receiver asks for all chunks from `next` on
};

// The sender: return the chunk to send now as this packet, at most next + WINDOW - 1; NOTHING: wait.
int next_chunk(int packet, long now);
void acknowledged(struct answer a, long now);

// The receiver: a packet has arrived.
struct answer receive(int packet, int chunk);

#endif
