/* test_comm_trace_net.c — the network in a trace: tracks of puts, and arrows to the steps of the kernels. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/comm/trace/comm_trace.h"

enum { RANKS = 2, BLOCK_TRACK = 2 };

static const struct comm_section section = { .begin_ns = 1000, .end_ns = 90000, .bytes = 4096, .iterations = 1 };
static struct comm_result *result;
static gpul_comm_event events[RANKS][8];
static gpul_comm_net_event net[RANKS][8];
static struct comm_rank_trace ranks[RANKS];

static void add_step(int rank, uint32_t kind, uint64_t begin_ns, uint64_t end_ns, uint32_t block, uint64_t step)
{
	events[rank][ranks[rank].n++] = (gpul_comm_event){
		.begin_ns = begin_ns, .end_ns = end_ns, .kind = kind, .peer = 1 - rank, .block = block, .step = step
	};
}

static void add_put(int rank, uint64_t begin_ns, uint64_t end_ns, uint32_t channel, uint64_t step)
{
	net[rank][ranks[rank].n_net++] = (gpul_comm_net_event){
		.begin_ns = begin_ns, .end_ns = end_ns, .kind = GPUL_COMM_NET_SLOT, .peer = 1 - rank, .channel = channel, .step = step
	};
}

static char *draw(uint64_t *n_left_out)
{
	struct json j = { 0 };

	json_begin(&j, NULL, '[');
	*n_left_out = comm_trace_net_json(result, ranks, BLOCK_TRACK, 0, &j);
	json_end(&j, ']');
	out_bytes(&j.out, "", 1);
	assert_false(j.out.failed);
	return j.out.at;
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
	result->n_ranks = RANKS;
	result->q.call = GPUL_COMM_ALLREDUCE;
	for (int r = 0; r < RANKS; r++)
		ranks[r] = (struct comm_rank_trace){ .events = events[r], .sections = &section, .n_sections = 1, .net = net[r] };
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(result);
	return 0;
}

static void a_put_is_linked_to_the_steps_of_both_kernels(void **state)
{
	uint64_t n_left_out;
	char *text;

	(void)state;
	add_step(0, GPUL_COMM_EVENT_SEND, 2000, 3000, 1, 17);
	add_step(0, GPUL_COMM_EVENT_SEND, 2000, 3000, 0, 17); /* a step on another channel */
	add_put(0, 3100, 5000, 1, 17);
	add_step(1, GPUL_COMM_EVENT_REDUCE, 4500, 6000, 1, 17);
	text = draw(&n_left_out);
	assert_int_equal(n_left_out, 0);
	assert_int_equal(count(text, "\"put to rank 1, step 17\""), 1);
	assert_int_equal(count(text, "\"cat\":\"posted\""), 2);
	assert_int_equal(count(text, "\"cat\":\"arrived\""), 2);
	assert_non_null(strstr(text, "\"ph\":\"s\",\"pid\":1,\"tid\":3,\"name\":\"posted\",\"cat\":\"posted\",\"id\":1,\"ts\":3}"));
	assert_non_null(strstr(text, "\"ph\":\"f\",\"pid\":2,\"tid\":3,\"name\":\"arrived\",\"cat\":\"arrived\",\"id\":2,\"ts\":5"));
	free(text);
}

/* A reduction reads step 5 and sends step 30; the POST after it has these numbers, and ends later. */
static void a_step_that_receives_and_sends_is_linked_to_both_puts(void **state)
{
	uint64_t n_left_out;
	char *text;

	(void)state;
	add_put(0, 1000, 2500, 0, 5);
	add_step(1, GPUL_COMM_EVENT_REDUCE, 2000, 3000, 0, 5);
	add_step(1, GPUL_COMM_EVENT_RECV, 2000, 3600, 1, 5);
	add_step(1, GPUL_COMM_EVENT_POST, 2000, 3500, 0, 30);
	add_put(1, 4000, 5000, 0, 30);
	text = draw(&n_left_out);
	assert_non_null(strstr(text, "\"ph\":\"f\",\"pid\":2,\"tid\":2,\"name\":\"arrived\""));
	assert_non_null(strstr(text, "\"ph\":\"s\",\"pid\":2,\"tid\":2,\"name\":\"posted\",\"cat\":\"posted\",\"id\":2,\"ts\":3}"));
	free(text);
}

/* Block 4 sends for channel 0, and block 5 for channel 1; blocks 2 and 3 of the other rank receive. */
static void the_channels_of_a_group_are_counted_from_its_first_block(void **state)
{
	uint64_t n_left_out;
	char *text;

	(void)state;
	result->q.call = GPUL_COMM_ALLTOALL;
	for (uint32_t b = 0; b < 2; b++) {
		add_step(0, GPUL_COMM_EVENT_SEND, 2000, 3000, 4 + b, 9);
		add_put(0, 3100, 4000, b, 9);
		add_step(1, GPUL_COMM_EVENT_RECV, 3900, 6000, 2 + b, 9);
	}
	text = draw(&n_left_out);
	assert_int_equal(count(text, "\"cat\":\"posted\""), 4);
	assert_int_equal(count(text, "\"cat\":\"arrived\""), 4);
	assert_int_equal(count(text, "\"ph\":\"s\",\"pid\":1,\"tid\":6,\"name\":\"posted\""), 1);  /* tid 6 is block 4 */
	assert_int_equal(count(text, "\"ph\":\"f\",\"pid\":2,\"tid\":5,\"name\":\"arrived\""), 1); /* tid 5 is block 3 */
	assert_int_equal(count(text, "\"network "), 2);                                            /* the two puts overlap */
	free(text);
}

static void an_arrow_backwards_is_left_out_and_counted(void **state)
{
	uint64_t n_left_out;
	char *text;

	(void)state;
	add_put(0, 3100, 4000, 0, 9);
	add_step(1, GPUL_COMM_EVENT_RECV, 1000, 2000, 0, 9); /* because of a clock error, the step is received before it is sent */
	text = draw(&n_left_out);
	assert_int_equal(n_left_out, 1);
	assert_int_equal(count(text, "\"cat\""), 0);
	free(text);
}

static void puts_that_follow_each_other_share_a_track(void **state)
{
	uint64_t n_left_out;
	char *text;

	(void)state;
	add_put(1, 3000, 4000, 0, 2); /* puts are added in the order of their ends */
	add_put(1, 2000, 5000, 0, 1);
	add_put(1, 4000, 6000, 0, 3);
	text = draw(&n_left_out);
	assert_int_equal(count(text, "\"network "), 2);
	assert_int_equal(count(text, "\"put to rank 0"), 3);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_put_is_linked_to_the_steps_of_both_kernels, begin, end),
		cmocka_unit_test_setup_teardown(a_step_that_receives_and_sends_is_linked_to_both_puts, begin, end),
		cmocka_unit_test_setup_teardown(the_channels_of_a_group_are_counted_from_its_first_block, begin, end),
		cmocka_unit_test_setup_teardown(an_arrow_backwards_is_left_out_and_counted, begin, end),
		cmocka_unit_test_setup_teardown(puts_that_follow_each_other_share_a_track, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
