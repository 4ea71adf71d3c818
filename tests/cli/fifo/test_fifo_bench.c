/* test_fifo_bench.c — counting, checks, statistics and output of gpuload fifo bench, with synthetic results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/fifo/bench/fifo_bench.h"
#include "cli/fifo/bench/fifo_bench_check.h"

/* ---- counting -------------------------------------------------------------------- */

static void counts_numbers_in_any_order(void **state)
{
	struct fifo_count c = { 0 };
	uint64_t seen[700] = { 0 }, random = 1;

	(void)state;
	for (int again = 0; again < 2; again++) { /* the second time, the map is cleared and used again */
		memset(seen, 0, sizeof seen);
		assert_int_equal(fifo_count_clear(&c, again ? 350 : 700, NULL), GPUL_OK);
		for (int i = 0; i < 20000; i++) {
			const uint64_t key = (random = random * 6364136223846793005u + 1442695040888963407u) >> 33;

			seen[key % 350]++;
			fifo_count_add(&c, key % 350);
		}
		for (uint64_t i = 0; i < 700; i++)
			assert_int_equal(fifo_count_of(&c, i), seen[i]);
	}
	fifo_count_free(&c);
}

static void counts_numbers_of_63_bits(void **state)
{
	struct fifo_count c = { 0 };

	(void)state;
	assert_int_equal(fifo_count_clear(&c, 8, NULL), GPUL_OK);
	for (int i = 0; i < 3; i++)
		for (unsigned bit = 56; bit < 63; bit++)
			fifo_count_add(&c, 1ull << bit);
	for (unsigned bit = 56; bit < 63; bit++)
		assert_int_equal(fifo_count_of(&c, 1ull << bit), 3);
	assert_int_equal(fifo_count_of(&c, 0), 0);
	fifo_count_free(&c);
}

/* ---- checking -------------------------------------------------------------------- */

enum { BLOCKS = 3, TRIGGERS = 5, ALL = BLOCKS * TRIGGERS };

enum how { COUNT, STAMP };

/* Make the triggers of all blocks, block by block, or one trigger of each block in turn. */
static void make_items(gpul_fifo_item items[ALL], bool in_turn)
{
	for (unsigned i = 0; i < ALL; i++)
		items[i] = (gpul_fifo_item){ .word = { in_turn ? i / BLOCKS : i % TRIGGERS, in_turn ? i % BLOCKS : i / TRIGGERS } };
}

static gpul_status check(enum how how, const gpul_fifo_item items[ALL], unsigned batch)
{
	struct fifo_count count = { 0 };
	uint64_t popped_ns[ALL] = { 0 };
	struct fifo_check c = { .blocks = BLOCKS, .triggers = TRIGGERS, .count = how == COUNT ? &count : NULL, .popped_ns = popped_ns };
	gpul_error err = { 0 };
	gpul_status st;

	assert_int_equal(fifo_count_clear(&count, TRIGGERS, NULL), GPUL_OK);
	assert_int_equal(fifo_check_begin(&c, NULL), GPUL_OK);
	for (unsigned at = 0; at < ALL; at += batch)
		(how == COUNT ? fifo_check_count : fifo_check_stamp)(&c, items + at, ALL - at < batch ? ALL - at : batch);
	st = fifo_check_result(&c, "kernel", &err);
	for (unsigned i = 0; how == STAMP && !st && i < ALL; i++)
		assert_int_not_equal(popped_ns[i], 0);
	if (st)
		assert_ptr_equal(strstr(err.text, "kernel: "), err.text);
	fifo_check_end(&c);
	fifo_count_free(&count);
	return st;
}

static void accepts_all_triggers_in_any_batches(void **state)
{
	gpul_fifo_item items[ALL];

	(void)state;
	for (enum how how = COUNT; how <= STAMP; how++)
		for (unsigned batch = 1; batch <= ALL; batch++)
			for (int in_turn = 0; in_turn < 2; in_turn++) {
				make_items(items, in_turn);
				assert_int_equal(check(how, items, batch), GPUL_OK);
			}
}

static void finds_one_wrong_trigger_at_any_position(void **state)
{
	static const gpul_fifo_item wrong[] = {
		{ .word = { 0, 0 } },        /* the first trigger again, in place of another one */
		{ .word = { TRIGGERS, 1 } }, /* the number is too large */
		{ .word = { 1, BLOCKS } },   /* the block does not exist */
		{ .word = { INT64_MAX, INT64_MAX } },
	};

	(void)state;
	for (enum how how = COUNT; how <= STAMP; how++)
		for (unsigned batch = 1; batch <= ALL; batch++)
			for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
				for (unsigned at = 1; at < ALL; at++) {
					gpul_fifo_item items[ALL];

					make_items(items, batch % 2);
					items[at] = wrong[i];
					assert_int_equal(check(how, items, batch), GPUL_EFORMAT);
				}
}

static void finds_two_swapped_triggers_of_a_block(void **state)
{
	gpul_fifo_item items[ALL], first;

	(void)state;
	make_items(items, true);
	first = items[4];
	items[4] = items[10]; /* swap two triggers of one block */
	items[10] = first;
	assert_int_equal(check(COUNT, items, 4), GPUL_OK); /* fifo_check_count() does not check the order */
	assert_int_equal(check(STAMP, items, 4), GPUL_EFORMAT);
}

