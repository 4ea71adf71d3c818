/* test_predict.c — compares the model's formulas with numbers computed by hand, and checks properties that hold for any parameters. */
#include <math.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "lab/predict/predict.h"

/* Costs that are easy to compute with.  Within a host: overhead 10 us, latency L = 3 us, gap g = 1 us, 1 us per 1000 bytes, steps of at
 * most 100,000 bytes; between hosts: L = 20 us, g = 2 us, 4 us per 1000 bytes. */
static gpul_comm_machine machine_of(uint32_t n_ranks, uint32_t ranks_per_host)
{
	gpul_comm_machine m = { .n_ranks = n_ranks, .ranks_per_host = ranks_per_host };
	gpul_error err = { 0 };

	for (int p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++)
		m.inside[p] = (gpul_comm_costs){ 10, 3, 1, 1e-3, 0, 1e5 };
	m.across[GPUL_COMM_SIMPLE] = (gpul_comm_costs){ 10, 20, 2, 4e-3, 0, 1e5 };
	assert_int_equal(gpul_comm_machine_prepare(&m, &err), GPUL_OK);
	return m;
}

static double predict(const gpul_comm_machine *m, gpul_comm_call call, gpul_comm_algo algo, double bytes)
{
	return gpul_comm_predict(m, call, algo, algo == GPUL_COMM_ONE_SHOT ? GPUL_COMM_LL : GPUL_COMM_SIMPLE, bytes);
}

static void close_to(double found, double expected)
{
	if (fabs(found - expected) > 1e-9 * fabs(expected))
		fail_msg("%.12g instead of %.12g", found, expected);
}

/* ---- numbers by hand -------------------------------------------------------------------------------------------------- */

static void rings_are_as_computed_by_hand(void **state)
{
	gpul_comm_machine m = machine_of(4, 4);

	(void)state;
	/* 4000 bytes: chunks of 1000, so each step takes L + g + 1 = 5; an all-reduce has 6 steps, the others 3. */
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, 4000), 10 + 6 * 5);
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_RING, 4000), 10 + 3 * 5);
	close_to(predict(&m, GPUL_COMM_REDUCESCATTER, GPUL_COMM_RING, 4000), 10 + 3 * 5);
	/* 600,000 bytes: chunks of 150,000, each sent as two slots of 75,000: a step takes max(2 * 76, 3 + 76) = 152. */
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_RING, 600000), 10 + 3 * 152);
	/* 1,600,000 bytes: two rounds with chunks of 200,000, sent as two slots: each step takes 2 * 101. */
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_RING, 1600000), 10 + 2 * 3 * 202);
	/* A broadcast is a chain of 3 hops: 5 each for 1000 bytes; 300,000 bytes are 3 slices, of which 2 follow the first. */
	close_to(predict(&m, GPUL_COMM_BROADCAST, GPUL_COMM_RING, 1000), 10 + 3 * 5);
	close_to(predict(&m, GPUL_COMM_BROADCAST, GPUL_COMM_RING, 300000), 10 + 3 * (3 + 101) + 2 * 101);
	/* Two hosts: the link between them determines the time of each step, 20 + 2 + 4. */
	m = machine_of(4, 2);
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, 4000), 10 + 6 * 26);
	close_to(predict(&m, GPUL_COMM_BROADCAST, GPUL_COMM_RING, 1000), 10 + 2 * 5 + 26);
}

static void trees_are_as_computed_by_hand(void **state)
{
	gpul_comm_machine m = machine_of(2, 2);

	(void)state;
	/* Each of the two trees moves 1000 of the 2000 bytes up and down one edge: 3 + 1 + 1 each way. */
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 2000), 10 + 2 * 5);
	/* Each tree moves 200,000 bytes in 8 chunks of 25,000; the busiest rank has 2 steps per chunk, each with 2 chunks. */
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 400000), 10 + 2 * (3 + 26) + 7 * (2 + 50));
	/* 4 ranks, tree 0 - 2 - {1, 3}: a path has an edge to a root with one child, and an edge to a node with two children. */
	m = machine_of(4, 4);
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 2000), 10 + 2 * (5 + 3 + 2 * 2));
	/* Each rank on its own host: the edges take 20 + 2 + 4, and 20 + 2 * (2 + 4). */
	m = machine_of(4, 1);
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 2000), 10 + 2 * (26 + 32));
	/* Two hosts, {0, 1} and {2, 3}: both edges 0 - 2 and 2 - 1 of tree 0 are between hosts. */
	m = machine_of(4, 2);
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 2000), 10 + 2 * (26 + 32));
}

