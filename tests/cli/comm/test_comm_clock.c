/* test_comm_clock.c — conversion of the clocks of several hosts to one clock: the error is always within the reported bound. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/comm/trace/comm_clock.h"

enum { BURST = 40, CHECKS = 24, N = 2 * BURST + CHECKS, SEEDS = 400 };
static const uint64_t HERE_0 = 1234567890123456;

/* A simulated clock of another host. */
struct clock {
	uint64_t there_0;       /* time of this clock when the local clock is HERE_0 */
	double ppm;             /* how much faster this clock is than the local clock, on average */
	double wander;          /* change of the rate, as a fraction: added in the first half of the run, subtracted in the second */
	double run_ns, jump_ns; /* jump_ns: the clock is ahead by this in the middle tenth of the run */
};

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
	return *seed;
}

/* Return a random number from 0 to 1. */
static double fraction(uint64_t *seed)
{
	return (double)(next_random(seed) >> 11) / (double)(1ull << 53);
}

static uint64_t there_at(const struct clock *c, double past_ns)
{
	const double half = c->run_ns / 2, bend = half - fabs(past_ns - half);
	const double jump = fabs(past_ns - half) < c->run_ns / 20 ? c->jump_ns : 0;

	return c->there_0 + (uint64_t)llround(past_ns * (1 + c->ppm * 1e-6) + c->wander * bend + jump);
}

/* Simulate a round trip that starts at a given time; its two directions take different times. */
static gpul_boot_stamp round_trip(const struct clock *c, double at, double least_ns, uint64_t *seed)
{
	const double there = least_ns * fraction(seed) + (fraction(seed) < 0.5 ? 0 : 300000 * fraction(seed));
	const double back = least_ns * fraction(seed) + (fraction(seed) < 0.5 ? 0 : 300000 * fraction(seed));

	return (gpul_boot_stamp){ .before_ns = HERE_0 + (uint64_t)at,
				  .after_ns = HERE_0 + (uint64_t)ceil(at + there + back) + 1,
				  .there_ns = there_at(c, at + there) };
}

/* Make the samples of a run: a burst, single checks, another burst.  Also returns the end of the first burst and the start of the last. */
static void make_stamps(const struct clock *c, uint64_t *seed, gpul_boot_stamp *stamps, double *first_end, double *last_begin)
{
	const double least_ns = 1000 + 50000 * fraction(seed), burst_ns = 200000 * BURST;

	for (int i = 0; i < N; i++) {
		const double at = i < BURST       ? 200000. * i
				  : i < N - BURST ? burst_ns + (c->run_ns - 2 * burst_ns) * (i - BURST + 0.5) / CHECKS
						  : c->run_ns - 200000. * (N - i);

		stamps[i] = round_trip(c, at, least_ns, seed);
	}
	*first_end = (double)(stamps[BURST - 1].after_ns - HERE_0);
	*last_begin = (double)(stamps[N - BURST].before_ns - HERE_0);
}

/* Return the largest error of a converted time between the two bursts. */
static double largest_error(const struct clock *c, const struct comm_host_clock *h, double from, double to)
{
	double largest = 0;

	for (int i = 0; i <= 200; i++) {
		const double past = from + (to - from) * i / 200;
		const uint64_t got = fifo_clock_cpu_ns(&h->relation, there_at(c, past));

		largest = fmax(largest, fabs((double)(int64_t)(got - HERE_0) - past));
	}
	return largest;
}

static void a_converted_time_is_within_the_bound_whatever_the_delays(void **state)
{
	gpul_boot_stamp stamps[N];
	double tightest = INFINITY;

	(void)state;
	for (uint64_t s = 1; s <= SEEDS; s++) {
		uint64_t seed = s * 0x9e3779b97f4a7c15u;
		const struct clock c = { .there_0 = next_random(&seed) >> 8,
					 .ppm = 400 * fraction(&seed) - 200,
					 .wander = COMM_CLOCK_WANDER * (2 * fraction(&seed) - 1),
					 .run_ns = 5e7 + 3e11 * pow(fraction(&seed), 6) };
		struct comm_host_clock h;
		double from, to, error;

		make_stamps(&c, &seed, stamps, &from, &to);
		assert_int_equal(comm_clock_relate(stamps, N, BURST, &h, NULL), GPUL_OK);
		error = largest_error(&c, &h, from, to);
		if (error > h.relation.bound_ns + 2)
			fail_msg("seed %llu: error %.0f ns, bound %.0f ns", (unsigned long long)s, error, h.relation.bound_ns);
		assert_true(fabs((double)(h.offset_ns - (int64_t)(HERE_0 - c.there_0))) <= h.relation.bound_ns + 201e-6 * 200000 * BURST);
		assert_true(fabs(h.relation.drift * 1e6 + c.ppm) <= h.drift_bound * 1e6 + 2.1);
		if (h.relation.bound_ns > 51000 + COMM_CLOCK_WANDER * c.run_ns / 2)
			fail_msg("seed %llu: bound %.0f ns, run %.0f ns, shortest round trip %llu ns", (unsigned long long)s,
				 h.relation.bound_ns, c.run_ns, (unsigned long long)h.relation.shortest_ns);
		tightest = fmin(tightest, h.relation.bound_ns - error);
	}
	assert_true(tightest < 500); /* the bound is not too large: in one case the error almost reaches it */
}

static void a_clock_that_is_set_during_the_run_enlarges_the_bound(void **state)
{
	struct clock c = { .there_0 = 42, .run_ns = 1e9 };
	gpul_boot_stamp stamps[N];
	struct comm_host_clock h;
	uint64_t seed = 7;
	double from, to;

	(void)state;
	make_stamps(&c, &seed, stamps, &from, &to);
	assert_int_equal(comm_clock_relate(stamps, N, BURST, &h, NULL), GPUL_OK);
	assert_true(h.relation.bound_ns < 60000);
	c.jump_ns = 5e6;
	make_stamps(&c, &seed, stamps, &from, &to);
	assert_int_equal(comm_clock_relate(stamps, N, BURST, &h, NULL), GPUL_OK);
	assert_true(h.relation.bound_ns >= 4.9e6);
	assert_true(largest_error(&c, &h, from, to) <= h.relation.bound_ns);
}

static void refuses_too_few_stamps_and_one_that_ends_before_it_begins(void **state)
{
	gpul_boot_stamp stamps[4] = { { 10, 20, 5 }, { 20, 30, 15 }, { 90, 80, 85 }, { 95, 70, 90 } };
	struct comm_host_clock h;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(comm_clock_relate(stamps, 3, 2, &h, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "3 round trips in bursts of 2"));
	assert_int_equal(comm_clock_relate(stamps, 4, 0, &h, NULL), GPUL_EINVAL);
	assert_int_equal(comm_clock_relate(stamps, 4, 2, &h, NULL), GPUL_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_converted_time_is_within_the_bound_whatever_the_delays),
		cmocka_unit_test(a_clock_that_is_set_during_the_run_enlarges_the_bound),
		cmocka_unit_test(refuses_too_few_stamps_and_one_that_ends_before_it_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
