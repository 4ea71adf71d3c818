/* test_fifo_clock.c — converting GPU times to CPU times: from synthetic samples, and with the driver's clock. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/cmocka.h"
#include "cli/fifo/clock/fifo_clock.h"
#include "core/clock.h"
#include "driver/context.h"
#include "tests/fake/fake_runtime.h"

/* ---- synthetic clocks ---------------------------------------------------------------------------------------- */

enum { N = 400 };
static const uint64_t CPU_0 = 12345678901234, GPU_0 = 1763668800000000000; /* GPU clocks count from 1970 */

/* A GPU clock that is faster than the CPU clock by ppm parts per million, and changes in steps of step_ns. */
struct clocks {
	double ppm;
	uint64_t step_ns;
};

static uint64_t gpu_at(const struct clocks *c, double past_ns)
{
	uint64_t exact = GPU_0 + (uint64_t)llround(past_ns * (1 + c->ppm * 1e-6));

	return exact - exact % c->step_ns;
}

/* Make samples with round trips of 2 us and more, in two bursts one second apart; the GPU reads its clock at a random
 * time within the round trip. */
static void make_samples(const struct clocks *c, struct fifo_clock_sample *samples)
{
	uint64_t seed = 88172645463325252;

	for (int i = 0; i < N; i++) {
		double start = 1e4 * i + (i < N / 2 ? 0 : 1e9), trip;

		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		trip = 2000 + (double)(seed >> 20 & 4095);
		samples[i] = (struct fifo_clock_sample){
			.before_ns = CPU_0 + (uint64_t)start,
			.after_ns = CPU_0 + (uint64_t)(start + trip),
			.gpu_ns = gpu_at(c, start + trip * (double)(seed & 1023) / 1023),
		};
	}
}

static void a_converted_time_is_within_the_bound(void **state)
{
	static const struct clocks clocks[] = { { 0, 1 }, { 0, 32 }, { 40, 32 }, { -100, 1000 }, { 5, 1024 } };
	struct fifo_clock_sample samples[N];

	(void)state;
	for (size_t k = 0; k < sizeof clocks / sizeof *clocks; k++) {
		struct fifo_clock_relation r;
		uint64_t step = clocks[k].step_ns;

		make_samples(&clocks[k], samples);
		assert_int_equal(fifo_clock_relate(samples, N, step, &r, NULL), GPUL_OK);
		assert_in_range(r.shortest_ns, 2000, 2100);
		assert_true(r.bound_ns >= 1000 && r.bound_ns < 1200 + (double)step);
		assert_true(fabs(r.drift * 1e6 + clocks[k].ppm) < 4); /* an error of 2 us in a second is 2 ppm */
		for (double past = 0; past < 1e9; past += 1e7) {
			double got = (double)(int64_t)(fifo_clock_cpu_ns(&r, gpu_at(&clocks[k], past)) - CPU_0);

			assert_true(fabs(got - past) <= r.bound_ns + (double)step);
		}
	}
}

/* The first samples are taken slowly, because the machine is busy, so most of the time has passed before the measurement begins. */
static void a_slow_burst_before_a_short_measurement_does_not_move_the_line(void **state)
{
	const struct clocks c = { 20, 1 };
	struct fifo_clock_sample samples[N];
	struct fifo_clock_relation r;
	double begin, end;

	(void)state;
	make_samples(&c, samples);
	for (int i = 0; i < N; i++) {
		const double start = i < N / 2 ? 1e6 * i : 1e6 * N / 2 + 2e6 + 1e4 * (i - N / 2), trip = i % 50 ? 90000 : 20000;

		samples[i] = (struct fifo_clock_sample){
			.before_ns = CPU_0 + (uint64_t)start,
			.after_ns = CPU_0 + (uint64_t)(start + trip),
			.gpu_ns = gpu_at(&c, start + (i / 50 % 2 ? trip : 0)),
		};
	}
	assert_int_equal(fifo_clock_relate(samples, N, 1, &r, NULL), GPUL_OK);
	assert_true(r.bound_ns < 10100);
	begin = (double)(samples[N / 2 - 1].after_ns - CPU_0);
	end = (double)(samples[N / 2].before_ns - CPU_0);
	for (double past = begin; past <= end; past += 1e5)
		assert_true(fabs((double)(int64_t)(fifo_clock_cpu_ns(&r, gpu_at(&c, past)) - CPU_0) - past) <= r.bound_ns + 1);
}

static void one_sample_is_enough_for_an_offset(void **state)
{
	struct fifo_clock_sample s = { .before_ns = 1000, .after_ns = 3000, .gpu_ns = 500000 };
	struct fifo_clock_relation r;

	(void)state;
	assert_int_equal(fifo_clock_relate(&s, 1, 1, &r, NULL), GPUL_OK);
	assert_int_equal(fifo_clock_cpu_ns(&r, 500000), 2000);
	assert_int_equal(fifo_clock_cpu_ns(&r, 500700), 2700);
	assert_int_equal(fifo_clock_cpu_ns(&r, 400000), 0); /* 0, because this time is before the CPU's clock began */
	assert_true(r.bound_ns >= 1000 && r.bound_ns <= 1001);
}

