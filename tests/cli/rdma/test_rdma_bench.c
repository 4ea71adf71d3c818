/* test_rdma_bench.c — sizes, latencies, messages from the other end, patterns and output of gpuload rdma bench. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/rdma/rdma_bench_run.h"

/* ---- the command line ------------------------------------------------------------------------------------- */

static gpul_status parse(const char *const *words, struct rdma_bench_request *out)
{
	struct cli_args args;
	size_t n = 0;
	gpul_error err = { 0 };
	gpul_status st;

	while (words[n])
		n++;
	assert_int_equal(cli_parse(rdma_bench_opts, (char *const *)words, n, &args, &err), GPUL_OK);
	st = rdma_bench_parse(&args, out, &err);
	cli_args_free(&args);
	return st;
}
#define PARSE(out, ...) parse((const char *const[]){ __VA_ARGS__, NULL }, out)

static void ranges_end_with_their_last_size(void **state)
{
	static const uint64_t expected[] = { 7, 256, 512, 1000, 1, 4, 16, 17 };
	struct rdma_bench_request q;

	(void)state;
	assert_int_equal(PARSE(&q, "--sizes", "7,256:1000,1:17:4"), GPUL_OK);
	assert_int_equal(q.n_sizes, 8);
	assert_memory_equal(q.bytes, expected, sizeof expected);
	assert_int_equal(PARSE(&q, "--sizes", "1K:64K"), GPUL_OK);
	assert_int_equal(q.n_sizes, 7);
	assert_int_equal(PARSE(&q, "--sizes", "1:0"), GPUL_EINVAL);
	assert_int_equal(PARSE(&q, "--sizes", "8:16:1"), GPUL_EINVAL);
	assert_int_equal(PARSE(&q, "--sizes", ""), GPUL_EINVAL);
	assert_int_equal(PARSE(&q, "--sizes", "1,"), GPUL_EINVAL);
}

static void the_window_fits_into_the_buffer_for_each_size(void **state)
{
	static const char *const nreqs[] = { "1", "2", "8", "256" };
	struct rdma_bench_request q;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(PARSE(&q, "--sizes", "0,1,63,64,4095,4096,100K,30M", "--nreq", nreqs[i], "--nmsg", "2"), GPUL_OK);
		for (unsigned k = 0; k < q.n_sizes; k++) {
			const unsigned parts = rdma_bench_parts(&q.shape, q.bytes[k], 1 << 20);
			const unsigned window = rdma_bench_window(&q.shape, q.bytes[k], parts);

			assert_int_equal(parts, q.bytes[k] <= 1 << 20 ? 2 : 1);
			assert_in_range(window, q.shape.n_requests > 1 ? 2 : 1, q.shape.n_requests);
			assert_true(rdma_memory_stride(q.bytes[k]) >= q.bytes[k] + 64);
			assert_true(rdma_memory_stride(q.bytes[k]) * window * parts <= q.shape.buffer_bytes);
		}
	}
}

static void every_mode_has_a_default_for_sizes_and_requests(void **state)
{
	struct rdma_bench_request q;

	(void)state;
	for (int mode = 0; mode < RDMA_N_MODES; mode++) {
		assert_int_equal(PARSE(&q, "--mode", rdma_mode_names[mode]), GPUL_OK);
		assert_int_equal(q.shape.mode, mode);
		assert_true(q.n_sizes > 5 && q.shape.n_requests >= 8);
		assert_null(q.host);
	}
	assert_int_equal(PARSE(&q, "far.example", "--provider", "tcp"), GPUL_OK);
	assert_string_equal(q.host, "far.example");
	assert_string_equal(q.setup.rdma.backend, "libfabric");
}

/* ---- latencies ----------------------------------------------------------------------------------------------- */

