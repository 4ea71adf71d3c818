/* test_mmap_sum.c — gpuload mmap-sum reports a wrong sum with its process. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/sum/mmap_sum.h"

static struct sum number(double f)
{
	struct sum s = { .type = GPUL_F64 };

	memcpy(s.bytes, &f, sizeof f);
	return s;
}

static struct mmap_sum_team team_of_three(void)
{
	struct mmap_sum_team team = { .n = 3 };

	for (unsigned i = 0; i < team.n; i++) {
		team.member[i].pid = 100 + (pid_t)i;
		team.member[i].report = (struct mmap_sum_report){ .gpu = number(0.1), .cpu = number(0.1) };
	}
	return team;
}

static void accepts_equal_sums(void **state)
{
	struct mmap_sum_request r = { .n = 3, .type = GPUL_F64 };
	struct mmap_sum_team team = team_of_three();

	(void)state;
	assert_int_equal(mmap_sum_print(&r, NULL, &team, NULL), GPUL_OK);
}

static void one_wrong_bit_fails_the_comparison(void **state)
{
	struct mmap_sum_request r = { .n = 3, .type = GPUL_F64 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct mmap_sum_team team = team_of_three();
		gpul_error err = { 0 };

		team.member[i].report.gpu.bytes[0] ^= 1;
		assert_int_equal(mmap_sum_print(&r, NULL, &team, &err), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, i == 0   ? "GPU of process [master]: 0.10000000000000002"
						 : i == 1 ? "GPU of process [101]: 0.10000000000000002"
							  : "GPU of process [102]: 0.10000000000000002"));
		assert_non_null(strstr(err.text, "CPU of the master: 0.1"));
	}
}

static void wrong_cpu_sum_fails_the_comparison(void **state)
{
	struct mmap_sum_request r = { .n = 3, .type = GPUL_F64 };
	struct mmap_sum_team team = team_of_three();
	gpul_error err = { 0 };

	(void)state;
	team.member[2].report.cpu = number(7);
	assert_int_equal(mmap_sum_print(&r, NULL, &team, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "CPU of process [102]: 7, CPU of the master: 0.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_equal_sums),
		cmocka_unit_test(one_wrong_bit_fails_the_comparison),
		cmocka_unit_test(wrong_cpu_sum_fails_the_comparison),
	};

	return cmocka_run_group_tests_name("cli/mmap_sum", tests, NULL, NULL);
}