static void long_round_trips_are_ignored(void **state)
{
	const struct clocks c = { 0, 1 };
	struct fifo_clock_sample samples[N];
	struct fifo_clock_relation r;

	(void)state;
	make_samples(&c, samples);
	for (int i = 0; i < N; i += 2)
		samples[i].after_ns += 1000000; /* as if this thread had been preempted for 1 ms */
	assert_int_equal(fifo_clock_relate(samples, N, 1, &r, NULL), GPUL_OK);
	assert_true(r.bound_ns < 1200);
}

static void setting_a_clock_enlarges_the_bound(void **state)
{
	const struct clocks c = { 0, 1 };
	struct fifo_clock_sample samples[N];
	struct fifo_clock_relation r;

	(void)state;
	make_samples(&c, samples);
	samples[N / 4].gpu_ns += 50000;
	assert_int_equal(fifo_clock_relate(samples, N, 1, &r, NULL), GPUL_OK);
	assert_true(r.bound_ns > 40000 && r.bound_ns < 60000);
}

static void refuses_no_sample_and_a_sample_that_ends_before_it_begins(void **state)
{
	struct fifo_clock_sample s = { .before_ns = 2, .after_ns = 1, .gpu_ns = 5 };
	struct fifo_clock_relation r = { .step_ns = 77 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(fifo_clock_relate(NULL, 0, 1, &r, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "no sample of both clocks"));
	assert_int_equal(fifo_clock_relate(&s, 1, 1, &r, NULL), GPUL_EINVAL);
	assert_int_equal(r.step_ns, 77);
}

/* ---- the driver's clock ---------------------------------------------------------------------------------------- */

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* %globaltimer of the software driver is CLOCK_REALTIME unless that clock is set, so the test can check the relation. */
static void converted_time_of_the_drivers_clock_is_within_the_bound(void **state)
{
	struct fifo_clock_relation r;
	struct fifo_clock *c;
	const gpul_driver *drv;
	gpul_context context;

	(void)state;
	assert_int_equal(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL), GPUL_OK);
	assert_int_equal(gpul_context_open(drv, 0, &context, NULL), GPUL_OK);
	assert_int_equal(fifo_clock_create(drv, &c, NULL), GPUL_OK);
	assert_int_equal(fifo_clock_take(c, NULL, NULL), GPUL_OK);
	uint64_t before = gpul_clock_ns(), gpu = realtime_ns(), after = gpul_clock_ns();
	assert_int_equal(fifo_clock_take(c, NULL, NULL), GPUL_OK);
	assert_int_equal(fifo_clock_fit(c, &r, NULL), GPUL_OK);
	assert_true(r.step_ns > 0 && r.shortest_ns > 0);
	if (!strcmp(drv->name, "soft")) {
		uint64_t cpu = fifo_clock_cpu_ns(&r, gpu);

		assert_true((double)cpu + r.bound_ns >= (double)before && (double)cpu <= (double)after + r.bound_ns);
	}
	assert_int_equal(fifo_clock_fit(c, &r, NULL), GPUL_EINVAL); /* the first call has discarded the samples */
	fifo_clock_destroy(c);
	gpul_context_close(&context);
}

/* The fake driver's kernel writes all answers during the launch, before the CPU asks for them. */
static void answer_all(void **params)
{
	uint64_t *mailbox = *(uint64_t **)params[0];

	for (uint32_t i = 1; i <= *(uint32_t *)params[1]; i++)
		mailbox[8 + i] = realtime_ns();
	mailbox[8] = 1;
}

static void frees_everything_whichever_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv = fake_runtime_driver(n);
		struct fifo_clock *c = NULL;
		struct fifo_clock_relation r;
		gpul_status st;

		fake_behave()->launched = answer_all;
		fake_behave()->n_params = 3;
		st = fifo_clock_create(drv, &c, NULL);
		st = st ? st : fifo_clock_take(c, NULL, NULL);
		st = st ? st : fifo_clock_fit(c, &r, NULL);
		fifo_clock_destroy(c);
		assert_int_equal(fake_alive(), 0);
		if (st == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_converted_time_is_within_the_bound),
		cmocka_unit_test(a_slow_burst_before_a_short_measurement_does_not_move_the_line),
		cmocka_unit_test(one_sample_is_enough_for_an_offset),
		cmocka_unit_test(long_round_trips_are_ignored),
		cmocka_unit_test(setting_a_clock_enlarges_the_bound),
		cmocka_unit_test(refuses_no_sample_and_a_sample_that_ends_before_it_begins),
		cmocka_unit_test(converted_time_of_the_drivers_clock_is_within_the_bound),
		cmocka_unit_test(frees_everything_whichever_call_fails),
	};

	return cmocka_run_group_tests_name("cli/fifo_clock", tests, NULL, NULL);
}