/* ---- checking warps -------------------------------------------------------------- */

enum { PUSHES = 3, WARP = 32, WARP_ALL = BLOCKS * PUSHES * WARP };
static const uint64_t LAP = 1ull << 63;

/* Make the pushes of three warps, one push of each warp in turn. */
static void make_warps(struct gpul_trigger slots[WARP_ALL], uint64_t lap)
{
	for (unsigned i = 0; i < WARP_ALL; i++)
		slots[i] = (struct gpul_trigger){ { (i / WARP / BLOCKS * WARP + i % WARP) ^ lap, (i / WARP % BLOCKS) ^ lap } };
}

static gpul_status check_warps(const struct gpul_trigger slots[WARP_ALL], uint64_t lap, unsigned batch)
{
	struct fifo_check c = { .blocks = BLOCKS, .triggers = PUSHES * WARP };
	gpul_status st;

	assert_int_equal(fifo_check_begin(&c, NULL), GPUL_OK);
	for (unsigned at = 0; at < WARP_ALL; at += batch) {
		const gpul_fifo_run run = {
			.triggers = slots + at, .lap = lap, .position = 7 * WARP + at, .n = WARP_ALL - at < batch ? WARP_ALL - at : batch
		};

		fifo_check_order(&c, &run);
	}
	st = fifo_check_result(&c, "kernel", NULL);
	fifo_check_end(&c);
	return st;
}

static void accepts_warp_pushes_that_are_split_at_any_position(void **state)
{
	struct gpul_trigger slots[WARP_ALL];

	(void)state;
	for (uint64_t lap = 0; lap <= 1; lap++)
		for (unsigned batch = 1; batch <= WARP_ALL; batch++) {
			make_warps(slots, lap << 63);
			assert_int_equal(check_warps(slots, lap << 63, batch), GPUL_OK);
		}
}

static void finds_one_wrong_trigger_of_a_warp_push(void **state)
{
	static const struct gpul_trigger wrong[] = {
		{ { 0, 0 } }, { { 1, BLOCKS } }, { { WARP, 2 } }, { { INT64_MAX, INT64_MAX } }, { { LAP, LAP } },
	};

	(void)state;
	for (unsigned batch = 1; batch <= WARP_ALL; batch += 7)
		for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
			for (unsigned at = 1; at < WARP_ALL; at++) {
				struct gpul_trigger slots[WARP_ALL];

				make_warps(slots, 0);
				if (!memcmp(&slots[at], &wrong[i], sizeof *slots))
					continue;
				slots[at] = wrong[i];
				assert_int_equal(check_warps(slots, 0, batch), GPUL_EFORMAT);
			}
}

static void finds_a_repeated_and_a_missing_warp_push(void **state)
{
	struct gpul_trigger slots[WARP_ALL];

	(void)state;
	make_warps(slots, 0);
	memcpy(slots + (BLOCKS + 1) * WARP, slots + WARP, WARP * sizeof *slots);
	assert_int_equal(check_warps(slots, 0, WARP_ALL), GPUL_EFORMAT);
	make_warps(slots, 0);
	for (unsigned i = WARP_ALL - WARP; i < WARP_ALL; i++) /* the last push comes from the wrong warp */
		slots[i] = (struct gpul_trigger){ { PUSHES * WARP + i % WARP, 1 } };
	assert_int_equal(check_warps(slots, 0, WARP_ALL), GPUL_EFORMAT);
}

/* ---- figures --------------------------------------------------------------------- */

static void median_of_an_even_count_is_the_mean_of_the_middle_two(void **state)
{
	double odd[] = { 5, 1, 3 }, even[] = { 8, 1, 2, 4 };
	struct samples_spread rate = samples_spread_of(odd, 3);

	(void)state;
	assert_true(rate.median == 3 && rate.least == 1 && rate.most == 5);
	rate = samples_spread_of(even, 4);
	assert_true(rate.median == 3 && rate.least == 1 && rate.most == 8);
}

static void percentiles_are_measured_times(void **state)
{
	static const int64_t of_thousand[] = { 500, 900, 990, 999, 1000 };
	int64_t ns[1000], one = -7;
	struct fifo_latency latency;

	(void)state;
	for (int i = 0; i < 1000; i++)
		ns[i] = 1 + i * 7 % 1000; /* each number from 1 to 1000 once */
	fifo_latency_of(ns, 1000, &latency);
	for (int i = 0; i < FIFO_N_PERCENTILES; i++)
		assert_int_equal(latency.ns[i], of_thousand[i]);
	fifo_latency_of(&one, 1, &latency);
	for (int i = 0; i < FIFO_N_PERCENTILES; i++)
		assert_int_equal(latency.ns[i], 0); /* a small negative time is a clock error, and is counted as 0 */
}

/* ---- figures of a GPU and of the peer -------------------------------------------- */

