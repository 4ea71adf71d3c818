/* test_lifeline.c — a process marks a shared word as held and ends in different ways; another process reads the word. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/thread/lifeline.h"

static uint32_t *word; /* memory that child processes share */

static int map_shared_word(void **state)
{
	(void)state;
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return word == MAP_FAILED;
}

static int unmap_word(void **state)
{
	(void)state;
	return munmap(word, 4096);
}

/* Start a child that sets the word to HELD and then calls then().  Returns when the word is no longer NONE. */
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
	while (gpul_lifeline_read(word) == GPUL_LIFE_NONE) /* until HELD, or LOST if the child has already ended */
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

static void a_killed_process_leaves_its_word_lost(void **state)
{
	(void)state;
	pid_t child = holder(sleep_on);

	kill(child, SIGKILL);
	expect_lost(child);
}

static void a_crash_an_exit_and_an_exec_leave_the_word_lost(void **state)
{
	(void)state;
	expect_lost(holder(crash));
	expect_lost(holder(leave));
	expect_lost(holder(become_another_program));
}

static void a_stopped_process_still_holds_its_word(void **state)
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

static void letting_go_resets_the_word(void **state)
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

/* The word is LOST before the memory of the ended process is freed, and therefore before its descriptors are closed. */
static void the_word_is_lost_before_the_memory_is_freed(void **state)
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
	while (gpul_lifeline_read(word) == GPUL_LIFE_NONE) /* until HELD, or LOST if the child has already ended */
		usleep(100);
	kill(child, SIGKILL);
	n = (int)read(ends[0], &byte, 1); /* end of file: the child's end is closed */
	assert_int_equal(n, 0);
	assert_int_equal(gpul_lifeline_read(word), GPUL_LIFE_LOST);
	close(ends[0]);
	expect_lost(child);
}

/* Another process holds the word now, so this process must not reset it. */
static void letting_go_keeps_the_value_of_another_holder(void **state)
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
		cmocka_unit_test(a_killed_process_leaves_its_word_lost),
		cmocka_unit_test(a_crash_an_exit_and_an_exec_leave_the_word_lost),
		cmocka_unit_test(a_stopped_process_still_holds_its_word),
		cmocka_unit_test(letting_go_resets_the_word),
		cmocka_unit_test(the_word_is_lost_before_the_memory_is_freed),
		cmocka_unit_test(letting_go_keeps_the_value_of_another_holder),
	};

	return cmocka_run_group_tests(tests, map_shared_word, unmap_word);
}
