/* 4_tail.c — flow control: the CPU publishes its position, the tail, and a GPU thread writes only to slots that the CPU
 * has read.
 *
 *     4_tail [4_tail.ptx]
 *
 * Read read_all() together with the kernel's while loop: each slot has one writer at a time.  Then count_polls(): the
 * protocol is correct, but all waiting threads poll the tail. */
#include <stdio.h>

#include "core/clock.h"
#include "lesson.h"

enum { EACH = 64, ALL = EACH * THREADS };

static bool read_message(const struct ring *ring, u64 position, struct slot *out)
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

/* Wait until every thread has polled a hundred times, without reading a message.  Every thread polls, because there are 8
 * slots and each thread has 64 messages. */
static void count_polls(const struct polls *polls)
{
	u64 total, fewest = 0;

	for (uint64_t since = 0; fewest < 100; lesson_wait(&since, "every thread to poll"))
		fewest = lesson_polls(polls, &total).fewest;
	printf("%u of %d threads poll over the bus: %llu polls so far\n", lesson_polls(polls, &total).n_threads, THREADS, total);
}

/* Read all messages.  Returns the number of messages out of order. */
static u64 read_all(struct ring *ring)
{
	u64 of_thread[THREADS] = { 0 }, n_bad = 0;
	struct slot m;

	for (u64 position = 0; position < ALL; position++) {
		for (uint64_t since = 0; !read_message(ring, position, &m);)
			lesson_wait(&since, "the next message");
		n_bad += m.word[1] != position || (m.word[0] & 0xffffffff) != of_thread[m.word[0] >> 32]++;
		/* This release synchronises with the kernel's acquire.  A kernel thread writes the slot only after it
		 * has read this tail. */
		__atomic_store_n(&ring->tail, position + 1, __ATOMIC_RELEASE);
	}
	return n_bad;
}

int main(int argc, char **argv)
{
	struct lesson l;
	struct ring *ring;
	struct polls *polls;
	CUdeviceptr next;
	uint64_t start;
	u64 n = EACH, n_bad, before, total;

	lesson_begin(&l, argc > 1 ? argv[1] : "4_tail.ptx");
	ring = lesson_host(&l, sizeof *ring);
	polls = lesson_host(&l, sizeof *polls);
	next = lesson_device(&l, sizeof(u64));
	puts("-- 16 threads, 8 slots; the CPU does not read");
	lesson_start(&l, "push", THREADS, (struct lesson_arg[]){ ARG(ring), ARG(next), ARG(polls), ARG(n) }, 4);
	count_polls(polls);
	puts("-- now the CPU reads");
	lesson_polls(polls, &before);
	start = gpul_clock_ns();
	n_bad = read_all(ring);
	lesson_join(&l);
	lesson_polls(polls, &total);
	printf("%d sent, %d read, %llu out of order; %.1f polls and %.2f us for each\n", ALL, ALL, n_bad, (double)(total - before) / ALL,
	       (double)(gpul_clock_ns() - start) / 1e3 / ALL);
	lesson_end(&l);
	return n_bad != 0;
}
