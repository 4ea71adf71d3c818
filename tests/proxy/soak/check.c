/* check.c — the checker of the soak test, which compares each received trigger with the expected one.
 *
 * A thread's triggers have the numbers 0, 1, 2 ..., arrive at the position at which the thread pushed (recorded in
 * its next trigger) and in the lane into which it pushed; a lane's positions have no gap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proxy/soak/soak.h"

enum { WARP = 32, MAX_PAYLOAD_WORDS = 64 };

static uint32_t lane_of(const struct shape *s, unsigned thread)
{
	const unsigned which = s->shared ? thread / s->threads : s->how == SOAK_WARP ? thread / WARP : thread;

	return which % s->lanes;
}

/* Return more words than a lane has slots, so that a word is not overwritten before its trigger is released. */
static unsigned payload_words(const struct shape *s)
{
	unsigned words = 2;

	while (words < MAX_PAYLOAD_WORDS && words <= s->slots / s->lanes)
		words *= 2;
	return words;
}

bool checker_open(struct checker *c, const struct shape *shape, uint64_t seed)
{
	*c = (struct checker){
		.shape = shape, .seed = seed, .n_threads = shape->blocks * shape->threads, .payload_mask = payload_words(shape) - 1
	};
	c->threads = calloc(c->n_threads, sizeof(*c->threads));
	c->positions = calloc(shape->lanes, sizeof(*c->positions));
	if (!c->threads || !c->positions)
		return false;
	for (unsigned i = 0; i < c->n_threads; i++)
		c->threads[i].lane = lane_of(shape, i);
	return true;
}

void checker_close(struct checker *c)
{
	free(c->threads);
	free(c->positions);
}

void checker_launch(struct checker *c)
{
	for (unsigned i = 0; i < c->n_threads; i++)
		c->threads[i].before = SOAK_NONE;
}

/* Write to c->text what is wrong with a trigger; return false. */
static bool explain(struct checker *c, const gpul_fifo_item *item)
{
	const unsigned thread = item->word[0] >> SOAK_THREAD_SHIFT & (SOAK_MAX_THREADS - 1);
	const unsigned long long number = item->word[0] & ((1ull << SOAK_THREAD_SHIFT) - 1), before = item->word[1] >> 32;
	const unsigned long long position = item->position, expected = c->positions[item->lane];
	const struct thread_state *t = &c->threads[thread < c->n_threads ? thread : 0];
	char what[160];

	if ((uint32_t)item->word[1] != soak_sum(item->word[0], before, c->seed))
		snprintf(what, sizeof(what), "torn: the two words belong to different triggers");
	else if (thread >= c->n_threads)
		snprintf(what, sizeof(what), "unknown thread");
	else if (item->lane != t->lane)
		snprintf(what, sizeof(what), "wrong lane: the thread pushes into lane %u", t->lane);
	else if (position != expected)
		snprintf(what, sizeof(what), "wrong position: expected %llu", expected);
	else if (number != t->next)
		snprintf(what, sizeof(what), "%s: expected number %llu", number < t->next ? "repeated" : "lost or overtaken",
			 (unsigned long long)t->next);
	else
		snprintf(what, sizeof(what), "out of ticket order: the thread's previous trigger was at position %u", t->before);
	snprintf(c->text, sizeof(c->text), "thread %u's number %llu (pushed after position %llu), in lane %u at position %llu: %s", thread,
		 number, before, item->lane, position, what);
	return false;
}

static bool payload_is_visible(struct checker *c, unsigned thread, uint64_t number)
{
	const uint64_t there = c->payload[(uint64_t)thread * (c->payload_mask + 1) + (number & c->payload_mask)];
	const bool reused = c->payload_mask + 1 <= c->shape->slots / c->shape->lanes;

	/* reused: the thread may already have written a later number to the same word */
	if (there == number + 1 || (reused && there > number && ((there - 1 - number) & c->payload_mask) == 0))
		return true;
	snprintf(c->text, sizeof(c->text), "thread %u's number %llu was pushed with release, but its payload is %llu", thread,
		 (unsigned long long)number, (unsigned long long)there);
	return false;
}

static inline bool take_one(struct checker *c, const gpul_fifo_item *item)
{
	const uint64_t a = item->word[0], b = item->word[1], before = b >> 32;
	const unsigned thread = a >> SOAK_THREAD_SHIFT & (SOAK_MAX_THREADS - 1);
	const uint64_t number = a & ((1ull << SOAK_THREAD_SHIFT) - 1);
	struct thread_state *t = &c->threads[thread];

	if (thread >= c->n_threads || (uint32_t)b != soak_sum(a, before, c->seed) || item->lane != t->lane ||
	    item->position != c->positions[item->lane] || number != t->next || before != t->before)
		return explain(c, item);
	t->next++;
	t->before = item->position & SOAK_NONE;
	c->positions[item->lane]++;
	if (a >> SOAK_SYNC_SHIFT == 0)
		return true;
	if (!payload_is_visible(c, thread, number))
		return false;
	if (a >> SOAK_SYNC_SHIFT & 1 && !c->forgets_answer)
		c->answers[thread] = number + 1;
	return true;
}

bool checker_take(struct checker *c, const gpul_fifo_item *items, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!take_one(c, &items[i]))
			return false;
	return true;
}

bool checker_end(struct checker *c, const uint64_t *results, uint64_t upto, uint64_t count)
{
	for (unsigned i = 0; i < c->n_threads; i++) {
		if (results[2 * i] == GPUL_FIFO_OK && results[2 * i + 1] == count && c->threads[i].next == upto)
			continue;
		snprintf(c->text, sizeof(c->text), "thread %u ended with result %llu%s after %llu of %llu pushes; %llu triggers arrived", i,
			 (unsigned long long)results[2 * i],
			 results[2 * i] == SOAK_MISSED ? " (synced, but the answer was not visible)" : "",
			 (unsigned long long)results[2 * i + 1], (unsigned long long)count,
			 (unsigned long long)(c->threads[i].next + count - upto));
		return false;
	}
	return true;
}

/* A trigger may have arrived although waiting for it was aborted; triggers after a reserved but unused position never arrive. */
static bool abort_is_valid(const struct checker *c, const uint64_t *result, uint64_t came, uint64_t count)
{
	const uint64_t pushed = result[1];

	if (result[0] == GPUL_FIFO_OK ? pushed != count : result[0] != GPUL_FIFO_ABORTED || pushed > count)
		return false;
	return came <= pushed + 1 && (came >= pushed || c->shape->shared);
}

bool checker_end_aborted(struct checker *c, const uint64_t *results, uint64_t upto, uint64_t count)
{
	for (unsigned i = 0; i < c->n_threads; i++) {
		const uint64_t came = c->threads[i].next + count - upto;

		c->threads[i].next = upto;
		if (abort_is_valid(c, &results[2 * i], came, count))
			continue;
		snprintf(c->text, sizeof(c->text),
			 "thread %u was aborted with result %llu after %llu of %llu pushes; %llu triggers arrived", i,
			 (unsigned long long)results[2 * i], (unsigned long long)results[2 * i + 1], (unsigned long long)count,
			 (unsigned long long)came);
		return false;
	}
	memset(c->positions, 0, c->shape->lanes * sizeof(*c->positions));
	return true;
}
