// Only lost chunks are sent again: the receiver takes chunks in any order, and the sender finds a loss by the numbers of the packets.
#include "wire.h"

enum { THRESHOLD = 3 };  // a packet is lost when the third one after it has arrived

// The receiver
static char has[CHUNKS];
static int expected;

struct answer receive(int packet, int chunk)
{
	has[chunk] = 1;
	while (expected < CHUNKS && has[expected])
		expected++;
	return (struct answer){ expected, packet, chunk, 0 };
}

// The sender
static struct {
	int packet;  // the last one that carried the chunk
	char acknowledged, lost;
} chunks[CHUNKS];
static int oldest, next;
static long heard;

void acknowledged(struct answer a, long now)
{
	heard = now;
	chunks[a.chunk].acknowledged = 1;
	oldest = a.next > oldest ? a.next : oldest;
	for (int i = oldest; i < next; i++)
		if (!chunks[i].acknowledged && chunks[i].packet + THRESHOLD <= a.packet)
			chunks[i].lost = 1;
}

int next_chunk(int packet, long now)
{
	int chunk = NOTHING;

	for (int i = oldest; i < next; i++) {
		if (now - heard > TIMEOUT && !chunks[i].acknowledged)
			chunks[i].lost = 1;
		if (chunk == NOTHING && chunks[i].lost && !chunks[i].acknowledged)
			chunk = i;
	}
	if (now - heard > TIMEOUT)
		heard = now;
	if (chunk == NOTHING && next < CHUNKS && next < oldest + WINDOW)
		chunk = next++;
	if (chunk != NOTHING) {
		chunks[chunk].packet = packet;
		chunks[chunk].lost = 0;
	}
	return chunk;
}
