/* relstates.c — visit all states of small shapes: relstates [--shapes 1-4] [--large] [--failures 1] */
#include "tests/rdma/reliable/relstates.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { MOST_STEPS = MOST_SENT + 32, LIMIT_S = 60, LARGE_LIMIT_S = 7200 };

/* The smallest first, so that most mistakes are found soon. */
static const struct shape shapes[] = {
/* With one retransmission time-out, round-trip times have no influence. */
#define USUAL \
	.chunk_bytes = 64, .window = 64, .messages = 4, .first = 0u - 2, .control = GPUL_REL_FIXED, .rto_min_ns = 200000000, \
	.rto_max_ns = 200000000
	/* clang-format off */
	{ "a full window", { USUAL, .n_paths = 1, .threshold = 3 }, { { 32, 32, 2 } }, .delivered = 61 },
	{ "a path with one chunk at a time", { USUAL, .n_paths = 1, .threshold = 1, .path_window = 1 }, { { 1, 1, 1 } }, .timeouts = 2 },
	{ "pinned messages", { USUAL, .n_paths = 2, .threshold = 1, .spread = GPUL_REL_PINNED }, { { 2, 2 } }, .acks_at_once = true },
	{ "four chunks", { USUAL, .n_paths = 2, .threshold = 1 }, { { 2, 2 } }, .acks_at_once = true },
	{ "acknowledgements at any time", { USUAL, .n_paths = 2, .threshold = 1 }, { { 1 } }, .timeouts = 1 },
	{ "old acknowledgements are kept", { USUAL, .n_paths = 2, .threshold = 1 }, { { 1 } }, .timeouts = 1, .keeps_acks = true },
	{ "Swift", { .chunk_bytes = 64, .window = 64, .messages = 2, .first = 0u - 2, .n_paths = 1, .threshold = 1 }, { { 1, 1, 1 } }, .timeouts = 1 },
	{ "both ways", { USUAL, .n_paths = 2, .threshold = 1 }, { { 1 }, { 1 } }, .timeouts = 1 },
	{ "paths die and return", { USUAL, .n_paths = 2, .dead_after = 1 }, { { 1 } }, .timeouts = 3, .acks_at_once = true },
	{ "two paths", { USUAL, .n_paths = 2, .threshold = 1 }, { { 1, 1 } }, .silent = 2, .timeouts = 1, .acks_at_once = true },
	{ "acknowledgements of two chunks", { USUAL, .n_paths = 2, .ack_every = 2 }, { { 2, 1 } }, .timeouts = 1, .acks_at_once = true },
	{ "credit", { USUAL, .n_paths = 1, .credit = 1 }, { { 1, 1 } }, .timeouts = 1 },
	{ "one path", { USUAL, .n_paths = 1, .threshold = 1 }, { { 2, 1 } }, .timeouts = 1, .acks_at_once = true },

	{ "two time-outs", { USUAL, .n_paths = 2, .threshold = 1 }, { { 2, 1 } }, .timeouts = 2, .acks_at_once = true, .large = true },
	{ "two paths, acknowledgements at any time", { USUAL, .n_paths = 2, .threshold = 1 }, { { 2, 1 } }, .timeouts = 1, .large = true },
	{ "four chunks, a time-out", { USUAL, .n_paths = 2, .threshold = 1 }, { { 2, 2 } }, .timeouts = 1, .acks_at_once = true, .large = true },
	{ "three chunks with credit", { USUAL, .n_paths = 1, .credit = 1 }, { { 2, 1 } }, .timeouts = 1, .acks_at_once = true, .large = true },
	{ "paths die, two messages", { USUAL, .n_paths = 2, .dead_after = 1 }, { { 1, 1 } }, .timeouts = 2, .acks_at_once = true, .large = true },
	/* clang-format on */
};

/* ---- the states that were visited ------------------------------------------------------------------------------------------ */

struct key {
	uint64_t a, b;
};

struct state {
	unsigned char *bytes; /* until its steps have been taken */
	uint32_t parent;
	struct step step; /* from the parent */
};

struct search {
	struct model m;
	struct key *table; /* of power of two `size`; {0, 0}: empty */
	struct state *states;
	uint64_t size, n_steps;
	uint32_t n, room;
};

/* 128 bits, so that two different states have the same key with a probability of less than 2^-80. */
static struct key make_key(const unsigned char *bytes, size_t n_bytes)
{
	struct key k = { n_bytes, 0 };
	uint64_t word;

