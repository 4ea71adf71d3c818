/* test_clock.c — the clocks that kernels read, even if the system's wall clock is set meanwhile. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t step_s; /* seconds by which the wall clock has been set forward */

/* This definition replaces the C library's function in this program. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, clock, t);

	if (clock == CLOCK_REALTIME)
		t->tv_sec += (time_t)step_s;
	return r;
}

static uint64_t read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char reads[] = PTX_HEADER KERNEL_OUT(
	"k") "mov.u64 %d1, %globaltimer; mov.u32 %r1, %globaltimer_lo; mov.u32 %r2, %globaltimer_hi;\n"
	     "mov.u64 %d2, %clock64; mov.u32 %r3, %clock; mov.u32 %r4, %clock_hi;\n"
	     "mov.b64 %d3, {%r1, %r2}; mov.b64 %d4, {%r3, %r4};\n"
	     "st.global.v2.u64 [%o], {%d1, %d3}; st.global.v2.u64 [%o+16], {%d2, %d4}; ret; }";

static bool within(uint64_t t, uint64_t from, uint64_t to_ns, uint64_t tolerance)
{
	return t + tolerance >= from && t <= to_ns + tolerance;
}

static void setting_the_wall_clock_does_not_change_the_globaltimer(void **state)
{
	static const int64_t steps[] = { 0, 7200, -86400 };
	const uint64_t second = 1000000000;

	(void)state;
	step_s = 0;
	for (unsigned k = 0; k < sizeof steps / sizeof steps[0]; k++) {
		/* Create a new machine, as a program does that creates several contexts one after the other. */
		struct rig *r = rig_open_with(reads, 1, 0);
		uint64_t *out = rig_memory(r, 32), wall, clock;

		for (unsigned again = 0; again < 2; again++, step_s = steps[k]) {
			wall = read_ns(CLOCK_REALTIME) - (uint64_t)step_s * second;
			clock = read_ns(CLOCK_MONOTONIC);
			rig_expect_ok(r, "k", 1, 1, out, 0);
			/* The tolerance of one second allows for the gradual correction of the wall clock. */
			assert_true(within(out[0], wall, read_ns(CLOCK_REALTIME) - (uint64_t)step_s * second, second));
			assert_true(out[1] >= out[0] && out[1] - out[0] < 5 * second);
			assert_true(within(out[2], clock, read_ns(CLOCK_MONOTONIC), 0));
			assert_true(out[3] >= out[2] && out[3] - out[2] < 5 * second);
		}
		rig_close(r);
	}
}

static const char sleeps[] = PTX_HEADER KERNEL_OUT(
	"converged") "mov.u64 %d1, %clock64; nanosleep.u32 900000; nanosleep.u32 100; mov.u64 %d2, %clock64;\n"
		     "sub.u64 %d3, %d2, %d1; cvt.u32.u64 %r2, %d3; st.global.u32 [%mine], %r2; ret; }\n"
	/* odd lanes sleep longer, in a branch of their own; the even lanes sleep at the same time */
	KERNEL_OUT("divergent") "mov.u64 %d1, %clock64; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; @%p1 bra ODD;\n"
				"nanosleep.u32 2000; bra END;\nODD: nanosleep.u32 4000000000;\nEND: mov.u64 %d2, %clock64;\n"
				"sub.u64 %d3, %d2, %d1; cvt.u32.u64 %r2, %d3; st.global.u32 [%mine], %r2; ret; }\n";

static void a_sleep_lasts_as_long_as_its_operand_but_at_most_a_millisecond(void **state)
{
	struct rig *r = rig_open_with(sleeps, 1, 0);
	uint32_t *out = rig_memory(r, 64 * sizeof *out);

	(void)state;
	rig_expect_ok(r, "converged", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_true(out[n] >= 900000);
	for (unsigned again = 0; again < 3; again++) {
		uint32_t most = 0;

		rig_expect_ok(r, "divergent", 1, 64, out, 0);
		for (unsigned n = 0; n < 64; n++)
			most = out[n] > most ? out[n] : most;
		assert_true(most >= 2000);
		assert_true(most < 3000000000U);
	}
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_lasts_as_long_as_its_operand_but_at_most_a_millisecond),
		cmocka_unit_test(setting_the_wall_clock_does_not_change_the_globaltimer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
