/* test_thread.c — threads of the library have their own signal mask, floating-point environment and name. */
#include "tests/support/cmocka.h"
#include <signal.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "core/thread/thread.h"

struct seen {
	sigset_t blocked;
	int rounding;
	char name[16];
	float sum, product;
};

static volatile float one = 1, little = 0x1p-30f, subnormal = 0x1p-140f; /* volatile: the compiler must not compute results */

static void *look(void *argument)
{
	struct seen *s = argument;

	pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
	pthread_getname_np(pthread_self(), s->name, sizeof s->name);
	s->rounding = fegetround();
	s->sum = one + little;
	s->product = one * subnormal;
	return s;
}

/* Round upward, and treat subnormal numbers as 0, as start-up code of -ffast-math does. */
static void change_environment(fenv_t *before)
{
	fegetenv(before);
	fesetround(FE_UPWARD);
#ifdef __x86_64__
	_mm_setcsr(_mm_getcsr() | 0x8040);
	assert_true(one * subnormal == 0);
#endif
	assert_true(one + little > 1);
}

static void a_thread_inherits_neither_signals_nor_environment(void **state)
{
	struct seen s = { .rounding = -1 };
	sigset_t before = { 0 }, after = { 0 }; /* the kernel fills only the signals that exist */
	pthread_t thread;
	void *result;
	fenv_t env;

	(void)state;
	change_environment(&env);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(gpul_thread_start(&thread, NULL, "gpul-a-name-that-is-too-long", look, &s), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(fegetround(), FE_UPWARD); /* the caller's own environment and signals are unchanged */
	fesetenv(&env);
	assert_memory_equal(&before, &after, sizeof before);
	assert_ptr_equal(result, &s);
	assert_string_equal(s.name, "gpul-a-name-tha");
	assert_int_equal(s.rounding, FE_TONEAREST);
	assert_true(s.sum == 1);
	assert_true(s.product == 0x1p-140f);
	for (int n = 1; n <= 31; n++)
		assert_int_equal(sigismember(&s.blocked, n), n != SIGKILL && n != SIGSTOP && n != SIGSEGV && n != SIGBUS);
	assert_int_equal(sigismember(&s.blocked, SIGRTMIN), 1);
}

static void the_default_environment_ends_with_the_callers(void **state)
{
	fenv_t env, callers;

	(void)state;
	change_environment(&env);
	gpul_float_default(&callers);
	assert_int_equal(fegetround(), FE_TONEAREST);
	assert_true(one + little == 1);
	assert_true(one * subnormal == 0x1p-140f);
	gpul_float_restore(&callers);
	assert_true(one + little > 1);
	fesetenv(&env);
}

static void a_thread_that_cannot_be_created_is_an_error(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;
	struct seen s;
	cpu_set_t none;

	(void)state;
	CPU_ZERO(&none);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setaffinity_np(&attr, sizeof none, &none), 0);
	assert_int_not_equal(gpul_thread_start(&thread, &attr, "gpul-none", look, &s), 0);
	pthread_attr_destroy(&attr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_inherits_neither_signals_nor_environment),
		cmocka_unit_test(the_default_environment_ends_with_the_callers),
		cmocka_unit_test(a_thread_that_cannot_be_created_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
