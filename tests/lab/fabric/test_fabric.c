/* test_fabric.c — the simulated network alone: rates, latency, drops, ECMP, faults, credit, and one result for one seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "lab/fabric/fabric.h"

enum { CHUNK = 1024 };

/* 4 leaves of 4 hosts and 4 spines, 8 Gbit/s (1 ns a byte), 1 us a link; the windows are larger than the network. */
static gpul_fabric_options network(void)
{
	return (gpul_fabric_options){ .n_leaves = 4,
				      .n_spines = 4,
				      .hosts_per_leaf = 4,
				      .gbit_per_s = 8,
				      .latency_ns = 1000,
				      .queue_bytes = 1 << 20,
				      .seed = 7,
				      .rel = { .chunk_bytes = CHUNK,
					       .window = 1024,
					       .n_paths = 4,
					       .control = GPUL_REL_FIXED,
					       .path_window = 64,
					       .threshold = 3,
					       .rto_min_ns = 200000,
					       .rto_max_ns = 2000000 } };
}

static gpul_fabric *create(const gpul_fabric_options *o)
{
	gpul_error err = GPUL_ERROR_INIT;
	gpul_fabric *f = NULL;

	if (gpul_fabric_create(o, &f, &err))
		fail_msg("%s", err.text);
	return f;
}

static void add(gpul_fabric *f, unsigned from, unsigned to, uint32_t bytes)
{
	gpul_error err = GPUL_ERROR_INIT;

	if (gpul_fabric_add(f, &(gpul_fabric_flow){ from, to, 0, bytes, 1 }, &err))
		fail_msg("%s", err.text);
}

/* Run to the end; returns the time of the last arrival. */
static uint64_t finish(gpul_fabric *f)
{
	gpul_error err = GPUL_ERROR_INIT;

	if (gpul_fabric_run(f, UINT64_C(10000000000), &err))
		fail_msg("%s", err.text);
	assert_true(gpul_fabric_finished(f));
	return gpul_fabric_now_ns(f);
}

/* Add flows from `n` hosts to host 0, run to the end, and return the time. */
static uint64_t run_incast(const gpul_fabric_options *o, unsigned n, uint32_t bytes, gpul_fabric_link_info *link,
			   gpul_fabric_link_info *all)
{
	gpul_fabric *f = create(o);
	uint64_t ns;

	for (unsigned i = 1; i <= n; i++)
		add(f, i, 0, bytes);
	ns = finish(f);
	gpul_fabric_link_about(f, gpul_fabric_to_host(f, 0), link);
	gpul_fabric_links_about(f, all);
	gpul_fabric_destroy(f);
	return ns;
}

static void a_message_takes_the_time_of_its_bytes_and_links(void **state)
{
	static const struct {
		unsigned to;
		uint32_t bytes;
		uint64_t ns;
	} rows[] = {
		{ 1, 0, 2 * (64 + 66) + 2 * 1000 },
		{ 1, CHUNK, 2 * (CHUNK + 64 + 66) + 2 * 1000 },
		{ 5, CHUNK, 4 * (CHUNK + 64 + 66) + 4 * 1000 },
		{ 5, CHUNK + 1, 4 * (CHUNK + 64 + 66) + (1 + 64 + 66) + 4 * 1000 },
		{ 5, 100 * CHUNK, 103 * (CHUNK + 64 + 66) + 4 * 1000 },
	};
	const gpul_fabric_options o = network();

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		gpul_fabric_options one_path = o;

		one_path.rel.n_paths = 1;
		gpul_fabric *f = create(&one_path);

		add(f, 0, rows[i].to, rows[i].bytes);
		assert_in_range(finish(f), rows[i].ns - 4, rows[i].ns + 4);
		assert_in_range(gpul_fabric_ideal_ns(&o, rows[i].bytes, rows[i].to < 4), rows[i].ns - 4, rows[i].ns + 4);
		gpul_fabric_destroy(f);
	}
}

static void a_link_carries_the_bytes_that_the_header_says(void **state)
{
	const gpul_fabric_options o = network();
	gpul_fabric *f = create(&o);
	gpul_fabric_link_info link;

	(void)state;
	add(f, 0, 5, CHUNK);
	finish(f);
	gpul_fabric_link_about(f, gpul_fabric_from_host(f, 0), &link);
	assert_int_equal(link.n_sent, 1);
	assert_int_equal(link.sent, gpul_fabric_chunk_bytes(&o));
	assert_int_equal(link.n_dropped, 0);
	gpul_fabric_destroy(f);
}

