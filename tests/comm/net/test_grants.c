/* test_grants.c — the grants by which a receiver limits the bytes in flight to its window; simulates senders, network and kernels in
 * random orders. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "comm/device/channel_layout.h"
#include "comm/net/grants.h"

enum { SLOT = 1000, MAX_ROUTES = 5, MAX_BLOCKS = 3, N_RUNS = 400 };

static gpul_comm_grants *create(unsigned n_routes, unsigned n_blocks, uint64_t window_bytes)
{
	const gpul_comm_grants_desc desc = {
		.n_routes = n_routes, .n_blocks = n_blocks, .slot_bytes = SLOT, .window_bytes = window_bytes, .late_ns = 100
	};
	gpul_comm_grants *g = NULL;

	assert_int_equal(gpul_comm_grants_create(&desc, &g, NULL), GPUL_OK);
	return g;
}

static unsigned grant_all(gpul_comm_grants *g)
{
	unsigned route, block, n = 0;

	while (gpul_comm_grants_next(g, &route, &block))
		n++;
	return n;
}

/* ---- single inputs -------------------------------------------------------------------------------------------- */

static void half_of_the_window_is_for_grants(void **state)
{
	gpul_comm_grants *g = create(2, 1, 4 * SLOT);
	const gpul_comm_grants_desc desc = { .n_routes = 2, .n_blocks = 1, .slot_bytes = SLOT, .window_bytes = 4 * SLOT };

	(void)state;
	assert_int_equal(gpul_comm_grants_free_bytes(&desc), SLOT);
	gpul_comm_grants_requested(g, 0, 0, 8);
	assert_int_equal(grant_all(g), 2);
	assert_int_equal(gpul_comm_grants_granted(g, 0, 0), 2);
	assert_int_equal(gpul_comm_grants_in_flight(g), 2 * SLOT);
	gpul_comm_grants_arrived(g, 0, 0, 1);
	assert_int_equal(grant_all(g), 1);
	assert_int_equal(gpul_comm_grants_granted(g, 0, 0), 3);
	gpul_comm_grants_destroy(g);
}

static void a_window_of_a_byte_is_one_of_two_slots(void **state)
{
	gpul_comm_grants *g = create(5, 1, 1);

	(void)state;
	for (unsigned r = 0; r < 5; r++)
		gpul_comm_grants_requested(g, r, 0, 1);
	assert_int_equal(grant_all(g), 1);
	gpul_comm_grants_destroy(g);
}

static void senders_get_slots_in_turn(void **state)
{
	gpul_comm_grants *g = create(2, 1, 4 * SLOT);
	uint64_t tails[2] = { 0, 0 };

	(void)state;
	gpul_comm_grants_requested(g, 0, 0, 8);
	gpul_comm_grants_requested(g, 1, 0, 8);
	for (int i = 0; i < 6; i++) {
		(void)grant_all(g);
		for (unsigned r = 0; r < 2; r++)
			gpul_comm_grants_arrived(g, r, 0, tails[r] = gpul_comm_grants_granted(g, r, 0));
	}
	assert_int_equal(tails[0], tails[1]);
	gpul_comm_grants_destroy(g);
}

static void steps_that_came_without_a_grant_use_none(void **state)
{
	gpul_comm_grants *g = create(2, 1, 4 * SLOT);

	(void)state;
	gpul_comm_grants_requested(g, 0, 0, 3);
	gpul_comm_grants_arrived(g, 0, 0, 3);
	(void)grant_all(g);
	assert_int_equal(gpul_comm_grants_in_flight(g), 0);
	gpul_comm_grants_arrived(g, 0, 0, 10); /* seven more steps, which were not requested */
	gpul_comm_grants_requested(g, 0, 0, 11);
	assert_int_equal(grant_all(g), 1);
	assert_int_equal(gpul_comm_grants_granted(g, 0, 0), 11);
	assert_int_equal(gpul_comm_grants_in_flight(g), SLOT);
	assert_true(gpul_comm_grants_watches(g, 0, 0));
	gpul_comm_grants_destroy(g);
}

