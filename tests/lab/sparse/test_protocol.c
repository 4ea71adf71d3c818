/* test_protocol.c — a run of the sparse all-reduce's protocol with messages that were computed by hand, and invalid messages. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "lab/sparse/protocol.h"

enum { END = 100, MOST = 2 };

static gpul_sparse_contribution result(gpul_sparse_worker *w, const gpul_sparse_result *r)
{
	gpul_sparse_contribution c = { 0 };
	gpul_error err = { 0 };

	assert_int_equal(gpul_sparse_worker_result(w, r->round, r->limit, &c, &err), GPUL_OK);
	return c;
}

static void take(gpul_sparse_aggregator *a, uint32_t rank, const gpul_sparse_contribution *c, const uint32_t *index)
{
	gpul_error err = { 0 };

	assert_int_equal(gpul_sparse_aggregator_take(a, rank, c, index + c->first, &err), GPUL_OK);
}

/* Two workers send at most two blocks each: the round's limit is the first block that would be a worker's third. */
static void a_limit_requests_as_many_blocks_as_fit(void **state)
{
	static const uint32_t x[] = { 3, 40, 50, 51, 90 }, y[] = { 40, 95 };
	gpul_sparse_worker w[2];
	gpul_sparse_aggregator a;
	gpul_sparse_contribution c[2] = { gpul_sparse_worker_begin(&w[0], x, 5, END, MOST),
					  gpul_sparse_worker_begin(&w[1], y, 2, END, MOST) };
	gpul_sparse_result r;
	int32_t position[GPUL_COMM_MAX_RANKS];
	uint32_t block;

	(void)state;
	assert_int_equal(c[0].next, 3);
	assert_int_equal(c[0].reach, 50);
	assert_int_equal(c[1].reach, END);
	gpul_sparse_aggregator_begin(&a, 2, END, MOST);
	take(&a, 1, &c[1], y);
	assert_false(gpul_sparse_aggregator_ready(&a));
	take(&a, 0, &c[0], x);
	assert_true(gpul_sparse_aggregator_ready(&a));
	assert_false(gpul_sparse_aggregator_block(&a, &block, position));
	r = gpul_sparse_aggregator_close(&a);
	assert_int_equal(r.limit, 50);
	for (int k = 0; k < 2; k++)
		c[k] = result(&w[k], &r);
	assert_int_equal(c[0].n, 2);
	assert_int_equal(c[1].n, 1);
	assert_int_equal(c[0].reach, 90);
	take(&a, 0, &c[0], x);
	take(&a, 1, &c[1], y);
	assert_true(gpul_sparse_aggregator_block(&a, &block, position));
	assert_true(block == 3 && position[0] == 0 && position[1] == -1);
	assert_true(gpul_sparse_aggregator_block(&a, &block, position));
	assert_true(block == 40 && position[0] == 1 && position[1] == 0);
	assert_false(gpul_sparse_aggregator_block(&a, &block, position));
	r = gpul_sparse_aggregator_close(&a);
	assert_true(r.round == 1 && r.limit == 90);
}

static void a_stream_without_blocks_ends_at_once(void **state)
{
	gpul_sparse_worker w;
	gpul_sparse_aggregator a;
	gpul_sparse_contribution c = gpul_sparse_worker_begin(&w, NULL, 0, END, MOST);
	gpul_sparse_result r;
	gpul_error err = { 0 };

	(void)state;
	gpul_sparse_aggregator_begin(&a, 1, END, MOST);
	assert_int_equal(gpul_sparse_aggregator_take(&a, 0, &c, NULL, &err), GPUL_OK);
	r = gpul_sparse_aggregator_close(&a);
	assert_true(r.limit == 0 && a.done);
	(void)result(&w, &r);
	assert_true(w.done);
	assert_int_equal(gpul_sparse_worker_result(&w, 0, 1, &c, &err), GPUL_EFORMAT);
}

/* ---- wrong messages ---------------------------------------------------------------------------------------------- */

static const uint32_t good[] = { 10, 20, 30 };

/* An aggregator in round 1 with limit 30; worker 0 has announced block 10, worker 1 nothing below 100. */
static void begin_round_1(gpul_sparse_aggregator *a)
{
	const gpul_sparse_contribution hello = { .next = 10, .reach = 30 }, empty = { .next = END, .reach = END };

	gpul_sparse_aggregator_begin(a, 2, END, MOST);
	take(a, 0, &hello, good);
	take(a, 1, &empty, good);
	assert_int_equal(gpul_sparse_aggregator_close(a).limit, 30);
}

