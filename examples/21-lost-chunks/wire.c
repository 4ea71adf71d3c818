// wire [LOSS]: sends 20000 chunks over a wire that loses this percentage of the packets, and the last chunk once, by the rules of
// exercise.c or solution.c.
#include <stdio.h>
#include <stdlib.h>

#include "wire.h"

enum { MOST_TIME = 100 * CHUNKS };

static struct {
	int chunk;  // NOTHING: no packet was sent, or it is lost
	int packet;
} forward[DELAY];
static struct answer back[DELAY];
static char arrived[CHUNKS], answered[DELAY];

static int is_lost(double percent, int chunk)
{
	static unsigned long long random = 7;
	static int has_lost_the_last;

	random = random * 6364136223846793005u + 1442695040888963407u;
	if (percent > 0 && chunk == CHUNKS - 1 && !has_lost_the_last)
		return has_lost_the_last = 1;
	return (double)(random >> 33) / 2147483648.0 * 100 < percent;
}

// Let a packet arrive, and send the answer.  Returns the number of chunks at the beginning of the stream that the receiver claims to have.
static int arrive(int slot, int claimed)
{
	answered[slot] = forward[slot].chunk != NOTHING;
	if (!answered[slot])
		return claimed;
	arrived[forward[slot].chunk] = 1;
	back[slot] = receive(forward[slot].packet, forward[slot].chunk);
	for (; claimed < back[slot].next; claimed++)
		if (claimed >= CHUNKS || !arrived[claimed]) {
			printf("wrong: the receiver claims to have chunk %d, which has not arrived\n", claimed);
			exit(1);
		}
	return claimed;
}

int main(int argc, char **argv)
{
	const double percent = argc > 1 ? atof(argv[1]) : 1;
	int n_packets = 0, n_lost = 0, claimed = 0;
	long now;

	for (int i = 0; i < DELAY; i++)
		forward[i].chunk = NOTHING;
	for (now = 0; claimed < CHUNKS && now < MOST_TIME; now++) {
		const int slot = (int)(now % DELAY), known = claimed;

		if (answered[slot])
			acknowledged(back[slot], now);
		claimed = arrive(slot, known);
		forward[slot].chunk = next_chunk(n_packets, now);
		forward[slot].packet = n_packets;
		if (forward[slot].chunk == NOTHING)
			continue;
		if (forward[slot].chunk < 0 || forward[slot].chunk >= CHUNKS || forward[slot].chunk >= claimed + WINDOW) {
			printf("wrong: chunk %d was sent, but the receiver has room for %d to %d\n", forward[slot].chunk, claimed,
			       claimed + WINDOW - 1);
			return 1;
		}
		n_packets++;
		if (is_lost(percent, forward[slot].chunk)) {
			forward[slot].chunk = NOTHING;
			n_lost++;
		}
	}
	if (claimed < CHUNKS) {
		printf("wrong: after %ld units of time, chunk %d is missing\n", now, claimed);
		return 1;
	}
	printf("%d chunks, %d packets, %d of them lost: %.0f %% of the wire's rate\n", CHUNKS, n_packets, n_lost,
	       100.0 * CHUNKS / (double)now);
	return 0;
}