static void percentiles_are_right_to_one_percent(void **state)
{
	struct rdma_histogram *h = calloc(2, sizeof *h);

	(void)state;
	assert_non_null(h);
	assert_int_equal(rdma_histogram_at(h, 0.5), 0);
	for (uint64_t ns = 1; ns < 1ull << 38; ns = ns * 5 / 4 + 1) {
		double seen;

		memset(h, 0, sizeof *h);
		rdma_histogram_add(h, ns);
		seen = (double)rdma_histogram_at(h, 0.99);
		assert_true(seen >= 0.99 * (double)ns && seen <= 1.01 * (double)ns);
	}
	rdma_histogram_add(h, UINT64_MAX); /* a latency greater than that of any bucket */
	memset(h, 0, sizeof *h);
	for (uint64_t i = 1; i <= 1000; i++)
		rdma_histogram_add(&h[i % 2], i * 1000);
	rdma_histogram_merge(&h[0], &h[1]);
	assert_int_equal(h[0].n, 1000);
	assert_in_range(rdma_histogram_at(h, 0.5), 495000, 505000);
	assert_in_range(rdma_histogram_at(h, 0.99), 980000, 1000000);
	free(h);
}

/* ---- messages from the other end ------------------------------------------------------------------------------ */

static const struct rdma_shape shape = { .mode = RDMA_TPT, .n_flows = 2, .n_parts = 2, .n_requests = 8, .buffer_bytes = 1 << 20 };

static struct rdma_hello good_hello(void)
{
	return (struct rdma_hello){
		.magic = RDMA_WIRE_MAGIC, .buffer_bytes = 1 << 20, .n_flows = 2, .flow = 1, .n_parts = 2, .n_requests = 8
	};
}

static struct rdma_plan good_plan(void)
{
	return (struct rdma_plan){ .magic = RDMA_WIRE_MAGIC,
				   .number = 7,
				   .bytes = 4096,
				   .count = 100,
				   .kind = RDMA_PLAN_MEASURE,
				   .window = 8,
				   .n_parts = 2,
				   .n_places = 16 };
}

#define REFUSED(struct_, good, check, change) \
	do { \
		struct_ m = good; \
		uint64_t bytes = sizeof m; \
		gpul_error err = { 0 }; \
		change; \
		assert_int_not_equal(check, GPUL_OK); \
		assert_true(err.status &&err.text[0]); \
	} while (0)
#define BAD_HELLO(change) REFUSED(struct rdma_hello, good_hello(), rdma_wire_check_hello(&m, bytes, &err), change)
#define BAD_PLAN(change)  REFUSED(struct rdma_plan, good_plan(), rdma_wire_check_plan(&m, bytes, 7, &shape, &err), change)

static void hellos_and_plans_out_of_range_are_refused(void **state)
{
	struct rdma_hello h = good_hello();
	struct rdma_plan p = good_plan();

	(void)state;
	memset(&h.client, 'x', sizeof h.client);
	assert_int_equal(rdma_wire_check_hello(&h, sizeof h, NULL), GPUL_OK);
	assert_int_equal(strlen(h.client.host), sizeof h.client.host - 1);
	BAD_HELLO(bytes--);
	BAD_HELLO(m.magic ^= 1);
	BAD_HELLO(m.n_flows = 0);
	BAD_HELLO(m.n_flows = RDMA_MOST_FLOWS + 1);
	BAD_HELLO(m.flow = 2);
	BAD_HELLO(m.mode = RDMA_N_MODES);
	BAD_HELLO(m.n_parts = 0);
	BAD_HELLO(m.n_parts = 9);
	BAD_HELLO(m.n_requests = 257);
	BAD_HELLO(m.n_requests = m.n_parts = UINT32_MAX);
	BAD_HELLO(m.flush = 2);
	BAD_HELLO(m.buffer_bytes = 0);
	BAD_HELLO(m.buffer_bytes = UINT64_MAX);
	assert_int_equal(rdma_wire_check_plan(&p, sizeof p, 7, &shape, NULL), GPUL_OK);
	BAD_PLAN(bytes++);
	BAD_PLAN(m.number = 8);
	BAD_PLAN(m.kind = RDMA_PLAN_END + 1);
	BAD_PLAN(m.count = 0);
	BAD_PLAN(m.count = UINT64_MAX);
	BAD_PLAN(m.window = 0);
	BAD_PLAN(m.window = UINT32_MAX);
	BAD_PLAN(m.n_parts = 3);
	BAD_PLAN(m.bytes = 1 << 20);
	BAD_PLAN(m.bytes = UINT64_MAX);
	BAD_PLAN(m.n_places = 17);
	BAD_PLAN(m.n_places = 0);
	BAD_PLAN(m.kind = RDMA_PLAN_CHECK); /* a check needs a place for each message, and at most `window` messages */
}