static void refuses(uint32_t rank, gpul_sparse_contribution c, const uint32_t *index, const char *text)
{
	gpul_sparse_aggregator a;
	gpul_error err = { 0 };

	begin_round_1(&a);
	assert_int_equal(gpul_sparse_aggregator_take(&a, rank, &c, index, &err), GPUL_EFORMAT);
	if (!strstr(err.text, text))
		fail_msg("'%s' does not contain '%s'", err.text, text);
}

static void an_aggregator_refuses_what_no_worker_sends(void **state)
{
	static const uint32_t backwards[] = { 10, 10 }, other[] = { 11, 20 }, above[] = { 10, 30 };
	gpul_sparse_aggregator a;
	gpul_error err = { 0 };
	const gpul_sparse_contribution right = { .round = 1, .n = 2, .next = 30, .reach = END };

	(void)state;
	refuses(0, (gpul_sparse_contribution){ .round = 2, .n = 2, .next = 30, .reach = END }, good, "rank 0 sent data for round 2");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 3, .next = 31, .reach = END }, good,
		"rank 0 sent 3 blocks in round 1: expected at most 2");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 0, .next = 30, .reach = END }, good, "rank 0 sent 0 blocks in round 1");
	refuses(1, (gpul_sparse_contribution){ .round = 1, .n = 1, .next = END, .reach = END }, good, "rank 1 sent 1 blocks in round 1");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 2, .next = 30, .reach = END }, backwards,
		"rank 0 sent block 10 in round 1 at position 1");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 2, .next = 30, .reach = END }, other,
		"rank 0 sent block 11 in round 1 at position 0");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 2, .next = 31, .reach = END }, above,
		"rank 0 sent block 30 in round 1: expected blocks below 30");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 2, .next = 29, .reach = END }, good, "rank 0: next = 29");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 2, .next = 101, .reach = 101 }, good, "next = 101");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 2, .next = 40, .reach = 40 }, good, "reach = 40");
	refuses(0, (gpul_sparse_contribution){ .round = 1, .n = 2, .next = END, .reach = 99 }, good, "reach = 99");
	refuses(2, right, good, "rank 2");
	begin_round_1(&a);
	take(&a, 0, &right, good);
	assert_int_equal(gpul_sparse_aggregator_take(&a, 0, &right, good, &err), GPUL_EFORMAT); /* the same contribution a second time */
}

static void a_worker_refuses_what_no_aggregator_sends(void **state)
{
	/* clang-format off */
	static const struct { uint32_t round, limit; const char *text; } cases[] = {
		{ 1, 30, "received a result of round 1" }, { 0, 0, "the stream ends in round 0" }, { 0, END + 1, "received a limit of 101" },
		{ 0, 31, "requests 3 blocks" },
	};
	/* clang-format on */

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_sparse_worker w;
		gpul_sparse_contribution c;
		gpul_error err = { 0 };

		(void)gpul_sparse_worker_begin(&w, good, 3, END, MOST);
		assert_int_equal(gpul_sparse_worker_result(&w, cases[i].round, cases[i].limit, &c, &err), GPUL_EFORMAT);
		if (!strstr(err.text, cases[i].text))
			fail_msg("'%s' does not contain '%s'", err.text, cases[i].text);
	}
}

/* Messages of random numbers must be refused or accepted as valid, and must not cause reads outside of the buffers. */
static void random_contributions_do_no_harm(void **state)
{
	uint64_t seed = 7;
	uint32_t index[MOST];
	int32_t position[GPUL_COMM_MAX_RANKS];
	uint32_t block, n_taken = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		gpul_sparse_aggregator a;
		gpul_error err = { 0 };
		uint32_t v[6];

		for (int k = 0; k < 6; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			v[k] = (uint32_t)(seed >> 60 ? seed >> 33 & 127 : seed >> 32);
		}
		index[0] = v[3] % 2 ? 10 : v[3];
		index[1] = v[4];
		begin_round_1(&a);
		if (gpul_sparse_aggregator_take(&a, 0,
						&(gpul_sparse_contribution){ .round = 1, .n = v[0] % 4, .next = v[1], .reach = v[2] },
						index, &err))
			continue;
		n_taken++;
		take(&a, 1, &(gpul_sparse_contribution){ .round = 1, .next = END, .reach = END }, good);
		while (gpul_sparse_aggregator_block(&a, &block, position))
			assert_true(block < 30 && position[0] < MOST);
		(void)gpul_sparse_aggregator_close(&a);
	}
	assert_true(n_taken > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_requests_as_many_blocks_as_fit),
		cmocka_unit_test(a_stream_without_blocks_ends_at_once),
		cmocka_unit_test(an_aggregator_refuses_what_no_worker_sends),
		cmocka_unit_test(a_worker_refuses_what_no_aggregator_sends),
		cmocka_unit_test(random_contributions_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
