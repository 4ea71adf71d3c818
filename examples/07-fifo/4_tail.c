/* 4_tail.c — flow control: the CPU says how far it is, and no GPU thread writes where it has not been.
 *
 *     4_tail [4_tail.ptx]
 *
 * Read serve(), with the kernel's while loop beside it: each slot has one writer at a time.  Then stand_still(): it is
 * right, and too much of a good thing. */
#include <stdio.h>

#include "core/clock.h"
#include "lesson.h"

enum { EACH = 64, ALL = EACH * THREADS };

static bool take(const struct ring *ring, u64 position, struct slot *out)
{
	const struct slot *s = &ring->slot[position % SLOTS];
	const u64 lap = position / SLOTS % 2 ? 0 : LAP;

	out->word[0] = __atomic_load_n(&s->word[0], __ATOMIC_ACQUIRE);
	out->word[1] = __atomic_load_n(&s->word[1], __ATOMIC_ACQUIRE);
	if ((out->word[0] & LAP) != lap || (out->word[1] & LAP) != lap)
		return false;
	out->word[0] &= PAYLOAD;
	out->word[1] &= PAYLOAD;
	return true;
}

/* The CPU takes nothing until every thread has looked a hundred times.  They all get there: 8 tickets have room, and
 * each thread has 64 messages. */
static void stand_still(const struct looks *looks)
{
	u64 total, fewest = 0;

	for (uint64_t since = 0; fewest < 100; lesson_wait(&since, "every thread to look"))
		fewest = lesson_looks(looks, &total).fewest;
	printf("%u of %d threads wait and look over the bus: %llu times so far\n", lesson_looks(looks, &total).n_threads,
	       THREADS, total);
}

/* Take all of them.  Returns how many were not the awaited ones. */
static u64 serve(struct ring *ring)
{
	u64 of_thread[THREADS] = { 0 }, n_bad = 0;
	struct slot m;

	for (u64 position = 0; position < ALL; position++) {
		for (uint64_t since = 0; !take(ring, position, &m);)
			lesson_wait(&since, "the next message");
		n_bad += m.word[1] != position || (m.word[0] & 0xffffffff) != of_thread[m.word[0] >> 32]++;
		/* Partner: the kernel's acquire.  It writes that slot when it has seen that we are done with it. */
		__atomic_store_n(&ring->tail, position + 1, __ATOMIC_RELEASE);
	}
	return n_bad;
}

int main(int argc, char **argv)
{
	struct lesson l;
	struct ring *ring;
	struct looks *looks;
	CUdeviceptr next;
	uint64_t start;
	u64 n = EACH, n_bad, before, total;

	lesson_begin(&l, argc > 1 ? argv[1] : "4_tail.ptx");
	ring = lesson_host(&l, sizeof *ring);
	looks = lesson_host(&l, sizeof *looks);
	next = lesson_device(&l, sizeof(u64));
	puts("-- 16 threads, 8 slots; the CPU stands still");
	lesson_start(&l, "push", THREADS, (struct lesson_arg[]){ ARG(ring), ARG(next), ARG(looks), ARG(n) }, 4);
	stand_still(looks);
	puts("-- now it takes them");
	lesson_looks(looks, &before);
	start = gpul_clock_ns();
	n_bad = serve(ring);
	lesson_join(&l);
	lesson_looks(looks, &total);
	printf("%d sent, %d taken, %llu out of order; %.1f looks each, %.2f us each\n", ALL, ALL, n_bad,
	       (double)(total - before) / ALL, (double)(gpul_clock_ns() - start) / 1e3 / ALL);
	lesson_end(&l);
	return n_bad != 0;
}
