/* test_every_order.c — tests the FIFO's CPU end with every order in which words can arrive, and every order of calls.
 *
 * The model (model/) visits all states of the protocol; this test visits all states of the code.  A state consists of the fields
 * of proxy/fifo.c, the area, and the words that kernels have stored and that have not arrived.  From each state every step is
 * tried: a kernel pushes if a slot is free, a word arrives, the CPU polls or releases, or a new CPU's end is opened. A poll must
 * return the triggers exactly as they were pushed, and at least one if a complete trigger has arrived. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "proxy/fifo_internal.h"

enum { LANES = 2, SLOTS = 8, MOST_STATES = 1 << 19, TABLE = 1 << 20, WORDS = 2 * SLOTS };

struct state {
	struct gpul_trigger slot[SLOTS];
	uint64_t tail[LANES], taken[LANES], released[LANES], pushed[LANES];
	uint64_t awaited, owing, owing_groups, pending;
	struct gpul_trigger seen[LANES]; /* triggers that the scan has already read in pending lanes */
	uint32_t turn, under_way;        /* bit 2 s + w: word w of slot s has not arrived */
};

struct search {
	gpul_fifo *f;
	struct gpul_fifo fresh;
	unsigned lanes, size; /* size: number of slots of a lane */
	uint64_t pushes;      /* number of pushes into each lane */
	struct state *states;
	uint32_t *table, n; /* hash table of the states: index + 1; 0: empty */
};

static _Alignas(512) unsigned char area[2048];

static uint64_t value(unsigned lane, uint64_t position, unsigned word)
{
	return (uint64_t)(lane + 1) << 32 | position << 8 | word;
}

/* ---- copies between struct state and the FIFO ---------------------------------------- */

static void load(const struct search *s, const struct state *from)
{
	gpul_fifo *f = s->f;

	*f = s->fresh;
	for (unsigned i = 0; i < s->lanes; i++) {
		f->lines[i].tail = from->tail[i];
		f->taken[i] = from->taken[i];
		f->released[i] = from->released[i];
	}
	memcpy(f->slots, from->slot, s->lanes * s->size * sizeof(*f->slots));
	f->awaited[0] = from->awaited;
	f->owing[0] = from->owing;
	f->owing_groups = from->owing_groups;
	f->pending = from->pending;
	memcpy(f->seen, from->seen, sizeof(from->seen));
	f->turn = from->turn;
}

static void save(const struct search *s, struct state *to)
{
	const gpul_fifo *f = s->f;

	for (unsigned i = 0; i < s->lanes; i++) {
		to->tail[i] = f->lines[i].tail;
		to->taken[i] = f->taken[i];
		to->released[i] = f->released[i];
	}
	to->awaited = f->awaited[0];
	to->owing = f->owing[0];
	to->owing_groups = f->owing_groups;
	to->pending = f->pending;
	for (unsigned i = 0; i < LANES; i++)
		to->seen[i] = f->pending >> i & 1 ? f->seen[i] : (struct gpul_trigger){ { 0, 0 } };
	to->turn = f->turn;
}

/* Check that struct state covers all fields of the code. */
static void expect_state_is_complete(const struct search *s, const struct state *state)
{
	struct gpul_fifo was = *s->f;

	memset(was.seen, 0, sizeof(was.seen));
	memcpy(was.seen, state->seen, sizeof(state->seen));
	load(s, state);
	assert_memory_equal(s->f, &was, sizeof(was));
}

static uint64_t hash(const struct state *state)
{
	const unsigned char *bytes = (const unsigned char *)state;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < sizeof(*state); i++)
		h = (h ^ bytes[i]) * 1099511628211u;
	return h ^ h >> 32;
}

static void visit(struct search *s, const struct state *state)
{
	uint64_t at = hash(state);

	for (; s->table[at % TABLE]; at++)
		if (!memcmp(&s->states[s->table[at % TABLE] - 1], state, sizeof(*state)))
			return;
	assert_in_range(s->n, 0, MOST_STATES - 1);
	s->states[s->n++] = *state;
	s->table[at % TABLE] = s->n;
}

/* ---- steps ----------------------------------------------------------------------- */

/* True: the trigger at this position was pushed, and both its words have arrived. */
static bool whole(const struct search *s, const struct state *state, unsigned lane, uint64_t position)
{
	const unsigned slot = lane * s->size + (unsigned)(position % s->size);

	return position < state->pushed[lane] && !(state->under_way >> 2 * slot & 3);
}

static void pushes(struct search *s, const struct state *from)
{
	for (unsigned lane = 0; lane < s->lanes; lane++) {
		struct state to = *from;
		const unsigned slot = lane * s->size + (unsigned)(to.pushed[lane] % s->size);

		if (to.pushed[lane] == s->pushes || to.pushed[lane] - to.tail[lane] >= s->size)
			continue;
		assert_int_equal(to.under_way >> 2 * slot & 3, 0); /* a slot below the tail has no words in flight */
		to.pushed[lane]++;
		to.under_way |= 3u << 2 * slot;
		visit(s, &to);
	}
}

static void arrivals(struct search *s, const struct state *from)
{
	for (unsigned bit = 0; bit < WORDS; bit++) {
		const unsigned slot = bit / 2, lane = slot / s->size;
		struct state to = *from;

		if (!(from->under_way >> bit & 1))
			continue;
		/* position of the trigger that was last pushed to this slot */
		const uint64_t last = from->pushed[lane] - 1, position = last - (last - slot % s->size) % s->size;

		to.under_way ^= 1u << bit;
		to.slot[slot].word[bit % 2] = value(lane, position, bit % 2) | (~(position / s->size) & 1) << 63;
		visit(s, &to);
	}
}