static void two_levels_are_as_computed_by_hand(void **state)
{
	gpul_comm_machine m = machine_of(4, 2);

	(void)state;
	/* 4000 bytes: within a host, messages of 2000 take 3 + 1 + 2, twice; between hosts, chunks of 1000 take 20 + 2 + 4, twice. */
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TWO_LEVEL, 4000), 10 + 2 * 6 + 2 * 26);
	/* 800,000 bytes: chunks of 200,000; within a host two pieces of two slots, 202 each; between hosts 2 * (2 + 400). */
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TWO_LEVEL, 800000), 10 + 2 * 2 * 202 + 2 * 804);
	m = machine_of(4, 4);
	assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TWO_LEVEL, 4000) < 0);
	m = machine_of(5, 2);
	assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TWO_LEVEL, 4000) < 0);
	m = machine_of(4, 1);
	assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TWO_LEVEL, 4000) < 0);
}

static void algorithms_in_memory_are_as_computed_by_hand(void **state)
{
	gpul_comm_machine m = machine_of(4, 4);

	(void)state;
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_ONE_SHOT, 4000), 10 + 3 + 3 * 5);
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_ONE_SHOT, 4000), 10 + 3 + 3 * 2);
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_DIRECT, 4000), 10 + 6 + 2 * 4);
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_DIRECT, 4000), 10 + 6 + 4);
	close_to(predict(&m, GPUL_COMM_BROADCAST, GPUL_COMM_DIRECT, 4000), 10 + 9 + 1 + 5);
	close_to(predict(&m, GPUL_COMM_ALLTOALL, GPUL_COMM_DIRECT, 4000), 10 + 3 + 3 * 2);
	close_to(predict(&m, GPUL_COMM_SENDRECV, GPUL_COMM_DIRECT, 4000), 10 + 3 + 5);
	assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_ONE_SHOT, 1 << 20) < 0);
	m = machine_of(4, 2);
	assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_ONE_SHOT, 4000) < 0);
	assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_DIRECT, 4000) < 0);
	/* A rank sends to one rank of its host and to two of the other host: latency 20, then 2 + 2 * (2 + 4). */
	close_to(predict(&m, GPUL_COMM_ALLTOALL, GPUL_COMM_DIRECT, 4000), 10 + 20 + 2 + 12);
	assert_true(gpul_comm_predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, GPUL_COMM_LL, 4000) < 0); /* the network has no LL */
}

/* Steps that add elements take 2 us more per 1000 bytes; other steps do not. */
static void adding_takes_time(void **state)
{
	gpul_comm_machine m = machine_of(4, 4);

	(void)state;
	m.inside[GPUL_COMM_SIMPLE].reduce_us_per_byte = m.inside[GPUL_COMM_LL].reduce_us_per_byte = 2e-3;
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, 4000), 10 + 3 * 7 + 3 * 5);
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_RING, 4000), 10 + 3 * 5);
	close_to(predict(&m, GPUL_COMM_REDUCESCATTER, GPUL_COMM_RING, 4000), 10 + 3 * 7);
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_ONE_SHOT, 4000), 10 + 3 + 3 * 13);
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_DIRECT, 4000), 10 + 6 + (1 + 3 + 6) + (1 + 3));
	/* The two edges of a path take 3 + 4 and 3 + 2 * 4 upwards, where ranks add, and 3 + 2 and 3 + 2 * 2 downwards. */
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 2000), 10 + 7 + 11 + 5 + 7);
	m = machine_of(4, 2);
	m.inside[GPUL_COMM_SIMPLE].reduce_us_per_byte = 2e-3;
	m.across[GPUL_COMM_SIMPLE].reduce_us_per_byte = 1e-3;
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TWO_LEVEL, 4000), 10 + (3 + 3 + 4) + (3 + 3) + (20 + 6 + 1) + (20 + 6));
}