	for (size_t i = 0; i + 8 <= n_bytes; i += 8) {
		memcpy(&word, bytes + i, 8);
		k.a = (k.a ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		k.a ^= k.a >> 32;
		k.b = (k.b + word) * UINT64_C(0xbf58476d1ce4e5b9);
		k.b ^= k.b >> 29;
	}
	k.a |= 1;
	return k;
}

/* Insert a key; false: it was there. */
static bool insert_key(struct search *s, struct key k)
{
	for (uint64_t i = k.b & (s->size - 1);; i = (i + 1) & (s->size - 1)) {
		struct key *at = &s->table[i];

		if (at->a == k.a && at->b == k.b)
			return false;
		if (!at->a) {
			*at = k;
			return true;
		}
	}
}

static void *must_alloc(void *p)
{
	if (!p) {
		fprintf(stderr, "relstates: out of memory\n");
		exit(2);
	}
	return p;
}

static void grow(struct search *s)
{
	struct key *old = s->table;
	const uint64_t old_size = s->size;

	s->room = s->room ? 2 * s->room : 1 << 16;
	s->states = must_alloc(realloc(s->states, s->room * sizeof *s->states));
	s->size = 2 * (uint64_t)s->room;
	s->table = must_alloc(calloc(s->size, sizeof *s->table));
	for (uint64_t i = 0; i < old_size; i++)
		if (old[i].a)
			insert_key(s, old[i]);
	free(old);
}

/* Remember the present state if it is new; returns whether it is. */
static bool add_state(struct search *s, uint32_t parent, struct step step)
{
	static uint64_t buffer[MOST_BYTES / 8];
	const size_t n_bytes = save_state(&s->m, (unsigned char *)buffer);
	unsigned char *bytes;

	if (s->n == s->room)
		grow(s);
	if (!insert_key(s, make_key((unsigned char *)buffer, n_bytes)))
		return false;
	bytes = must_alloc(malloc(n_bytes));
	memcpy(bytes, buffer, n_bytes);
	s->states[s->n++] = (struct state){ .bytes = bytes, .parent = parent, .step = step };
	return true;
}

/* ---- the search ------------------------------------------------------------------------------------------------------------ */

/* Print the steps to state i. */
static void print_way(struct search *s, uint32_t i)
{
	if (i == 0)
		return;
	print_way(s, s->states[i].parent);
	model_step(&s->m, s->states[i].step);
}

/* Repeat what led to an error, with the last step, if there is one. */
static void explain(struct search *s, unsigned shape, const unsigned char *first, uint32_t state, const struct step *last,
		    unsigned dead_path)
{
	printf("shape %u: %s: %s\n", shape, s->m.shape->name, s->m.error);
	load_state(&s->m, first);
	s->m.now_ns = NOW_NS;
	s->m.trace = true;
	print_way(s, state);
	if (last)
		model_step(&s->m, *last);
	else
		model_finish(&s->m, dead_path);
}

/* Take all steps from state i.  Returns false after an error. */
static bool visit(struct search *s, unsigned shape, const unsigned char *first, uint32_t i)
{
	const unsigned char *bytes = s->states[i].bytes;
	const unsigned n_paths = s->m.shape->o.n_paths;
	struct step steps[MOST_STEPS];
	unsigned n;

	for (unsigned k = 0; k <= (n_paths > 1 ? n_paths : 0); k++) {
		const unsigned dead_path = k ? k - 1 : GPUL_REL_MAX_PATHS;

		load_state(&s->m, bytes);
		model_finish(&s->m, dead_path);
		if (s->m.error) {
			explain(s, shape, first, i, NULL, dead_path);
			return false;
		}
	}
	load_state(&s->m, bytes);
	n = model_steps(&s->m, steps);
	for (unsigned k = 0; k < n; k++) {
		load_state(&s->m, bytes);
		if (!model_step(&s->m, steps[k]))
			continue;
		s->n_steps++;
		if (s->m.error) {
			explain(s, shape, first, i, &steps[k], 0);
			return false;
		}
		add_state(s, i, steps[k]);
	}
	return true;
}

static bool search_shape(unsigned number, const struct shape *shape)
{
	struct search s = { .size = 0 };
	unsigned char *first;
	bool good = model_create(&s.m, shape);
	uint32_t i = 0;

	grow(&s);
	if (!good) {
		printf("shape %u: %s: %s\n", number, shape->name, s.m.error ? s.m.error : "the ends were not created");
		model_destroy(&s.m);
		return false;
	}
	add_state(&s, 0, (struct step){ 0 });
	first = s.states[0].bytes;
	for (; good && i < s.n; i++) {
		good = visit(&s, number, first, i);
		if (i)
			free(s.states[i].bytes);
	}
	for (; i < s.n; i++)
		free(s.states[i].bytes);
	if (good)
		printf("%s: all %" PRIu32 " states, %" PRIu64 " steps, %" PRIu32 " different datagrams\n", shape->name, s.n, s.n_steps,
		       s.m.n_datagrams);
	fflush(stdout);
	free(first);
	free(s.table);
	free(s.states);
	model_destroy(&s.m);
	return good;
}

int main(int argc, char **argv)
{
	struct itimerval limit = { 0 };
	const unsigned n_shapes = sizeof shapes / sizeof shapes[0];
	unsigned first = 1, last = n_shapes, n_failed = 0, most_failures = n_shapes;
	bool large = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--shapes") && i + 1 < argc)
			sscanf(argv[++i], "%u-%u", &first, &last);
		else if (!strcmp(argv[i], "--failures") && i + 1 < argc)
			most_failures = (unsigned)atoi(argv[++i]);
		else if (!strcmp(argv[i], "--large"))
			large = true;
		else
			return 2;
	}
	limit.it_value.tv_sec = large ? LARGE_LIMIT_S : LIMIT_S;
	for (unsigned i = first; i && i <= last && i <= n_shapes && n_failed < most_failures; i++)
		if (large || !shapes[i - 1].large) {
			setitimer(ITIMER_VIRTUAL, &limit, NULL); /* CPU time, because a planted mistake may never return */
			n_failed += !search_shape(i, &shapes[i - 1]);
		}
	return n_failed != 0;
}