static void a_queue_never_holds_more_than_its_capacity(void **state)
{
	gpul_fabric_options o = network();
	gpul_fabric_link_info link, all;

	(void)state;
	o.queue_bytes = 16 * gpul_fabric_chunk_bytes(&o);
	run_incast(&o, 15, 200 * CHUNK, &link, &all);
	assert_true(link.n_dropped > 0);
	assert_in_range(all.longest, o.queue_bytes - gpul_fabric_chunk_bytes(&o), o.queue_bytes);
}

static void credit_bounds_the_queue_and_keeps_the_link_busy(void **state)
{
	gpul_fabric_options o = network();
	gpul_fabric_link_info link, all;
	uint64_t ns;

	(void)state;
	o.rel.credit = 1;
	o.grant_chunks = (uint32_t)(gpul_fabric_rtt_ns(&o, false) / gpul_fabric_chunk_bytes(&o)) + 1;
	ns = run_incast(&o, 15, 200 * CHUNK, &link, &all);
	assert_int_equal(all.n_dropped, 0);
	assert_true(link.longest <= (uint64_t)(15 + o.grant_chunks) * gpul_fabric_chunk_bytes(&o));
	assert_true(ns < gpul_fabric_ideal_ns(&o, 15 * 200 * CHUNK, false) * 11 / 10);
	o.late = o.twice = o.lost = 200000; /* no credit stays with a flow that has ended */
	o.late_ns = 1000000;
	for (o.seed = 1; o.seed <= 20; o.seed++)
		run_incast(&o, 15, 50 * CHUNK, &link, &all);
}

