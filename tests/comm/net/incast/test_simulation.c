/* test_simulation.c — receiver-driven admission in a simulated network: fair, conserving, without starvation, for random plans. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "tests/comm/net/incast/sim.h"

enum { N_SEEDS = 500 };

/* Make a random plan from a seed, with a window of one bandwidth-delay product plus two grants. */
static struct sim_plan plan_of(uint64_t seed)
{
	uint64_t random = seed * 977 + 1;
	struct sim_plan p = { .seed = seed,
			      .n_senders = 1 + (unsigned)sim_random(&random, SIM_SENDERS),
			      .grant_bytes = 500 + sim_random(&random, 8000),
			      .ns_per_byte = 1 + sim_random(&random, 8),
			      .delay_ns = 1000 + sim_random(&random, 20000),
			      .jitter_ns = 1 + sim_random(&random, 4000),
			      .n_messages = 20 + (unsigned)sim_random(&random, 40),
			      .dies = -1,
			      .stalls = -1 };

	for (unsigned i = 0; i < p.n_senders; i++)
		p.message_bytes[i] = 1 + sim_random(&random, 20000);
	p.window_bytes = 2 * (p.delay_ns + p.jitter_ns) / p.ns_per_byte + 2 * p.grant_bytes;
	return p;
}

static void all_messages_arrive_and_the_queue_stays_within_the_window(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
		const struct sim_plan p = plan_of(seed);
		const struct sim_figures f = sim_run(&p);

		assert_int_equal(f.n_unfinished, 0);
		assert_int_equal(f.late_bytes, 0);
		assert_true(f.most_queued <= p.window_bytes);
	}
}

static void the_link_is_busy_while_messages_wait(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
		struct sim_plan p = plan_of(seed);
		struct sim_figures f;

		p.backlogged = true;
		for (unsigned i = 0; i < p.n_senders; i++)
			p.message_bytes[i] = 8 * p.grant_bytes;
		f = sim_run(&p);
		/* Except in the first and the last round trip, the link is always busy, but for up to 8 % of the time, because some grants are short. */
		assert_true((double)f.end_ns <= 1.08 * (double)(f.bytes * p.ns_per_byte) + 8.0 * (double)(p.delay_ns + p.jitter_ns));
	}
}

static void backlogged_senders_get_equal_shares_whatever_their_messages(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
		struct sim_plan p = plan_of(seed);
		struct sim_figures f;
		uint64_t least = UINT64_MAX, most = 0;

		p.backlogged = true;
		f = sim_run(&p);
		for (unsigned i = 0; i < p.n_senders; i++) {
			least = f.share[i] < least ? f.share[i] : least;
			most = f.share[i] > most ? f.share[i] : most;
		}
		/* The shares of two senders differ by at most one grant of each, plus the bytes in flight. */
		assert_true(most - least <= 2 * p.grant_bytes + p.window_bytes);
	}
}

static void a_short_message_waits_for_one_round_not_for_the_long_ones(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
		struct sim_plan p = plan_of(seed);
		uint64_t random = seed, round_ns;
		struct sim_figures f;

		for (unsigned i = 0; i < p.n_senders; i++)
			p.message_bytes[i] = 1 + sim_random(&random, p.grant_bytes);
		f = sim_run(&p);
		/* No message is longer than a grant, so each message waits for at most one round of all senders. */
		round_ns = 2 * p.n_senders * p.grant_bytes * p.ns_per_byte + 4 * (p.delay_ns + p.jitter_ns) +
			   p.window_bytes * p.ns_per_byte;
		assert_true(f.longest_wait_ns <= p.n_messages * round_ns);
	}
}

static void credits_of_a_dead_sender_come_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
		struct sim_plan p = plan_of(seed);

		p.dies = (int)(seed % p.n_senders);
		assert_int_equal(sim_run(&p).n_unfinished, 0);
	}
}

static void a_stalled_sender_stops_no_other(void **state)
{
	unsigned n_late = 0;

	(void)state;
	for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
		struct sim_plan p = plan_of(seed);
		struct sim_figures f;

		p.stalls = (int)(seed % p.n_senders);
		p.late_ns = 2 * (p.delay_ns + p.jitter_ns) + 2 * p.window_bytes * p.ns_per_byte;
		p.backlogged = true;
		f = sim_run(&p);
		assert_int_equal(f.n_unfinished, 0);
		n_late += f.late_bytes > 0;
	}
	assert_true(n_late > N_SEEDS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_messages_arrive_and_the_queue_stays_within_the_window),
		cmocka_unit_test(the_link_is_busy_while_messages_wait),
		cmocka_unit_test(backlogged_senders_get_equal_shares_whatever_their_messages),
		cmocka_unit_test(a_short_message_waits_for_one_round_not_for_the_long_ones),
		cmocka_unit_test(credits_of_a_dead_sender_come_back),
		cmocka_unit_test(a_stalled_sender_stops_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
