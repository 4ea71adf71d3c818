/* 1_flag.c — a flag in mapped memory: the GPU writes two words, then a flag that says "message m is there".
 *
 *     1_flag [1_flag.ptx]
 *
 * Read look() and slow_motion(): what does a CPU see that looks between two stores?  Then full_speed(). */
#include <stdio.h>
#include <string.h>

#include "lesson.h"

/* One look.  The acquire is the partner of the kernel's release: the words are read after the flag. */
static struct mailbox look(const struct mailbox *box)
{
	struct mailbox seen = { .flag = __atomic_load_n(&box->flag, __ATOMIC_ACQUIRE) };

	seen.word[0] = __atomic_load_n(&box->word[0], __ATOMIC_RELAXED);
	seen.word[1] = __atomic_load_n(&box->word[1], __ATOMIC_RELAXED);
	return seen;
}

/* Each message has its number in both words, so that we notice.  A real message has not. */
static bool is_torn(const struct mailbox *seen)
{
	return seen->word[0] != seen->word[1];
}

static bool is_whole(const struct mailbox *seen)
{
	return !is_torn(seen) && seen->word[0] == seen->flag;
}

static void tell(const struct mailbox *seen)
{
	printf("%6llu %8llu %8llu   ", seen->flag, seen->word[0], seen->word[1]);
	if (seen->flag == 0)
		puts("nothing yet");
	else if (is_whole(seen))
		printf("message %llu\n", seen->flag);
	else if (is_torn(seen))
		printf("torn: word 0 is of message %llu, word 1 of message %llu\n", seen->word[0], seen->word[1]);
	else
		printf("wrong: the flag says %llu, the words are of message %llu\n", seen->flag, seen->word[0]);
}

/* The GPU stops after each store until the CPU has looked: a reader that comes just then sees just that. */
static void slow_motion(struct lesson *l, struct mailbox *box, u64 flag_first)
{
	u64 n = 2;
	struct mailbox seen, last = { 0 };

	memset(box, 0, sizeof *box);
	printf("  flag   word 0   word 1   what a reader takes for the message that the flag names\n");
	lesson_start(l, "slow", 1, (struct lesson_arg[]){ ARG(box), ARG(n), ARG(flag_first) }, 3);
	for (u64 looks = 1; looks <= 3 * n; looks++) {
		for (uint64_t since = 0; seen = look(box), !memcmp(&seen, &last, sizeof seen);)
			lesson_wait(&since, "the GPU's next store");
		tell(&seen);
		last = seen;
		__atomic_store_n(&box->looks, looks, __ATOMIC_RELEASE);
	}
	lesson_join(l);
}

/* How often that happens when nobody waits for anybody is chance. */
static void full_speed(struct lesson *l, struct mailbox *box)
{
	u64 n = 20000, n_whole = 0, n_torn = 0, n_wrong = 0, flag = 0;

	memset(box, 0, sizeof *box);
	lesson_start(l, "fast", 1, (struct lesson_arg[]){ ARG(box), ARG(n) }, 2);
	for (uint64_t since = 0; flag < n; lesson_wait(&since, "the last message")) {
		const struct mailbox seen = look(box);

		if (seen.flag == flag)
			continue;
		flag = seen.flag;
		n_whole += is_whole(&seen);
		n_torn += is_torn(&seen);
		n_wrong += !is_torn(&seen) && !is_whole(&seen);
	}
	lesson_join(l);
	printf("of %llu messages: %llu whole, %llu torn, %llu of another message, %llu never seen\n", n, n_whole, n_torn,
	       n_wrong, n - n_whole - n_torn - n_wrong);
}

int main(int argc, char **argv)
{
	struct lesson l;
	struct mailbox *box;

	lesson_begin(&l, argc > 1 ? argv[1] : "1_flag.ptx");
	box = lesson_host(&l, sizeof *box);
	puts("-- slow motion, the stores unordered: here the flag arrives first");
	slow_motion(&l, box, 1);
	puts("-- slow motion, the flag released after the words; but the GPU goes on to the next message");
	slow_motion(&l, box, 0);
	puts("-- the same at full speed");
	full_speed(&l, box);
	lesson_end(&l);
	return 0;
}
