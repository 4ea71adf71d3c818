/* test_run_driver.c — gpuload run on a fake driver whose calls fail on request. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/run/cli_run.h"
#include "tests/fake/fake_driver.h"

static uint32_t last_grid; /* the grid's first dimension in the last run */

/* Run a command line on drv, and release everything afterwards. */
static gpul_status run(const gpul_driver *drv, const char **words, gpul_error *err)
{
	struct cli_args args;
	struct run r = { .drv = drv };
	size_t n = 0;
	gpul_status st;

	while (words[n])
		n++;
	assert_int_equal(cli_parse(cli_run.opts, (char *const *)words, n, &args, err), GPUL_OK);
	st = run_request_make(&args, NULL, &r.ask, err);
	if (st == GPUL_OK)
		st = run_work(&r, err);
	last_grid = r.config.grid[0];
	run_clean_up(&r);
	cli_args_free(&args);
	return st;
}
#define WORDS(...) ((const char *[]){ __VA_ARGS__, NULL })
#define VECADD     "tests/cli/ptx/vecadd.ptx"

static const char **vecadd(void)
{
	static const char *words[] = { VECADD, "f64[8]=iota", "f64[8]=ones", "out:f64[8]", "i32=8", "--repeat",
				       "3",    "--expect",    "0=iota",      "--timeout",  "10",    NULL };

	return words;
}

static void releases_everything_whichever_driver_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) { /* fail the 1st driver call, then the 2nd, ... */
		gpul_error err = { 0 };

		if (run(fake_driver(n), vecadd(), &err) == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1); /* every call has failed once */
			break;
		}
		assert_int_equal(fake_alive(), 0);
		if (err.native != CUDA_ERROR_OUT_OF_MEMORY)
			fail_msg("call %d: %s", n, err.text);
		assert_true(n < 1000);
	}
	assert_int_equal(fake_alive(), 0);
}

static int n_launches;
static double first_inputs[8];

/* The effect of the fake driver's kernel: c = a + b. */
static void add(void **params)
{
	double *a = *(double **)params[0], *b = *(double **)params[1], *c = *(double **)params[2];

	first_inputs[n_launches++] = c[0];
	for (int i = 0; i < *(int *)params[3]; i++)
		c[i] = a[i] + b[i];
}

static void repeats_the_launch_and_restores_written_buffers(void **state)
{
	gpul_error err = { 0 };
	const gpul_driver *drv = fake_driver(0);

	(void)state;
	n_launches = 0;
	fake_behave()->launched = add;
	if (run(drv, WORDS(VECADD, "f64[8]=iota", "f64[8]=ones", "inout:f64[8]=-1", "i32=8", "--repeat", "4", "--expect", "2=iota:1"),
		&err))
		fail_msg("%s", err.text);
	assert_int_equal(n_launches, 4);
	for (int i = 0; i < 4; i++)
		assert_true(first_inputs[i] == -1.0);
	assert_int_equal(fake_alive(), 0);
}

static void invents_arguments_if_none_are_given(void **state)
{
	gpul_error err = { 0 };
	const gpul_driver *drv = fake_driver(0);

	(void)state;
	n_launches = 0;
	fake_behave()->launched = add;
	if (run(drv, WORDS(VECADD, "--expect", "2=iota:0:2", "--json"), &err))
		fail_msg("%s", err.text);
	assert_int_equal(n_launches, 1);
	assert_int_equal(fake_alive(), 0);
}

static void the_grid_for_a_huge_count_is_the_largest_grid(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	if (run(fake_driver(0), WORDS("tests/corpus/ptx/hist.sm_90.ptx", "u8[8]=iota", "inout:u32[256]=zeros", "u64=0xffffffffffffffff"),
		&err))
		fail_msg("%s", err.text);
	assert_int_equal(last_grid, INT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_everything_whichever_driver_call_fails),
		cmocka_unit_test(the_grid_for_a_huge_count_is_the_largest_grid),
		cmocka_unit_test(repeats_the_launch_and_restores_written_buffers),
		cmocka_unit_test(invents_arguments_if_none_are_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
