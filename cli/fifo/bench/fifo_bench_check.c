/* fifo_bench_check.c — checks that each trigger arrives once and in order; measured times include the check. */
#include "cli/fifo/bench/fifo_bench_check.h"

#include <inttypes.h>
#include <stdbool.h>

#include "core/clock.h"

gpul_status fifo_check_begin(struct fifo_check *c, gpul_error *err)
{
	c->next = calloc(c->blocks, sizeof *c->next);
	return c->next ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the order of %u blocks", c->blocks);
}

void fifo_check_end(struct fifo_check *c)
{
	free(c->next);
	c->next = NULL;
}

void fifo_check_count(struct fifo_check *c, const gpul_fifo_item *items, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (items[i].word[0] < c->triggers) /* the map has no room for larger numbers */
			fifo_count_add(c->count, items[i].word[0]);
		c->sum += items[i].word[1];
	}
}

/* True if n triggers are from one block and numbered next, next + 1, and so on.  The loop has no branches, so that it is vectorised. */
static bool in_sequence(const struct gpul_trigger *triggers, unsigned n, uint64_t lap, uint64_t block, uint64_t next)
{
	uint64_t wrong = 0;

	for (unsigned i = 0; i < n; i++)
		wrong |= (triggers[i].word[0] ^ lap ^ (next + i)) | (triggers[i].word[1] ^ lap ^ block);
	return wrong == 0;
}

/* A push of a warp uses 32 consecutive positions, the first of which is a multiple of 32, so these 32 triggers belong to one block. */
void fifo_check_order(struct fifo_check *c, const gpul_fifo_run *run)
{
	for (unsigned done = 0, n; done < run->n; done += n) {
		const struct gpul_trigger *triggers = run->triggers + done;
		const uint64_t block = triggers->word[1] ^ run->lap, rest = 32 - (run->position + done) % 32;

		n = run->n - done < rest ? run->n - done : (unsigned)rest;
		if (block >= c->blocks || !in_sequence(triggers, n, run->lap, block, c->next[block]))
			c->wrong += n;
		else
			c->next[block] += n;
	}
}

void fifo_check_stamp(struct fifo_check *c, const gpul_fifo_item *items, unsigned n)
{
	const uint64_t now_ns = gpul_clock_ns();

	for (unsigned i = 0; i < n; i++) {
		const uint64_t number = items[i].word[0], block = items[i].word[1];

		if (block >= c->blocks || number >= c->triggers || number != c->next[block]) {
			c->wrong++;
			continue;
		}
		c->next[block]++;
		c->popped_ns[block * c->triggers + number] = now_ns;
	}
}

gpul_status fifo_check_result(struct fifo_check *c, const char *kernel, gpul_error *err)
{
	const uint64_t sum = c->triggers * ((uint64_t)c->blocks * (c->blocks - 1) / 2);

	if (c->count) {
		for (uint64_t i = 0; i < c->triggers; i++)
			c->wrong += fifo_count_of(c->count, i) != c->blocks;
		if (c->wrong || c->sum != sum)
			return gpul_fail(err, GPUL_EFORMAT, 0,
					 "%s: %" PRIu64 " trigger numbers pushed by each of %u threads, %" PRIu64
					 " of them lost or repeated; the sum of the thread numbers is %" PRIu64 ", expected %" PRIu64,
					 kernel, c->triggers, c->blocks, c->wrong, c->sum, sum);
		return GPUL_OK;
	}
	for (unsigned i = 0; i < c->blocks; i++) /* check each block, because the total can be right by chance */
		c->wrong += c->next[i] != c->triggers;
	if (c->wrong)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: %" PRIu64 " of %" PRIu64 " triggers were wrong, repeated or out of order",
				 kernel, c->wrong, c->triggers * c->blocks);
	return GPUL_OK;
}