static void make_gpu_result(struct fifo_bench_request *r, struct fifo_bench_result *result)
{
	static const struct fifo_config configs[] = { { 1, 1 }, { 128, 8 }, { 128, 16 } };

	*r = (struct fifo_bench_request){ .mode = { true, true }, .repeat = 5, .cpu = -1 };
	*result = (struct fifo_bench_result){ .gpu = "NVIDIA <H&200>",
					      .driver = "nvidia",
					      .driver_version = 13010,
					      .kind = GPUL_MEM_HOST_NUMA,
					      .node = 1,
					      .cpu = 7,
					      .cpu_node = 1 };
	for (int mode = 0; mode < FIFO_N_MODES; mode++)
		for (int i = 0; i < 3; i++) {
			struct fifo_row *row = &result->row[result->n_rows++];

			*row = (struct fifo_row){ .mode = (enum fifo_mode)mode, .config = configs[i], .lanes = 1, .triggers = 1280 };
			for (int op = 0; op < FIFO_N_OPS; op++)
				row->rate[op].median = (i * 10 + op + 1) * 1.25e6;
		}
}

static void reports_a_cpu_on_another_node_than_the_memory(void **state)
{
	static struct fifo_bench_request r;
	static struct fifo_bench_result result;

	(void)state;
	make_gpu_result(&r, &result);
	for (unsigned node = 0; node < 2; node++) {
		struct out o = { 0 };

		result.cpu_node = node;
		fifo_bench_text(&r, &result, &o);
		out_bytes(&o, "", 1);
		assert_non_null(strstr(o.at, "host-numa memory on node 1; CPU 7;"));
		assert_true(!strstr(o.at, "\nCPU 7 is on node 0, the memory is on another node") == (node == 1));
		out_free(&o);
	}
}

static struct out show(void (*how)(const struct fifo_bench_request *, const struct fifo_bench_result *, struct out *), bool interprets)
{
	static struct fifo_bench_request r;
	static struct fifo_bench_result result;
	struct out o = { 0 };

	make_gpu_result(&r, &result);
	result.interprets = interprets;
	how(&r, &result, &o);
	out_bytes(&o, "", 1);
	assert_false(o.failed);
	return o;
}

static unsigned n_times(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
		n++;
	return n;
}

static void tables_show_the_peers_figures_only_on_a_gpu(void **state)
{
	struct out o = show(fifo_bench_text, false);

	(void)state;
	assert_int_equal(n_times(o.at, "relaxed  release    mscclpp*     relaxed  release    mscclpp*\n"), 2);
	assert_int_equal(n_times(o.at, "measured on another day"), 2);
	/* gpuload's figures are 11 ... 14 times 1.25; those of mscclpp are 6.89 and 1.07, or - if it was not measured */
	assert_int_equal(n_times(o.at, "    128        8       1280        13.8     15.0        6.89        16.2     17.5"
				       "        1.07\n"),
			 2);
	assert_int_equal(n_times(o.at, "    128       16       1280        26.2     27.5           -        28.8     30.0"
				       "           -\n"),
			 2);
	out_free(&o);
	o = show(fifo_bench_text, true);
	assert_int_equal(n_times(o.at, "mscclpp"), 0);
	assert_int_equal(n_times(o.at, "    128       16       1280        26.2     27.5        28.8     30.0\n"), 2);
	out_free(&o);
}

static void plot_shows_the_peers_curve_only_on_a_gpu(void **state)
{
	struct out o = show(fifo_bench_svg, false);

	(void)state;
	assert_int_equal(n_times(o.at, "<path class=\"peer\""), 1 + 2 * 2); /* one in the legend; 2 sizes, with and without sync */
	assert_int_equal(n_times(o.at, "mscclpp, 128 slots, 8 threads: 6.89 M/s"), 1);
	assert_int_equal(n_times(o.at, "mscclpp, 128 slots, 8 threads: 1.07 M/s"), 1);
	assert_int_equal(n_times(o.at, "H&200"), 0);
	assert_int_equal(n_times(o.at, "NVIDIA ?H?200>"), 2);
	out_free(&o);
	o = show(fifo_bench_svg, true);
	assert_int_equal(n_times(o.at, "mscclpp") + n_times(o.at, "<path class=\"peer\""), 0);
	out_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_numbers_in_any_order),
		cmocka_unit_test(counts_numbers_of_63_bits),
		cmocka_unit_test(accepts_all_triggers_in_any_batches),
		cmocka_unit_test(finds_one_wrong_trigger_at_any_position),
		cmocka_unit_test(finds_two_swapped_triggers_of_a_block),
		cmocka_unit_test(accepts_warp_pushes_that_are_split_at_any_position),
		cmocka_unit_test(finds_one_wrong_trigger_of_a_warp_push),
		cmocka_unit_test(finds_a_repeated_and_a_missing_warp_push),
		cmocka_unit_test(median_of_an_even_count_is_the_mean_of_the_middle_two),
		cmocka_unit_test(percentiles_are_measured_times),
		cmocka_unit_test(reports_a_cpu_on_another_node_than_the_memory),
		cmocka_unit_test(tables_show_the_peers_figures_only_on_a_gpu),
		cmocka_unit_test(plot_shows_the_peers_curve_only_on_a_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
