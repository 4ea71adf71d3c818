/* test_lifeline.c — a process dies in each way that there is, and another one reads so in the word that it held. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lifeline.h"

static uint32_t *word;  /* shared with children */

static int share_a_word(void **state)
{
	(void)state;
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return word == MAP_FAILED;
}

static int drop_it(void **state)
{
	(void)state;
	return munmap(word, 4096);
}

/* A child that holds the word, and then does as it is told.  Returns when it holds it, or has held it. */
static pid_t holder(void then(void))
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		gpul_lifeline *l;

		if (gpul_lifeline_hold(word, &l, NULL))
			_exit(99);
		then();
		_exit(98);
	}
	while (gpul_lifeline_read(word) == GPUL_LIFE_NONE)  /* it may have died already */
		usleep(100);
	return child;
}

static void expect_lost(pid_t child)
{
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_LOST);
	gpul_lifeline_forget(word);
	assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_NONE);
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

static void crash(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void leave(void)
{
	_exit(0);
}

static void become_another_program(void)
{
	execl("/bin/true", "true", (char *)NULL);
}

static void a_process_that_is_killed_loses_its_word(void **state)
{
	(void)state;
	pid_t child = holder(sleep_on);

	kill(child, SIGKILL);
	expect_lost(child);
}

static void so_does_one_that_crashes_or_leaves_or_becomes_another_program(void **state)
{
	(void)state;
	expect_lost(holder(crash));
	expect_lost(holder(leave));
	expect_lost(holder(become_another_program));
}

static void a_stopped_process_holds_it_still(void **state)
{
	(void)state;
	pid_t child = holder(sleep_on);
	int status;

	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_HELD);
	gpul_lifeline_forget(word);
	assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_HELD);
	kill(child, SIGKILL);
	expect_lost(child);
}

static void who_lets_go_leaves_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		gpul_lifeline *l = NULL;

		assert_int_equal(gpul_lifeline_hold(word, &l, NULL), GPUL_OK);
		assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_HELD);
		gpul_lifeline_let_go(l);
		assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_NONE);
	}
	gpul_lifeline_let_go(NULL);
}

/* The death is told before the dead one's memory is taken down, and so before its descriptors are closed. */
static void it_is_known_while_the_dead_ones_memory_is_still_there(void **state)
{
	enum { BYTES = 64 << 20 };
	int ends[2], n;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();

	if (child == 0) {
		gpul_lifeline *l;
		volatile char *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		close(ends[0]);
		for (size_t i = 0; i < BYTES; i += 4096)
			bytes[i] = 1;
		if (gpul_lifeline_hold(word, &l, NULL))
			_exit(99);
		sleep_on();
	}
	close(ends[1]);
	while (gpul_lifeline_read(word) == GPUL_LIFE_NONE)  /* it may have died already */
		usleep(100);
	kill(child, SIGKILL);
	n = (int)read(ends[0], &byte, 1);  /* its end is closed */
	assert_int_equal(n, 0);
	assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_LOST);
	close(ends[0]);
	expect_lost(child);
}

/* Another one has taken the place: its mark is not this one's to remove. */
static void a_word_that_somebody_else_wrote_is_left_alone(void **state)
{
	gpul_lifeline *l = NULL;

	(void)state;
	assert_int_equal(gpul_lifeline_hold(word, &l, NULL), GPUL_OK);
	for (uint32_t lie = 0xffffffff; lie; lie >>= 4) {
		*word = lie;
		assert_in_range(gpul_lifeline_read(word), GPUL_LIFE_NONE, GPUL_LIFE_LOST);
	}
	*word = 4711;
	gpul_lifeline_let_go(l);
	assert_int_equal(*word, 4711);
	*word = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_is_killed_loses_its_word),
		cmocka_unit_test(so_does_one_that_crashes_or_leaves_or_becomes_another_program),
		cmocka_unit_test(a_stopped_process_holds_it_still),
		cmocka_unit_test(who_lets_go_leaves_nothing),
		cmocka_unit_test(it_is_known_while_the_dead_ones_memory_is_still_there),
		cmocka_unit_test(a_word_that_somebody_else_wrote_is_left_alone),
	};

	return cmocka_run_group_tests(tests, share_a_word, drop_it);
}
