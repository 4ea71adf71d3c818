/* fifo_bench_check.c — see fifo_bench_check.h.  What is done with a batch is a part of what is measured. */
#include "cli/fifo_bench_check.h"

#include <inttypes.h>

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
		if (items[i].word[0] < c->triggers)  /* the map has no room for others */
			fifo_count_add(c->count, items[i].word[0]);
		c->sum += items[i].word[1];
	}
}

/* A block's triggers mostly stand side by side, so the number that comes next mostly is in a register. */
void fifo_check_order(struct fifo_check *c, const gpul_fifo_run *run)
{
	uint64_t spare = 0, *next_of = &spare, block = UINT64_MAX, next = 0, wrong = 0;

	for (unsigned i = 0; i < run->n; i++) {
		const uint64_t number = run->triggers[i].word[0] ^ run->lap, of = run->triggers[i].word[1] ^ run->lap;

		if (of != block) {
			*next_of = next;
			block = of;
			next_of = block < c->blocks ? &c->next[block] : &spare;
			next = next_of == &spare ? UINT64_MAX : *next_of;  /* which no 63 bits are */
		}
		if (number == next)
			next++;
		else
			wrong++;
	}
	*next_of = next;
	c->wrong += wrong;
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
					 "%s: of the %" PRIu64 " triggers that each of %u threads pushed, %" PRIu64
					 " did not come just as often; the sum of their threads' numbers is %" PRIu64
					 " and should be %" PRIu64,
					 kernel, c->triggers, c->blocks, c->wrong, c->sum, sum);
		return GPUL_OK;
	}
	for (unsigned i = 0; i < c->blocks; i++)  /* as many in all may be one's too few and another's too many */
		c->wrong += c->next[i] != c->triggers;
	if (c->wrong)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: %" PRIu64 " of %" PRIu64 " triggers were wrong, repeated or out of order", kernel,
				 c->wrong, c->triggers * c->blocks);
	return GPUL_OK;
}
