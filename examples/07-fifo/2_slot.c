/* 2_slot.c — one slot whose two words both say in which lap they were written: nothing torn is ever taken.
 *
 *     2_slot [2_slot.ptx]
 *
 * Read is_there(): the whole idea.  slow_motion() shows it work for one GPU thread, two_threads() and crowd() show
 * what it does not solve. */
#include <stdio.h>
#include <string.h>

#include "lesson.h"

static struct slot look(const struct one_slot *box)
{
	struct slot seen;

	seen.word[0] = __atomic_load_n(&box->slot.word[0], __ATOMIC_ACQUIRE);
	seen.word[1] = __atomic_load_n(&box->slot.word[1], __ATOMIC_ACQUIRE);
	return seen;
}

/* A message is there when BOTH words are of the lap that the reader awaits. */
static bool is_there(const struct slot *seen, u64 lap)
{
	return (seen->word[0] & LAP) == lap && (seen->word[1] & LAP) == lap;
}

static void tell_word(u64 word)
{
	printf("%3llu  lap %llu ", word & PAYLOAD, word >> LAP_BIT);
}

/* A table of looks: what is in the slot, and what the reader does, who then awaits the other lap. */
static void read_slowly(struct one_slot *box, u64 n_looks)
{
	struct slot seen, last = { { 0 } };
	u64 lap = LAP;

	printf("  word 0     word 1     what the reader does\n");
	for (u64 looks = 1; looks <= n_looks; looks++) {
		for (uint64_t since = 0; seen = look(box), !memcmp(&seen, &last, sizeof seen);)
			lesson_wait(&since, "the GPU's next store");
		tell_word(seen.word[0]);
		tell_word(seen.word[1]);
		if (!is_there(&seen, lap)) {
			printf("  waits for lap %llu in both\n", lap >> LAP_BIT);
		} else {
			if (seen.word[0] == seen.word[1])
				printf("  takes message %llu\n", seen.word[0] & PAYLOAD);
			else
				printf("  takes a message that nobody sent: word 0 is thread %llu's, word 1 thread %llu's\n",
				       seen.word[0] & PAYLOAD, seen.word[1] & PAYLOAD);
			lap ^= LAP;
		}
		last = seen;
		__atomic_store_n(&box->looks, looks, __ATOMIC_RELEASE);
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

/* Thread 0 stores a word, then thread 1, then thread 0 its other one, then thread 1. */
static void two_threads(struct lesson *l, struct one_slot *box)
{
	memset(box, 0, sizeof *box);
	lesson_start(l, "two", 2, (struct lesson_arg[]){ ARG(box) }, 1);
	read_slowly(box, 4);
	lesson_join(l);
}

/* Nobody stops anybody: the CPU looks when all have stored. */
static void crowd(struct lesson *l, struct one_slot *box)
{
	const unsigned n = 8;
	struct slot seen;
	unsigned n_taken;

	memset(box, 0, sizeof *box);
	lesson_start(l, "crowd", n, (struct lesson_arg[]){ ARG(box) }, 1);
	lesson_join(l);
	seen = look(box);
	n_taken = seen.word[0] == seen.word[1];  /* of one thread; whose, and in which order they came, is chance */
	printf("%u threads sent one message each, %u is there: at least %u are lost, and nothing tells\n", n, n_taken,
	       n - 1);
}

int main(int argc, char **argv)
{
	struct lesson l;
	struct one_slot *box;

	lesson_begin(&l, argc > 1 ? argv[1] : "2_slot.ptx");
	box = lesson_host(&l, sizeof *box);
	puts("-- slow motion, one thread: no look sees half a message");
	slow_motion(&l, box);
	puts("-- slow motion, two threads with a message each");
	two_threads(&l, box);
	puts("-- eight threads at full speed");
	crowd(&l, box);
	lesson_end(&l);
	return 0;
}
