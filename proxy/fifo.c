/* fifo.c — see fifo.h: the CPU's end, while it runs: take out, release, give up.
 *
 *     glance() ── 64 lanes at once: who may have something? ──> take() ── one lane: what is really there
 *
 * Fast because of three things.  The lines that a GPU wrote last are in no cache of this core: a glance asks for all of
 * its lanes' at once, where a look at one lane after the other would wait for each.  What is taken out is in sequence.
 * And tails are written once for all that was handled. */
#include "proxy/fifo_internal.h"

#include <stdio.h>

static const uint64_t LAP = 1ull << 63;

/* ---- taking out ------------------------------------------------------------------ */

static inline uint64_t first_bits(unsigned n)
{
	return n < 64 ? (1ull << n) - 1 : ~0ull;
}

/* Which of a group's lanes may have a trigger, a bit each.  One word of each next slot is looked at, in no order: no load
 * waits for another, and nothing is guessed that could be guessed wrong.  take() looks again, and properly. */
static inline uint64_t glance(const gpul_fifo *f, unsigned group)
{
	const unsigned first = group * GPUL_FIFO_GROUP;
	const unsigned n = f->lanes - first < GPUL_FIFO_GROUP ? f->lanes - first : GPUL_FIFO_GROUP;
	const uint64_t *taken = f->taken + first, mask = (1ull << f->shift) - 1;
	const struct gpul_trigger *ring = f->slots + ((size_t)first << f->shift);
	uint64_t laps = 0;

	for (unsigned i = 0; i < n; i++, ring += mask + 1)
		laps = laps >> 1 | (__atomic_load_n(&ring[taken[i] & mask].word[0], __ATOMIC_RELAXED) & LAP);
	return ~(laps >> (GPUL_FIFO_GROUP - n) ^ f->awaited[group]) & first_bits(n);
}

/* Up to max triggers of a lane, as long as both words are of the lap that is awaited.  The acquire's partner is the
 * kernel's fence before its store (push_release). */
static inline unsigned take(gpul_fifo *f, unsigned lane, gpul_fifo_item *items, unsigned max)
{
	const unsigned shift = f->shift;
	const uint64_t mask = (1ull << shift) - 1;
	const struct gpul_trigger *ring = f->slots + ((size_t)lane << shift);
	const uint64_t first = f->taken[lane], room = f->released[lane] + mask + 1 - first;
	const unsigned most = max < room ? max : (unsigned)room;  /* no more than a lap, whatever the slots say */
	unsigned n = 0;

	for (; n < most; n++) {
		const uint64_t at = first + n, lap = ~(at >> shift) << 63;
		const uint64_t a = gpul_fifo_load(&ring[at & mask].word[0]) ^ lap;
		const uint64_t b = gpul_fifo_load(&ring[at & mask].word[1]) ^ lap;

		if ((a | b) & LAP)
			break;
		items[n] = (gpul_fifo_item){ .word = { a, b }, .position = at, .lane = lane };
	}
	f->taken[lane] = first + n;
	return n;
}

/* The same of those lanes of a group that are given.  The turn goes to the lane behind the last one. */
static inline unsigned take_from(gpul_fifo *f, unsigned group, uint64_t lanes, gpul_fifo_item *items, unsigned max)
{
	uint64_t owing = 0, awaited = f->awaited[group];
	unsigned n = 0, lane = 0;

	for (; lanes && n < max; lanes &= lanes - 1) {
		const uint64_t bit = lanes & -lanes;

		lane = group * GPUL_FIFO_GROUP + (unsigned)__builtin_ctzll(lanes);
		const unsigned took = take(f, lane, items + n, max - n);

		owing |= took ? bit : 0;
		awaited = f->taken[lane] >> f->shift & 1 ? awaited & ~bit : awaited | bit;
		n += took;
	}
	if (n == 0)
		return 0;
	f->turn = (lane + 1) & (f->lanes - 1);
	f->awaited[group] = awaited;
	f->owing[group] |= owing;
	f->owing_groups |= 1ull << group;
	return n;
}

unsigned gpul_fifo_poll(gpul_fifo *f, gpul_fifo_item *items, unsigned max)
{
	const unsigned n_groups = (f->lanes + GPUL_FIFO_GROUP - 1) / GPUL_FIFO_GROUP;
	const uint64_t before = first_bits(f->turn % GPUL_FIFO_GROUP);  /* the turn: their group's end, not its beginning */
	unsigned group = f->turn / GPUL_FIFO_GROUP, n;

	if (gpul_fifo_load(&f->header->raised))
		gpul_fifo_aborted(f);  /* which hands it on */
	n = take_from(f, group, glance(f, group) & ~before, items, max);
	for (unsigned i = 1; n == 0 && i < n_groups; i++) {
		group = group + 1 < n_groups ? group + 1 : 0;
		n = take_from(f, group, glance(f, group), items, max);
	}
	if (n == 0 && before) {  /* round to where it began */
		group = f->turn / GPUL_FIFO_GROUP;
		n = take_from(f, group, glance(f, group) & before, items, max);
	}
	return n;
}

/* ---- releasing ------------------------------------------------------------------- */

static inline void release(gpul_fifo *f, unsigned lane, uint64_t upto)
{
	f->released[lane] = upto;
	gpul_fifo_store(&f->lines[lane].tail, upto);  /* partner: the kernels' ld.acquire of the line */
}

void gpul_fifo_release_lane(gpul_fifo *f, unsigned lane, uint64_t upto)
{
	assert(lane < f->lanes && upto - f->released[lane] <= f->taken[lane] - f->released[lane]);
	release(f, lane, upto);
}

void gpul_fifo_release(gpul_fifo *f)
{
	for (; f->owing_groups; f->owing_groups &= f->owing_groups - 1) {
		const unsigned group = (unsigned)__builtin_ctzll(f->owing_groups);

		for (uint64_t lanes = f->owing[group]; lanes; lanes &= lanes - 1) {
			const unsigned lane = group * GPUL_FIFO_GROUP + (unsigned)__builtin_ctzll(lanes);

			release(f, lane, f->taken[lane]);
		}
		f->owing[group] = 0;
	}
}

/* ---- giving up ------------------------------------------------------------------- */

void gpul_fifo_abort(gpul_fifo *f, uint32_t code)
{
	gpul_fifo_area_abort(f->header, f->lanes, code);
}

uint32_t gpul_fifo_aborted(gpul_fifo *f)
{
	return gpul_fifo_area_aborted(f->header, f->lanes);
}

const char *gpul_fifo_code_text(uint32_t code, char buf[64])
{
	switch (code) {
	case 0: return "not aborted";
	case GPUL_FIFO_CODE_TIMED_OUT: return "a kernel's time-out";
	case GPUL_FIFO_CODE_STOPPED: return "the proxy was stopped";
	case GPUL_FIFO_CODE_PEER_GONE: return "the other process has ended";
	}
	snprintf(buf, 64, code < GPUL_FIFO_CODE_TIMED_OUT ? "a handler failed with status %u" : "code %u", code);
	return buf;
}