/* 8 ranks on 2 cores: each core has 4 ranks, so overhead and busy times are 4 times as long; latency is not. */
static void shared_cores_stretch_busy_times(void **state)
{
	gpul_comm_machine m = machine_of(8, 8);

	(void)state;
	m.cores = 2;
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_RING, 8000), 4 * 10 + 7 * (3 + 4 * 2));
	/* The 2 cores do 6 steps of (0.5 + 1000 bytes) for each of 8 ranks, which takes longer than the path up and down a tree. */
	m.inside[GPUL_COMM_SIMPLE].latency_us = 0.1;
	m.inside[GPUL_COMM_SIMPLE].gap_us = 1;
	close_to(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 2000), 4 * 10 + 4 * 6 * 1.5);
	m.inside[GPUL_COMM_SIMPLE].latency_us = 3;
	m.cores = 8;
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_RING, 8000), 10 + 7 * (3 + 2));
	m.cores = 16;
	close_to(predict(&m, GPUL_COMM_ALLGATHER, GPUL_COMM_RING, 8000), 10 + 7 * (3 + 2));
}

/* ---- what holds for any parameters ------------------------------------------------------------------------------------ */

static const gpul_comm_algo algos[] = { GPUL_COMM_RING, GPUL_COMM_ONE_SHOT, GPUL_COMM_DIRECT, GPUL_COMM_TREE, GPUL_COMM_TWO_LEVEL };
enum { N_ALGOS = sizeof algos / sizeof *algos };

static void more_bytes_never_take_less_time(void **state)
{
	static const uint32_t shapes[][2] = { { 2, 2 }, { 8, 8 }, { 9, 9 }, { 16, 4 }, { 64, 8 }, { 33, 1 }, { 65536, 8 } };

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const gpul_comm_machine m = machine_of(shapes[i][0], shapes[i][1]);

		for (int call = 0; call < GPUL_COMM_N_CALLS; call++)
			for (int a = 0; a < N_ALGOS; a++) {
				double last = 0;

				for (double bytes = 8; bytes < 4e9; bytes *= 1.37) {
					const double us = predict(&m, (gpul_comm_call)call, algos[a], bytes);

					if (us < 0)
						break;
					if (us < last * (1 - 1e-9))
						fail_msg("%s %s, %u ranks: %.0f bytes take %.12g us, less than %.12g",
							 gpul_comm_call_name((gpul_comm_call)call), gpul_comm_algo_name(algos[a]),
							 m.n_ranks, bytes, us, last);
					last = us;
				}
			}
	}
}

static void more_ranks_never_take_less_time_for_small_sizes(void **state)
{
	(void)state;
	for (int a = 0; a < N_ALGOS; a++)
		for (uint32_t n = 2, last_n = 2; n <= 4096; last_n = n, n = n * 2) {
			const gpul_comm_machine m = machine_of(n, 1), before = machine_of(last_n, 1);

			if (predict(&m, GPUL_COMM_ALLREDUCE, algos[a], 64) >= 0)
				assert_true(predict(&m, GPUL_COMM_ALLREDUCE, algos[a], 64) >=
					    predict(&before, GPUL_COMM_ALLREDUCE, algos[a], 64));
		}
}

/* An all-reduce has 2 (n - 1) latencies in a ring, about 2 log2(n) in a tree. */
static void trees_win_for_small_sizes_and_rings_for_large_ones(void **state)
{
	(void)state;
	for (uint32_t n = 8; n <= 1024; n *= 2) {
		const gpul_comm_machine m = machine_of(n, 1);

		assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 64) < predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, 64));
	}
	const gpul_comm_machine m = machine_of(8, 1);

	assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, 1e9) < predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE, 1e9));
}

static void two_levels_beat_a_ring_whose_links_between_hosts_are_slow(void **state)
{
	const gpul_comm_machine m = machine_of(64, 8);

	(void)state;
	for (double bytes = 64; bytes < 1e9; bytes *= 4)
		assert_true(predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_TWO_LEVEL, bytes) <
			    predict(&m, GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, bytes));
}

static void the_best_is_the_least_of_all(void **state)
{
	const gpul_comm_machine m = machine_of(64, 8);
	gpul_comm_algo algo = GPUL_COMM_ALGO_AUTO;
	gpul_comm_proto proto = GPUL_COMM_PROTO_AUTO;

	(void)state;
	for (double bytes = 8; bytes < 1e9; bytes *= 3) {
		const double best = gpul_comm_predict_best(&m, GPUL_COMM_ALLREDUCE, bytes, &algo, &proto);

		close_to(best, gpul_comm_predict(&m, GPUL_COMM_ALLREDUCE, algo, proto, bytes));
		for (int a = 0; a < N_ALGOS; a++)
			assert_true(predict(&m, GPUL_COMM_ALLREDUCE, algos[a], bytes) < 0 ||
				    predict(&m, GPUL_COMM_ALLREDUCE, algos[a], bytes) >= best);
	}
}

