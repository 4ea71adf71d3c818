/* test_reliable_report.c — what a reliable connection reports of itself: counters, round-trip times, and the way of one message's chunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/log_buckets.h"
#include "rdma/reliable/reliable.h"
#include "tests/rdma/two_ends.h"

static void a_bucket_of_a_logarithmic_histogram_has_values_that_are_near_its_middle(void **state)
{
	unsigned before = 0;

	(void)state;
	for (uint64_t x = 1; x < UINT64_C(1) << 40; x += x / 50 + 1)
		for (unsigned bits = 3; bits <= 6; bits += 3) {
			const double error = (double)gpul_log_bucket_middle(gpul_log_bucket(x, bits), bits) / (double)x - 1;

			assert_true(error <= 1.0 / (2 << bits) && error >= -1.0 / (2 << bits));
		}
	for (unsigned i = 0; i < 200; i++, before = i)
		assert_int_equal(gpul_log_bucket(gpul_log_bucket_middle(i, 3), 3), before);
}

/* Two ends with a network of 100 us in each direction, which loses the datagrams of `drops` (counted from 0; those of end 0 only). */
struct wire {
	gpul_rel *ends[2];
	uint64_t now_ns;
	const unsigned *drops;
	unsigned n_drops, n_sent;
};

static void open_wire(struct wire *w, unsigned n_paths)
{
	const gpul_rel_options o = { .n_paths = n_paths, .threshold = 3, .burst = 1, .rto_min_ns = 10000000, .control = GPUL_REL_FIXED };

	for (int i = 0; i < 2; i++) {
		gpul_rel_options own = o;

		own.token = (uint64_t)i, own.peer_token = (uint64_t)!i;
		assert_int_equal(gpul_rel_create(&own, 0, &w->ends[i], NULL), GPUL_OK);
	}
}

static bool is_dropped(const struct wire *w, unsigned n)
{
	for (unsigned i = 0; i < w->n_drops; i++)
		if (w->drops[i] == n)
			return true;
	return false;
}

/* Carry datagrams until end 0 has nothing in flight; each takes 100 us. */
static void run_wire(struct wire *w)
{
	static const char payload[1024];
	unsigned char bytes[GPUL_REL_MAX_HEADER + sizeof payload];
	gpul_rdma_failure why = { 0 };
	gpul_rel_datagram d;
	gpul_rel_event v;
	gpul_rel_chunk c;

	while (gpul_rel_backlog(w->ends[0]))
		for (int e = 0; e < 2; e++) {
			while (gpul_rel_next(w->ends[e], w->now_ns, &d)) {
				if (!e && is_dropped(w, w->n_sent++))
					continue;
				memcpy(bytes, d.header, d.header_bytes);
				assert_true(gpul_rel_receive(w->ends[!e], w->now_ns + 100000, bytes, d.header_bytes + d.bytes, &c, &why));
			}
			w->now_ns += 100000;
			for (int i = 0; i < 2; i++)
				while (gpul_rel_poll(w->ends[i], &v))
					;
			assert_true(gpul_rel_tick(w->ends[0], w->now_ns, &why));
		}
}

static void close_wire(struct wire *w)
{
	gpul_rel_destroy(w->ends[0]);
	gpul_rel_destroy(w->ends[1]);
}

static void percentiles_are_those_of_the_round_trips(void **state)
{
	struct wire w = { .now_ns = 1 };
	gpul_rel_path_info path;

	(void)state;
	open_wire(&w, 1);
	gpul_rel_path_about(w.ends[0], 0, &path);
	assert_int_equal(path.rtt_p50_ns, 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(gpul_rel_send(w.ends[0], &(gpul_rel_message){ .bytes = 100 }));
		run_wire(&w);
	}
	gpul_rel_path_about(w.ends[0], 0, &path);
	assert_true(path.rtt_p50_ns > 185000 && path.rtt_p50_ns < 215000); /* 200 us, in a bucket of at most 6 % */
	assert_true(path.rtt_p99_ns >= path.rtt_p50_ns && path.rtt_min_ns <= path.rtt_p50_ns * 17 / 16);
	close_wire(&w);
}

/* The second of two messages has chunks 8 to 15 on one path.  Chunk 9 is lost, and found by later packets; chunk 15 is lost as the last one,
 * so a time-out finds it. */
static void a_trace_has_the_steps_of_one_message(void **state)
{
	static const unsigned drops[] = { 9, 15 };
	static const struct {
		uint32_t max;
		unsigned n_recorded;
	} rooms[] = { { 64, 20 }, { 7, 7 } };

	(void)state;
	for (int room = 0; room < 2; room++) {
		struct wire w = { .now_ns = 1, .drops = drops, .n_drops = 2 };
		gpul_rel_step steps[64];
		gpul_rel_trace t = { .local = 8192, .bytes = 8192, .max = rooms[room].max, .steps = steps };
		unsigned n[4] = { 0 };

		open_wire(&w, 1);
		gpul_rel_record(w.ends[0], &t);
		for (unsigned i = 0; i < 2; i++)
			assert_true(gpul_rel_send(w.ends[0], &(gpul_rel_message){ .local = i * 8192, .bytes = 8192 }));
		run_wire(&w);
		assert_int_equal(t.n, 20);
		for (unsigned i = 0; i < rooms[room].n_recorded; i++) {
			n[steps[i].kind]++;
			assert_true(steps[i].chunk >= 8 && steps[i].chunk < 16 && (!i || steps[i].at_ns >= steps[i - 1].at_ns));
			if (steps[i].kind == GPUL_REL_LOST)
				assert_true(steps[i].chunk == 9 && steps[i].packet == 9 && steps[i].later >= 12);
			if (steps[i].kind == GPUL_REL_TIMED_OUT)
				assert_int_equal(steps[i].chunk, 15);
		}
		assert_int_equal(n[GPUL_REL_SENT], room ? 7 : 10);
		assert_int_equal(n[GPUL_REL_ACKED], room ? 0 : 8);
		assert_int_equal(n[GPUL_REL_LOST] + n[GPUL_REL_TIMED_OUT], room ? 0 : 2);
		close_wire(&w);
	}
}

static void a_connection_counts_only_with_a_reliable_backend(void **state)
{
	static const char *const backends[] = { "reliable-udp", "libfabric" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		gpul_rel_path_info paths[4] = { 0 };
		gpul_rel_counters n = { 0 };
		struct two_ends e;

		setenv("GPULOAD_TEST_BACKEND", backends[i], 1);
		two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1, .n_paths = i ? 0 : 3 } }, &e);
		assert_int_equal(gpul_rdma_conn_stats(e.conn[0], &n, paths, 2), i ? 0 : 3);
		assert_true(!i == (paths[1].alive && paths[1].window > 0 && !n.has_credit));
		assert_false(paths[2].alive);
		two_ends_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_of_a_logarithmic_histogram_has_values_that_are_near_its_middle),
		cmocka_unit_test(percentiles_are_those_of_the_round_trips),
		cmocka_unit_test(a_trace_has_the_steps_of_one_message),
		cmocka_unit_test(a_connection_counts_only_with_a_reliable_backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