static void a_dead_sender_frees_what_it_holds(void **state)
{
	gpul_comm_grants *g = create(2, 1, 4 * SLOT);

	(void)state;
	gpul_comm_grants_requested(g, 0, 0, 5);
	assert_int_equal(grant_all(g), 2);
	gpul_comm_grants_requested(g, 1, 0, 2);
	assert_int_equal(grant_all(g), 0);
	gpul_comm_grants_leave(g, 0);
	assert_int_equal(grant_all(g), 2);
	assert_int_equal(gpul_comm_grants_granted(g, 1, 0), 2);
	gpul_comm_grants_requested(g, 0, 0, 8);
	gpul_comm_grants_arrived(g, 1, 0, 2);
	assert_int_equal(grant_all(g), 0);
	gpul_comm_grants_destroy(g);
}

static void a_sender_that_stands_still_does_not_stop_the_others(void **state)
{
	gpul_comm_grants *g = create(2, 1, 4 * SLOT);

	(void)state;
	gpul_comm_grants_tick(g, 1000);
	gpul_comm_grants_requested(g, 0, 0, 8);
	assert_int_equal(grant_all(g), 2);
	gpul_comm_grants_requested(g, 1, 0, 1);
	assert_int_equal(grant_all(g), 0);
	gpul_comm_grants_tick(g, 1100);
	assert_int_equal(grant_all(g), 1);
	assert_int_equal(gpul_comm_grants_granted(g, 1, 0), 1);
	gpul_comm_grants_destroy(g);
}

static void absurd_words_do_no_harm(void **state)
{
	gpul_comm_grants *g = create(2, 2, 4 * SLOT);

	(void)state;
	gpul_comm_grants_requested(g, 0, 1, UINT64_MAX);
	(void)grant_all(g);
	gpul_comm_grants_requested(g, 0, 1, 3);
	gpul_comm_grants_arrived(g, 0, 1, UINT64_MAX / 2);
	gpul_comm_grants_arrived(g, 0, 0, UINT64_MAX);
	gpul_comm_grants_requested(g, 1, 0, 1);
	gpul_comm_grants_leave(g, 0);
	assert_int_equal(grant_all(g), 1);
	gpul_comm_grants_destroy(g);
}

/* ---- simulation ----------------------------------------------------------------------------------------------- */

/* A channel.  Its counters of steps: head (read by the receiver's kernels) <= tail (arrived) <= sent (by the proxy) <= posted (by the
 * sender's kernels). */
struct sim_channel {
	uint64_t head, tail, sent, posted;
	uint64_t asked, granted; /* sent values of the sender's request word and of the receiver's grant word */
	uint64_t asks, grants;   /* values of these two words that have arrived */
	uint32_t bytes[GPUL_COMM_STEPS], free_bytes[GPUL_COMM_STEPS]; /* of each step in flight */
};

struct sim {
	uint64_t random, n_steps, window, free_bytes;
	unsigned n_routes, n_blocks, dead;
	gpul_comm_grants *g;
	struct sim_channel channels[MAX_ROUTES][MAX_BLOCKS];
	uint64_t free_in_flight[MAX_ROUTES];
	uint64_t in_flight, n_granted;
};

static uint64_t draw(struct sim *s, uint64_t n)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (s->random >> 33) % n;
}

/* The sender's kernel posts a step, or its proxy sends a step or requests a grant. */
static void sender_turn(struct sim *s, unsigned route, struct sim_channel *c)
{
	const uint64_t slot = c->sent % GPUL_COMM_STEPS;
	uint32_t free_bytes;

	if (c->posted < s->n_steps && c->posted - c->head < GPUL_COMM_STEPS && draw(s, 2)) {
		c->bytes[c->posted++ % GPUL_COMM_STEPS] = (uint32_t)draw(s, SLOT) + 1;
		return;
	}
	if (c->sent == c->posted)
		return;
	if (!gpul_comm_grants_may_go(c->sent, c->grants, s->free_bytes - s->free_in_flight[route], c->bytes[slot], &free_bytes)) {
		c->asked = c->posted;
		return;
	}
	c->free_bytes[slot] = free_bytes;
	s->n_granted += !free_bytes;
	s->free_in_flight[route] += free_bytes;
	s->in_flight += c->bytes[slot];
	assert_true(s->in_flight <= s->window);
	c->sent++;
}

/* The oldest step of a channel arrives, and its sender is notified immediately. */
static void arrive(struct sim *s, unsigned route, struct sim_channel *c)
{
	const uint64_t slot = c->tail % GPUL_COMM_STEPS;

	if (c->tail == c->sent)
		return;
	s->in_flight -= c->bytes[slot];
	s->free_in_flight[route] -= c->free_bytes[slot];
	c->tail++;
}