static void impossible_machines_are_refused(void **state)
{
	gpul_comm_machine m = { .n_ranks = 1, .ranks_per_host = 1 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_comm_machine_prepare(&m, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "expected 2 to 65536"));
	m = (gpul_comm_machine){ .n_ranks = 65537, .ranks_per_host = 1 };
	assert_int_equal(gpul_comm_machine_prepare(&m, NULL), GPUL_EINVAL);
	m = (gpul_comm_machine){ .n_ranks = 4, .ranks_per_host = 0 };
	assert_int_equal(gpul_comm_machine_prepare(&m, NULL), GPUL_EINVAL);
}

/* ---- the fit ---------------------------------------------------------------------------------------------------------- */

static unsigned make_points(const gpul_comm_machine *m, gpul_comm_point *points)
{
	static const gpul_comm_call calls[] = { GPUL_COMM_ALLREDUCE, GPUL_COMM_ALLGATHER, GPUL_COMM_BROADCAST };
	unsigned n = 0;

	for (int i = 0; i < 3; i++)
		for (double bytes = 64; bytes < 3e6; bytes *= 8, n++)
			points[n] = (gpul_comm_point){ calls[i], GPUL_COMM_RING, bytes,
						       gpul_comm_predict(m, calls[i], GPUL_COMM_RING, GPUL_COMM_SIMPLE, bytes) };
	return n;
}

static void a_fit_finds_the_costs_that_made_the_times(void **state)
{
	gpul_comm_machine m = machine_of(4, 4);
	gpul_comm_costs *c = &m.inside[GPUL_COMM_SIMPLE];
	gpul_comm_point points[32];
	gpul_error err = { 0 };
	unsigned n;

	(void)state;
	c->reduce_us_per_byte = 2e-3;
	n = make_points(&m, points);
	*c = (gpul_comm_costs){ 5, 5, 2, 2e-3, 1e-3, 1e5 }; /* initial values for the fit */
	assert_int_equal(gpul_comm_fit(&m, GPUL_COMM_SIMPLE, points, n, &err), GPUL_OK);
	assert_true(fabs(c->overhead_us - 10) < 0.5);
	assert_true(fabs(c->latency_us - 3) < 0.3);
	assert_true(fabs(c->gap_us - 1) < 0.2);
	assert_true(fabs(c->us_per_byte - 1e-3) < 2e-5);
	assert_true(fabs(c->reduce_us_per_byte - 2e-3) < 2e-5);
}

static void a_fit_without_times_is_refused(void **state)
{
	gpul_comm_machine m = machine_of(4, 4);
	gpul_comm_point points[32];
	gpul_error err = { 0 };
	const unsigned n = make_points(&m, points);

	(void)state;
	m.inside[GPUL_COMM_SIMPLE].reduce_us_per_byte = 1e-3;
	assert_int_equal(gpul_comm_fit(&m, GPUL_COMM_SIMPLE, points, 4, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "4 measured calls, but at least 5"));
	points[5].us = 0;
	assert_int_equal(gpul_comm_fit(&m, GPUL_COMM_SIMPLE, points, n, NULL), GPUL_EINVAL);
	points[5] = (gpul_comm_point){ GPUL_COMM_ALLGATHER, GPUL_COMM_TREE, 64, 1 };
	assert_int_equal(gpul_comm_fit(&m, GPUL_COMM_SIMPLE, points, n, NULL), GPUL_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_as_computed_by_hand),
		cmocka_unit_test(trees_are_as_computed_by_hand),
		cmocka_unit_test(two_levels_are_as_computed_by_hand),
		cmocka_unit_test(algorithms_in_memory_are_as_computed_by_hand),
		cmocka_unit_test(adding_takes_time),
		cmocka_unit_test(shared_cores_stretch_busy_times),
		cmocka_unit_test(more_bytes_never_take_less_time),
		cmocka_unit_test(more_ranks_never_take_less_time_for_small_sizes),
		cmocka_unit_test(trees_win_for_small_sizes_and_rings_for_large_ones),
		cmocka_unit_test(two_levels_beat_a_ring_whose_links_between_hosts_are_slow),
		cmocka_unit_test(the_best_is_the_least_of_all),
		cmocka_unit_test(impossible_machines_are_refused),
		cmocka_unit_test(a_fit_finds_the_costs_that_made_the_times),
		cmocka_unit_test(a_fit_without_times_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