static void random_plans_stay_inside_the_buffer(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		struct rdma_plan p = good_plan();
		unsigned char *byte = (unsigned char *)&p;

		for (unsigned k = 0; k < 3; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			byte[16 + (random >> 33) % (sizeof p - 16)] = (unsigned char)(random >> 56);
		}
		if (rdma_wire_check_plan(&p, sizeof p, 7, &shape, NULL) || p.kind == RDMA_PLAN_END)
			continue;
		assert_true(p.bytes <= shape.buffer_bytes && p.window <= RDMA_MOST_REQUESTS && p.n_parts <= shape.n_parts);
		assert_true(rdma_memory_stride(p.bytes) * p.window * p.n_parts <= shape.buffer_bytes);
		assert_in_range(p.n_places, 1, p.window * p.n_parts);
	}
}

static void the_error_of_the_server_is_reported(void **state)
{
	struct rdma_welcome w = { .magic = RDMA_WIRE_MAGIC, .err = { .status = GPUL_ENOMEM, .text = "too much" } };
	struct rdma_answer a = { .magic = RDMA_WIRE_MAGIC, .number = 3, .ran = 1 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(rdma_wire_check_welcome(&w, sizeof w, &err), GPUL_ENOMEM);
	assert_string_equal(err.text, "the server reports: too much");
	w.err.status = (gpul_status)77;
	memset(w.err.text, 'x', sizeof w.err.text);
	assert_int_equal(rdma_wire_check_welcome(&w, sizeof w, NULL), GPUL_ESYS);
	assert_int_equal(rdma_wire_check_answer(&a, sizeof a, 3, true, NULL), GPUL_OK);
	assert_int_equal(rdma_wire_check_answer(&a, sizeof a, 3, false, NULL), GPUL_EFORMAT);
	assert_int_equal(rdma_wire_check_answer(&a, sizeof a, 4, true, NULL), GPUL_EFORMAT);
	a.err.status = GPUL_EFORMAT;
	assert_int_equal(rdma_wire_check_answer(&a, sizeof a, 3, true, NULL), GPUL_EFORMAT);
}

/* ---- patterns -------------------------------------------------------------------------------------------------- */

static void a_wrong_byte_at_any_place_is_found(void **state)
{
	enum { BYTES = 65536 + 13 };
	unsigned char *memory = malloc(BYTES);
	struct rdma_buffers b = { .cpu = memory, .at = 1 << 20 };
	const struct rdma_pattern pattern = { 5, false, 1, 2 };
	const struct rdma_pattern others[] = { { 6, false, 1, 2 }, { 5, true, 1, 2 }, { 5, false, 0, 2 }, { 5, false, 1, 3 } };
	char text[64];

	(void)state;
	assert_non_null(memory);
	for (size_t i = 0; i < BYTES; i += i < 70 ? 1 : 997) {
		gpul_error err = { 0 };

		assert_int_equal(rdma_buffers_fill(&b, b.at, BYTES, &pattern, NULL), GPUL_OK);
		assert_int_equal(rdma_buffers_check(&b, b.at, BYTES, &pattern, NULL), GPUL_OK);
		memory[i] ^= 0x10;
		assert_int_equal(rdma_buffers_check(&b, b.at, BYTES, &pattern, &err), GPUL_EFORMAT);
		snprintf(text, sizeof text, "byte %zu is 0x%02x, expected 0x%02x", i, memory[i], memory[i] ^ 0x10);
		assert_non_null(strstr(err.text, text));
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(rdma_buffers_fill(&b, b.at, BYTES, &others[i], NULL), GPUL_OK);
		assert_int_equal(rdma_buffers_check(&b, b.at, BYTES, &pattern, NULL), GPUL_EFORMAT);
	}
	assert_int_equal(rdma_buffers_fill(&b, b.at, 8, NULL, NULL), GPUL_OK);
	assert_int_equal(rdma_buffers_check(&b, b.at, 8, &pattern, NULL), GPUL_EFORMAT);
	free(memory);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static struct rdma_bench_result *make_result(enum rdma_mode mode)
{
	struct rdma_bench_result *r = calloc(1, sizeof *r);

	assert_non_null(r);
	*r = (struct rdma_bench_result){
		.client = true, .shape = shape, .n_rows = 2, .n_threads = 1, .conn = { .n_qps = 4, .notice_ns = 5000000000 }
	};
	r->shape.mode = mode;
	snprintf(r->here.device, sizeof r->here.device, "nic<0>&");
	for (unsigned i = 0; i < 2; i++)
		r->row[i] = (struct rdma_row){ .bytes = 8u << 12 * i,
					       .iterations = 500,
					       .window = 8,
					       .n_parts = 1,
					       .checked = 64,
					       .here = { 1000, 8000u << 12 * i, 1000000, 1500, 2500 },
					       .there = { 999, 7992u << 12 * i, 1000000, i * 2000, i * 3000 } };
	return r;
}

static void the_table_has_both_ends(void **state)
{
	struct rdma_bench_result *r = make_result(RDMA_TPT);
	struct out o = { 0 };

	(void)state;
	rdma_bench_text(r, &o);
	out_bytes(&o, "", 1);
	assert_non_null(strstr(o.at, "mode tpt, 2 flows of 4 QPs, 8 requests in flight, 2 messages per receive"));
	assert_non_null(strstr(o.at, "a dead peer is detected within 5 s"));
	assert_non_null(
		strstr(o.at, "         8        1000    0.0640   0.0080      1000      1.50      2.50    0.0639         -         -\n"));
	assert_non_null(
		strstr(o.at, "     32768        1000       262     32.8      1000      1.50      2.50       262      2.00      3.00\n"));
	out_free(&o);
	r->client = false;
	rdma_bench_text(r, &o);
	out_bytes(&o, "", 1);
	assert_non_null(strstr(o.at, "         8        1000    0.0640   0.0080      1000      1.50      2.50\n"));
	out_free(&o);
	free(r);
}

static void the_plot_has_one_curve_for_each_measured_value(void **state)
{
	struct rdma_bench_result *r = make_result(RDMA_LAT);
	struct out o = { 0 };

	(void)state;
	rdma_bench_svg(r, &o);
	out_bytes(&o, "", 1);
	assert_non_null(strstr(o.at, "gpuload rdma bench, lat: nic?0>?,"));
	assert_non_null(strstr(o.at, "half a round trip, us"));
	assert_non_null(strstr(o.at, "<title>this end, p50, 32K: 1.5 us</title>"));
	assert_non_null(strstr(o.at, "<title>server, p99, 32K: 3 us</title>"));
	assert_null(strstr(o.at, "<title>server, p50, 8: ")); /* this percentile was not measured */
	assert_null(strstr(o.at, "nan"));
	out_free(&o);
	r->n_rows = 0;
	rdma_bench_svg(r, &o);
	out_bytes(&o, "", 1);
	assert_null(strstr(o.at, "inf"));
	out_free(&o);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_end_with_their_last_size),
		cmocka_unit_test(the_window_fits_into_the_buffer_for_each_size),
		cmocka_unit_test(every_mode_has_a_default_for_sizes_and_requests),
		cmocka_unit_test(percentiles_are_right_to_one_percent),
		cmocka_unit_test(hellos_and_plans_out_of_range_are_refused),
		cmocka_unit_test(random_plans_stay_inside_the_buffer),
		cmocka_unit_test(the_error_of_the_server_is_reported),
		cmocka_unit_test(a_wrong_byte_at_any_place_is_found),
		cmocka_unit_test(the_table_has_both_ends),
		cmocka_unit_test(the_plot_has_one_curve_for_each_measured_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
