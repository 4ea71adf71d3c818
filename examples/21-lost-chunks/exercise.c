// Go-back-N, as a reliable queue pair (RC) of RDMA does it: the receiver takes chunks only in order, and the sender goes back to the missing one.
#include "wire.h"

// The receiver
static int expected, has_asked;

struct answer receive(int packet, int chunk)
{
	int again = 0;

	if (chunk == expected) {
		expected++;
		has_asked = 0;
	} else if (chunk > expected && !has_asked) {
		again = has_asked = 1;  // once: the chunks that are on their way are dropped, too
	}
	return (struct answer){ expected, packet, chunk, again };
}

// The sender
static int oldest, next;  // chunks before `oldest` are acknowledged; `next` is sent next
static long heard;        // time of the last progress

void acknowledged(struct answer a, long now)
{
	if (a.next > oldest) {
		oldest = a.next;
		heard = now;
	}
	if (next < oldest || a.again)
		next = oldest;
}

int next_chunk(int packet, long now)
{
	(void)packet;
	if (oldest < CHUNKS && now - heard > TIMEOUT) {  // the last chunk was lost, or one that was sent again
		next = oldest;
		heard = now;
	}
	return next < CHUNKS && next < oldest + WINDOW ? next++ : NOTHING;
}
