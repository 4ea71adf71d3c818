/* 2_slot.c — one slot with a lap bit in both words: the reader never accepts a torn message.
 *
 *     2_slot [2_slot.ptx]
 *
 * Read is_complete(), the main idea.  slow_motion() shows that it works for one GPU thread; two_threads() and crowd()
 * show that it fails for several threads. */
#include <stdio.h>
#include <string.h>

#include "lesson.h"

static struct slot poll_slot(const struct one_slot *box)
{
	struct slot seen;

	seen.word[0] = __atomic_load_n(&box->slot.word[0], __ATOMIC_ACQUIRE);
	seen.word[1] = __atomic_load_n(&box->slot.word[1], __ATOMIC_ACQUIRE);
	return seen;
}

/* A message is complete when BOTH words have the bit of the lap that the reader awaits. */
static bool is_complete(const struct slot *seen, u64 lap)
{
	return (seen->word[0] & LAP) == lap && (seen->word[1] & LAP) == lap;
}

static void print_word(u64 word)
{
	printf("%3llu  lap %llu ", word & PAYLOAD, word >> LAP_BIT);
}

/* Print the slot at each poll and the reader's action.  After each message the reader awaits the other lap. */
static void read_slowly(struct one_slot *box, u64 n_polls)
{
	struct slot seen, last = { { 0 } };
	u64 lap = LAP;

	printf("  word 0     word 1     the reader\n");
	for (u64 polls = 1; polls <= n_polls; polls++) {
		for (uint64_t since = 0; seen = poll_slot(box), !memcmp(&seen, &last, sizeof seen);)
			lesson_wait(&since, "the GPU's next store");
		print_word(seen.word[0]);
		print_word(seen.word[1]);
		if (!is_complete(&seen, lap)) {
			printf("  waits for lap %llu in both words\n", lap >> LAP_BIT);
		} else {
			if (seen.word[0] == seen.word[1])
				printf("  reads message %llu\n", seen.word[0] & PAYLOAD);
			else
				printf("  reads a message that no thread sent: word 0 is from thread %llu, word 1 from thread %llu\n",
				       seen.word[0] & PAYLOAD, seen.word[1] & PAYLOAD);
			lap ^= LAP;
		}
		last = seen;
		__atomic_store_n(&box->polls, polls, __ATOMIC_RELEASE);
	}
}

static void slow_motion(struct lesson *l, struct one_slot *box)
{
	u64 n = 3;

	memset(box, 0, sizeof *box);
	lesson_start(l, "slow", 1, (struct lesson_arg[]){ ARG(box), ARG(n) }, 2);
	read_slowly(box, 2 * n);
	lesson_join(l);
}

/* The stores alternate: word 0 of thread 0, word 0 of thread 1, word 1 of thread 0, word 1 of thread 1. */
static void two_threads(struct lesson *l, struct one_slot *box)
{
	memset(box, 0, sizeof *box);
	lesson_start(l, "two", 2, (struct lesson_arg[]){ ARG(box) }, 1);
	read_slowly(box, 4);
	lesson_join(l);
}

/* The threads do not wait for the CPU, which polls once after all stores. */
static void crowd(struct lesson *l, struct one_slot *box)
{
	const unsigned n = 8;
	struct slot seen;
	unsigned n_complete;

	memset(box, 0, sizeof *box);
	lesson_start(l, "crowd", n, (struct lesson_arg[]){ ARG(box) }, 1);
	lesson_join(l);
	seen = poll_slot(box);
	n_complete = seen.word[0] == seen.word[1]; /* both words are from the same thread */
	printf("%u threads sent one message each, but the slot contains %u complete message: at least %u were overwritten, without any error\n",
	       n, n_complete, n - 1);
}

int main(int argc, char **argv)
{
	struct lesson l;
	struct one_slot *box;

	lesson_begin(&l, argc > 1 ? argv[1] : "2_slot.ptx");
	box = lesson_host(&l, sizeof *box);
	puts("-- slow motion, one thread: the reader never accepts half a message");
	slow_motion(&l, box);
	puts("-- slow motion, two threads, each with one message");
	two_threads(&l, box);
	puts("-- eight threads at full speed");
	crowd(&l, box);
	lesson_end(&l);
	return 0;
}