static void check(const struct search *s, const struct state *from, uint64_t taken[LANES], unsigned lane, uint64_t position, uint64_t a,
		  uint64_t b)
{
	assert_in_range(lane, 0, s->lanes - 1);
	assert_int_equal(position, taken[lane]);
	assert_true(whole(s, from, lane, position));
	assert_int_equal(a, value(lane, position, 0));
	assert_int_equal(b, value(lane, position, 1));
	taken[lane]++;
}

static void poll(struct search *s, const struct state *from, unsigned max, bool as_run)
{
	uint64_t taken[LANES];
	gpul_fifo_item items[SLOTS];
	gpul_fifo_run run = { 0 };
	struct state to = *from;
	unsigned n;

	load(s, from);
	memcpy(taken, from->taken, sizeof(taken));
	n = as_run ? gpul_fifo_poll_run(s->f, &run, max) : gpul_fifo_poll(s->f, items, max);
	assert_in_range(n, 0, max);
	for (unsigned i = 0; i < n && !as_run; i++)
		check(s, from, taken, items[i].lane, items[i].position, items[i].word[0], items[i].word[1]);
	for (unsigned i = 0; i < n && as_run; i++)
		check(s, from, taken, run.lane, run.position + i, run.triggers[i].word[0] ^ run.lap, run.triggers[i].word[1] ^ run.lap);
	for (unsigned lane = 0; n == 0 && lane < s->lanes; lane++)
		assert_false(whole(s, from, lane, taken[lane]));
	save(s, &to);
	if (s->n % 16 == 0)
		expect_state_is_complete(s, &to);
	assert_memory_equal(to.taken, taken, sizeof(taken));
	assert_memory_equal(to.tail, from->tail, sizeof(to.tail));
	visit(s, &to);
}

static void releases(struct search *s, const struct state *from)
{
	struct state to = *from;

	load(s, from);
	gpul_fifo_release(s->f);
	save(s, &to);
	assert_memory_equal(to.tail, from->taken, sizeof(to.tail));
	visit(s, &to);
	for (unsigned lane = 0; lane < s->lanes; lane++) {
		if (from->taken[lane] == from->tail[lane])
			continue;
		to = *from;
		load(s, from);
		gpul_fifo_release_lane(s->f, lane, from->tail[lane] + 1);
		save(s, &to);
		assert_int_equal(to.tail[lane], from->tail[lane] + 1);
		visit(s, &to);
	}
}

/* Open a new CPU end, which receives again the triggers that were polled, but not released. */
static void reopen_cpus_end(struct search *s, const struct state *from)
{
	struct state to = *from;

	load(s, from);
	gpul_fifo_close(s->f);
	assert_int_equal(gpul_fifo_open(area, sizeof(area), &s->f, NULL), GPUL_OK);
	s->fresh = *s->f;
	save(s, &to);
	assert_memory_equal(to.taken, from->tail, sizeof(to.taken));
	assert_memory_equal(to.tail, from->tail, sizeof(to.tail));
	visit(s, &to);
}

/* ---- all states ------------------------------------------------------------------ */

static void search_all(unsigned lanes, unsigned slots, uint64_t pushes_of_lane)
{
	const gpul_fifo_shape shape = { .slots = slots, .lanes = lanes };
	struct search s = { .lanes = lanes, .size = slots / lanes, .pushes = pushes_of_lane };
	struct state state = { 0 };
	bool ended = false;

	assert_int_equal(gpul_fifo_area_format(area, sizeof(area), &shape, NULL), GPUL_OK);
	assert_int_equal(gpul_fifo_open(area, sizeof(area), &s.f, NULL), GPUL_OK);
	s.fresh = *s.f;
	s.states = malloc(MOST_STATES * sizeof(*s.states));
	s.table = calloc(TABLE, sizeof(*s.table));
	assert_true(s.states && s.table);
	save(&s, &state);
	visit(&s, &state);
	for (uint32_t i = 0; i < s.n; i++) {
		state = s.states[i];
		pushes(&s, &state);
		arrivals(&s, &state);
		for (unsigned max = 1; max <= SLOTS; max += SLOTS - 1) {
			poll(&s, &state, max, false);
			poll(&s, &state, max, true);
		}
		releases(&s, &state);
		reopen_cpus_end(&s, &state);
		ended = ended || (state.tail[0] == pushes_of_lane && state.tail[lanes - 1] == pushes_of_lane);
	}
	assert_true(ended);
	print_message("%u lanes of %u slots, %u pushes into each: %u states\n", lanes, s.size, (unsigned)pushes_of_lane, s.n);
	free(s.states);
	free(s.table);
	gpul_fifo_close(s.f);
}

static void one_lane_returns_the_pushed_triggers_in_every_event_order(void **state)
{
	(void)state;
	search_all(1, 1, 5);
	search_all(1, 2, 6);
	search_all(1, 4, 9);
	search_all(1, 8, 9);
}

static void two_lanes_return_the_pushed_triggers_in_every_event_order(void **state)
{
	(void)state;
	search_all(2, 2, 4);
	search_all(2, 4, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_lane_returns_the_pushed_triggers_in_every_event_order),
		cmocka_unit_test(two_lanes_return_the_pushed_triggers_in_every_event_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
