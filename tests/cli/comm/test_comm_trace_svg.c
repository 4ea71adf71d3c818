/* test_comm_trace_svg.c — the picture of gpuload comm --trace FILE.svg: the drawn events and their positions. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/comm/trace/comm_trace.h"

enum { RANKS = 2, CALLS = 3, CALL_NS = 860000 /* at 1 us per pixel */, MOST_EVENTS = 4096 };

static struct comm_result *result;
static gpul_comm_event *events[RANKS];
static struct comm_rank_trace ranks[RANKS];
static const struct comm_section section = {
	.begin_ns = 1000, .end_ns = (uint64_t)10 * CALL_NS, .bytes = 65536, .in = 1, .iterations = CALLS
};

static void add_event(int rank, uint32_t kind, uint64_t begin_ns, uint64_t end_ns, uint32_t block, int32_t peer)
{
	assert_true(ranks[rank].n < MOST_EVENTS);
	events[rank][ranks[rank].n++] = (gpul_comm_event){
		.begin_ns = begin_ns, .end_ns = end_ns, .kind = kind, .block = block, .peer = peer
	};
}

/* Add calls in which every block of every rank waits in the first half and reduces in the second half. */
static void add_calls(uint32_t n_blocks)
{
	for (int r = 0; r < RANKS; r++)
		for (uint64_t call = 0; call < CALLS; call++)
			for (uint32_t b = 0; b < n_blocks; b++) {
				const uint64_t at = 2000 + call * (CALL_NS + 10);

				add_event(r, GPUL_COMM_EVENT_WAIT_DATA, at, at + CALL_NS / 2, b, 1 - r);
				add_event(r, GPUL_COMM_EVENT_REDUCE, at + CALL_NS / 2, at + CALL_NS, b, 1 - r);
				add_event(r, GPUL_COMM_EVENT_KERNEL, at, at + CALL_NS, b, -1);
			}
}

static char *draw(void)
{
	struct out o = { 0 };

	comm_trace_svg(result, ranks, &o);
	out_bytes(&o, "", 1);
	assert_false(o.failed);
	return o.at;
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
		n++;
	return n;
}

static int begin(void **state)
{
	(void)state;
	result = calloc(1, sizeof *result);
	for (int r = 0; r < RANKS; r++) {
		events[r] = calloc(MOST_EVENTS, sizeof *events[r]);
		ranks[r] = (struct comm_rank_trace){ .events = events[r], .sections = &section, .n_sections = 1 };
	}
	result->n_ranks = RANKS;
	result->q.call = GPUL_COMM_ALLREDUCE;
	result->n_rows = 1;
	result->row[0].bytes = section.bytes;
	result->row[0].plan = (gpul_comm_plan){ .algo = GPUL_COMM_RING, .proto = GPUL_COMM_SIMPLE, .n_blocks = 2, .n_threads = 96 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int r = 0; r < RANKS; r++)
		free(events[r]);
	free(result);
	return 0;
}

static void the_last_call_is_drawn_to_scale(void **state)
{
	char *svg;

	(void)state;
	add_calls(2);
	svg = draw();
	assert_int_equal(count(svg, "<path class=\"data\""), 1);
	assert_int_equal(count(svg, "M118.0 "), 2 * RANKS * 2 + 1); /* the call and the wait of each block, and the axis, begin here */
	assert_int_equal(count(svg, "h430.0v14h-430.0z"), 2 * RANKS * 2); /* waits and reductions, each half a call long */
	assert_int_equal(count(svg, "M548.0 "), RANKS * 2);               /* the reduction begins in the middle */
	assert_int_equal(count(svg, ">rank 0</text>"), 1 + 2);            /* the label of the row, and those of the waits of rank 1 */
	assert_non_null(strstr(svg, "64K of f16, 2 ranks"));
	assert_non_null(strstr(svg, "algorithm ring, protocol simple, 2 blocks of 96 threads; the last timed call, in place"));
	assert_null(strstr(svg, "class=\"credit\"")); /* the legend lists only events that the picture has */
	free(svg);
}

/* A bad sample of a GPU's clock shifts all times of a rank; here, to before the start of the section. */
static void a_wrong_clock_does_not_change_which_call_is_drawn(void **state)
{
	char *svg;

	(void)state;
	add_calls(2);
	for (size_t i = 0; i < ranks[1].n; i++) {
		events[1][i].begin_ns -= 1999;
		events[1][i].end_ns -= 1999;
	}
	svg = draw();
	assert_int_equal(count(svg, "<path class=\"reduce\""), 1);
	assert_int_equal(count(svg, "v14h"), 2 * RANKS * 2); /* wait and reduction of each block, once */
	assert_non_null(strstr(svg, "the last timed call"));
	free(svg);
}

/* In each call, each block makes two sends and so has two KERNEL events, and the blocks may end in any order. */
static void a_call_may_have_several_kernel_events_of_a_block(void **state)
{
	char *svg;

	(void)state;
	for (int r = 0; r < RANKS; r++)
		for (uint64_t i = 0; i < (uint64_t)2 * CALLS; i++) {
			const uint64_t at = 2000 + i * 1000;

			add_event(r, GPUL_COMM_EVENT_SEND, at, at + 500, (uint32_t)r, 1 - r);
			add_event(r, GPUL_COMM_EVENT_KERNEL, at, at + 600, (uint32_t)r, -1);
		}
	svg = draw();
	assert_int_equal(count(svg, "v14h"), 2 * RANKS);
	assert_int_equal(count(svg, "v4h"), 2 * RANKS);
	free(svg);
}

static void a_trace_that_has_lost_events_shows_the_last_recorded_call(void **state)
{
	char *svg;

	(void)state;
	add_calls(2);
	ranks[1].n -= 5; /* drop block 1's last call, and the end of block 0's last call */
	ranks[1].n_lost = 5;
	svg = draw();
	assert_int_equal(count(svg, "v14h"), 2 * RANKS * 2);
	assert_non_null(strstr(svg, "the last recorded call"));
	free(svg);
}

static void too_many_blocks_are_left_out_and_counted(void **state)
{
	char *svg;

	(void)state;
	add_calls(64);
	svg = draw();
	assert_int_equal(count(svg, ">block "), 48);
	assert_non_null(strstr(svg, "the first 24 of 64 blocks of each rank"));
	free(svg);
}

static void a_rank_without_events_has_a_row(void **state)
{
	char *svg;

	(void)state;
	add_event(0, GPUL_COMM_EVENT_KERNEL, 2000, 3000, 0, -1);
	svg = draw();
	assert_int_equal(count(svg, "class=\"panel\""), RANKS);
	free(svg);
	ranks[0].n = 0;
	svg = draw();
	assert_int_equal(count(svg, "</svg>"), 1);
	assert_int_equal(count(svg, "class=\"data\""), 0);
	free(svg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_last_call_is_drawn_to_scale, begin, end),
		cmocka_unit_test_setup_teardown(a_wrong_clock_does_not_change_which_call_is_drawn, begin, end),
		cmocka_unit_test_setup_teardown(a_call_may_have_several_kernel_events_of_a_block, begin, end),
		cmocka_unit_test_setup_teardown(a_trace_that_has_lost_events_shows_the_last_recorded_call, begin, end),
		cmocka_unit_test_setup_teardown(too_many_blocks_are_left_out_and_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_rank_without_events_has_a_row, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
