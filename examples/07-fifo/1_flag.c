/* 1_flag.c — a flag in mapped memory: the GPU writes the two words of message m, then sets a flag to m.
 *
 *     1_flag [1_flag.ptx]
 *
 * Read poll_mailbox() and slow_motion(), which shows what the CPU reads between two stores; then full_speed(). */
#include <stdio.h>
#include <string.h>

#include "lesson.h"

/* Read the flag, then the words.  The acquire synchronises with the kernel's release. */
static struct mailbox poll_mailbox(const struct mailbox *box)
{
	struct mailbox seen = { .flag = __atomic_load_n(&box->flag, __ATOMIC_ACQUIRE) };

	seen.word[0] = __atomic_load_n(&box->word[0], __ATOMIC_RELAXED);
	seen.word[1] = __atomic_load_n(&box->word[1], __ATOMIC_RELAXED);
	return seen;
}

/* Both words of a message contain its number, so that the lesson can detect an error.  Real messages do not. */
static bool is_torn(const struct mailbox *seen)
{
	return seen->word[0] != seen->word[1];
}

static bool is_whole(const struct mailbox *seen)
{
	return !is_torn(seen) && seen->word[0] == seen->flag;
}

static void print_mailbox(const struct mailbox *seen)
{
	printf("%6llu %8llu %8llu   ", seen->flag, seen->word[0], seen->word[1]);
	if (seen->flag == 0)
		puts("no message");
	else if (is_whole(seen))
		printf("message %llu\n", seen->flag);
	else if (is_torn(seen))
		printf("torn: word 0 is from message %llu, word 1 from message %llu\n", seen->word[0], seen->word[1]);
	else
		printf("wrong: the flag is %llu, but the words are from message %llu\n", seen->flag, seen->word[0]);
}

/* After each store, the GPU waits until the CPU has polled.  So the CPU reads every intermediate state. */
static void slow_motion(struct lesson *l, struct mailbox *box, u64 flag_first)
{
	u64 n = 2;
	struct mailbox seen, last = { 0 };

	memset(box, 0, sizeof *box);
	printf("  flag   word 0   word 1   result of the poll\n");
	lesson_start(l, "slow", 1, (struct lesson_arg[]){ ARG(box), ARG(n), ARG(flag_first) }, 3);
	for (u64 polls = 1; polls <= 3 * n; polls++) {
		for (uint64_t since = 0; seen = poll_mailbox(box), !memcmp(&seen, &last, sizeof seen);)
			lesson_wait(&since, "the GPU's next store");
		print_mailbox(&seen);
		last = seen;
		__atomic_store_n(&box->polls, polls, __ATOMIC_RELEASE);
	}
	lesson_join(l);
}

/* The GPU does not wait, so the number of errors depends on the relative speed of GPU and CPU. */
static void full_speed(struct lesson *l, struct mailbox *box)
{
	u64 n = 20000, n_whole = 0, n_torn = 0, n_wrong = 0, flag = 0;

	memset(box, 0, sizeof *box);
	lesson_start(l, "fast", 1, (struct lesson_arg[]){ ARG(box), ARG(n) }, 2);
	for (uint64_t since = 0; flag < n; lesson_wait(&since, "the last message")) {
		const struct mailbox seen = poll_mailbox(box);

		if (seen.flag == flag)
			continue;
		flag = seen.flag;
		n_whole += is_whole(&seen);
		n_torn += is_torn(&seen);
		n_wrong += !is_torn(&seen) && !is_whole(&seen);
	}
	lesson_join(l);
	printf("%llu messages: %llu whole, %llu torn, %llu with the words of another message, %llu missed\n", n, n_whole, n_torn, n_wrong,
	       n - n_whole - n_torn - n_wrong);
	puts("(missed: the GPU had sent the next message before the CPU polled again)");
}

int main(int argc, char **argv)
{
	struct lesson l;
	struct mailbox *box;

	lesson_begin(&l, argc > 1 ? argv[1] : "1_flag.ptx");
	box = lesson_host(&l, sizeof *box);
	puts("-- slow motion, stores without order: the flag arrives first");
	slow_motion(&l, box, 1);
	puts("-- slow motion, the flag is released after the words; then the GPU writes the next message");
	slow_motion(&l, box, 0);
	puts("-- the same order at full speed");
	full_speed(&l, box);
	lesson_end(&l);
	return 0;
}