static void ecmp_spreads_evenly_and_always_in_the_same_way(void **state)
{
	gpul_fabric_options o = network();
	gpul_fabric *f = create(&o), *g;
	unsigned count[4] = { 0 }, n_same = 0;

	(void)state;
	o.seed++;
	g = create(&o);
	for (unsigned i = 0; i < 4096; i++) {
		const unsigned from = i % 16, to = i / 16 % 16, path = i / 256, spine = gpul_fabric_spine(f, from, to, path);

		assert_int_equal(spine, gpul_fabric_spine(f, from, to, path));
		n_same += spine == gpul_fabric_spine(g, from, to, path);
		count[spine]++;
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(count[i], 1024 * 9 / 10, 1024 * 11 / 10);
	assert_in_range(n_same, 1024 * 9 / 10, 1024 * 11 / 10); /* by chance */
	gpul_fabric_destroy(f);
	gpul_fabric_destroy(g);
}

static void everything_arrives_in_spite_of_faults(void **state)
{
	static const struct {
		uint32_t lost, late, twice, corrupt;
		bool again;
	} rows[] = {
		{ 0, 0, 0, 0, false },
		{ 100000, 0, 0, 0, true },
		{ 0, 0, 100000, 0, false },
		{ 0, 0, 0, 100000, true },
		{ 50000, 100000, 50000, 50000, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		gpul_fabric_options o = network();
		gpul_fabric_flow_info flow;

		o.lost = rows[i].lost, o.late = rows[i].late, o.twice = rows[i].twice, o.corrupt = rows[i].corrupt;
		o.late_ns = 30000;
		gpul_fabric *f = create(&o);

		add(f, 0, 5, 500 * CHUNK);
		finish(f);
		gpul_fabric_flow_about(f, 0, &flow);
		assert_true(flow.done);
		assert_int_equal(flow.arrived, 500 * CHUNK);
		assert_int_equal(flow.n.chunks_again > 0, rows[i].again);
		gpul_fabric_destroy(f);
	}
}

static void a_seed_determines_everything(void **state)
{
	gpul_fabric_options o = network();
	gpul_fabric_link_info link[2], all[2];

	(void)state;
	o.lost = o.late = o.twice = o.corrupt = 20000;
	o.late_ns = 30000;
	o.queue_bytes = 32 * gpul_fabric_chunk_bytes(&o);
	for (int i = 0; i < 2; i++)
		run_incast(&o, 15, 200 * CHUNK, &link[i], &all[i]);
	assert_memory_equal(&link[0], &link[1], sizeof link[0]);
	assert_memory_equal(&all[0], &all[1], sizeof all[0]);
	o.seed++;
	run_incast(&o, 15, 200 * CHUNK, &link[1], &all[1]);
	assert_memory_not_equal(&all[0], &all[1], sizeof all[0]);
}

static void a_dead_link_carries_nothing_until_it_returns(void **state)
{
	const gpul_fabric_options o = network();
	gpul_fabric *f = create(&o);
	gpul_fabric_link_info before, after;
	gpul_fabric_flow_info flow;
	gpul_error err = GPUL_ERROR_INIT;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		gpul_fabric_set_link(f, 50000, 0, (unsigned)i, false); /* the leaf of the sender has no link left */
	for (uint64_t i = 0; i < 4; i++)
		gpul_fabric_set_link(f, 1000000, 0, (unsigned)i, true);
	add(f, 0, 5, 500 * CHUNK);
	assert_int_equal(gpul_fabric_run(f, 60000, &err), GPUL_OK);
	gpul_fabric_mark(f);
	gpul_fabric_link_about(f, gpul_fabric_to_host(f, 5), &before);
	assert_int_equal(gpul_fabric_run(f, 990000, &err), GPUL_OK);
	assert_int_equal(gpul_fabric_now_ns(f), 990000);
	gpul_fabric_link_about(f, gpul_fabric_to_host(f, 5), &after);
	assert_true(before.n_sent > 0);
	assert_int_equal(after.n_sent, before.n_sent);
	finish(f);
	gpul_fabric_flow_about(f, 0, &flow);
	assert_true(flow.recovered_ns > 1000000);
	assert_true(flow.n.timeouts > 0);
	gpul_fabric_destroy(f);
}

static void a_slow_host_delays_what_it_receives(void **state)
{
	gpul_fabric_options o = network();
	gpul_fabric_link_info link, all;

	(void)state;
	o.receive_ns = 5000;
	assert_true(run_incast(&o, 1, 100 * CHUNK, &link, &all) >= UINT64_C(100) * 5000);
}

static void wrong_options_are_refused(void **state)
{
	gpul_fabric_options good = network(), bad[5] = { good, good, good, good, good };
	static const char *const texts[] = { "4096 hosts in all", "spines", "Gbit/s", "does not fit", "grant_chunks" };
	gpul_fabric *f = NULL;

	(void)state;
	bad[0].n_leaves = 2000;
	bad[1].n_spines = 0;
	bad[2].gbit_per_s = 0;
	bad[3].queue_bytes = CHUNK;
	bad[4].rel.credit = 1;
	for (int i = 0; i < 5; i++) {
		gpul_error err = GPUL_ERROR_INIT;

		assert_int_equal(gpul_fabric_create(&bad[i], &f, &err), GPUL_EINVAL);
		assert_null(f);
		assert_non_null(strstr(err.text, texts[i]));
	}
	f = create(&good);
	assert_int_equal(gpul_fabric_add(f, &(gpul_fabric_flow){ 0, 16, 0, 1, 1 }, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_fabric_add(f, &(gpul_fabric_flow){ 3, 3, 0, 1, 1 }, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_fabric_add(f, &(gpul_fabric_flow){ 0, 1, 0, 513 * CHUNK, 1 }, NULL), GPUL_EINVAL);
	gpul_fabric_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_takes_the_time_of_its_bytes_and_links),
		cmocka_unit_test(a_link_carries_the_bytes_that_the_header_says),
		cmocka_unit_test(a_queue_never_holds_more_than_its_capacity),
		cmocka_unit_test(credit_bounds_the_queue_and_keeps_the_link_busy),
		cmocka_unit_test(ecmp_spreads_evenly_and_always_in_the_same_way),
		cmocka_unit_test(everything_arrives_in_spite_of_faults),
		cmocka_unit_test(a_seed_determines_everything),
		cmocka_unit_test(a_dead_link_carries_nothing_until_it_returns),
		cmocka_unit_test(a_slow_host_delays_what_it_receives),
		cmocka_unit_test(wrong_options_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