static void receiver_turn(struct sim *s, unsigned route, unsigned block, struct sim_channel *c)
{
	unsigned r, b;

	if (c->asks > gpul_comm_grants_requested_for(s->g, route, block) || gpul_comm_grants_watches(s->g, route, block))
		gpul_comm_grants_arrived(s->g, route, block, c->tail);
	gpul_comm_grants_requested(s->g, route, block, c->asks);
	while (gpul_comm_grants_next(s->g, &r, &b))
		assert_true(gpul_comm_grants_granted(s->g, r, b) <= s->channels[r][b].posted);
	c->granted = gpul_comm_grants_granted(s->g, route, block);
}

/* The receiver's kernels read the channels one after another, each to its end, because slots are freed latest in this order. */
static void read_in_order(struct sim *s)
{
	for (unsigned r = 0; r < s->n_routes; r++)
		for (unsigned b = 0; b < s->n_blocks; b++) {
			struct sim_channel *c = &s->channels[r][b];

			if (r == s->dead || c->head == s->n_steps)
				continue;
			c->head += c->head < c->tail;
			return;
		}
}

static bool all_read(const struct sim *s)
{
	for (unsigned r = 0; r < s->n_routes; r++)
		for (unsigned b = 0; b < s->n_blocks; b++)
			if (r != s->dead && s->channels[r][b].head < s->n_steps)
				return false;
	return true;
}

static void run(uint64_t seed, uint64_t *n_granted)
{
	struct sim s = { .random = seed, .n_steps = 30 };
	gpul_comm_grants_desc desc = { .slot_bytes = SLOT };

	s.n_routes = desc.n_routes = 2 + (unsigned)draw(&s, MAX_ROUTES - 1);
	s.n_blocks = desc.n_blocks = 1 + (unsigned)draw(&s, MAX_BLOCKS);
	s.window = desc.window_bytes = 2 * SLOT + draw(&s, 6 * SLOT);
	s.free_bytes = gpul_comm_grants_free_bytes(&desc);
	s.g = create(s.n_routes, s.n_blocks, s.window);
	s.dead = MAX_ROUTES;
	for (unsigned turns = 0; !all_read(&s); turns++) {
		const unsigned r = (unsigned)draw(&s, s.n_routes), b = (unsigned)draw(&s, s.n_blocks);
		struct sim_channel *c = &s.channels[r][b];

		assert_true(turns < 200000);
		if (turns == 500 && seed % 4 == 0) {
			s.dead = (unsigned)draw(&s, s.n_routes);
			gpul_comm_grants_leave(s.g, s.dead);
			for (unsigned k = 0; k < s.n_blocks; k++)
				while (s.channels[s.dead][k].tail < s.channels[s.dead][k].sent)
					arrive(&s, s.dead, &s.channels[s.dead][k]);
			continue;
		}
		if (r == s.dead)
			continue;
		switch (draw(&s, 6)) {
		case 0:
			sender_turn(&s, r, c);
			break;
		case 1:
			arrive(&s, r, c);
			break;
		case 2:
			receiver_turn(&s, r, b, c);
			break;
		case 3:
			c->asks = c->asked;
			break;
		case 4:
			c->grants = c->granted;
			break;
		default:
			read_in_order(&s);
		}
	}
	*n_granted += s.n_granted;
	gpul_comm_grants_destroy(s.g);
}

static void random_orders_stay_in_the_window_and_end(void **state)
{
	uint64_t n_granted = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= N_RUNS; seed++)
		run(seed, &n_granted);
	assert_true(n_granted > N_RUNS * 10); /* enough steps needed grants: free bytes alone did not suffice */
}

static void refuses_what_is_out_of_range(void **state)
{
	gpul_comm_grants *g = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_comm_grants_create(&(gpul_comm_grants_desc){ .n_routes = 0, .n_blocks = 1, .slot_bytes = 1 }, &g, &err),
			 GPUL_EINVAL);
	assert_null(g);
	gpul_comm_grants_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_of_the_window_is_for_grants),  cmocka_unit_test(a_window_of_a_byte_is_one_of_two_slots),
		cmocka_unit_test(senders_get_slots_in_turn),         cmocka_unit_test(steps_that_came_without_a_grant_use_none),
		cmocka_unit_test(a_dead_sender_frees_what_it_holds), cmocka_unit_test(a_sender_that_stands_still_does_not_stop_the_others),
		cmocka_unit_test(absurd_words_do_no_harm),           cmocka_unit_test(random_orders_stay_in_the_window_and_end),
		cmocka_unit_test(refuses_what_is_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
