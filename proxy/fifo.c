/* fifo.c — see fifo.h: the CPU's end, while it runs: take out, release, give up.
 *
 *     look_round() ── glance(): 64 lanes at once, who has something? ──> take() ── one lane: and what comes after it
 *
 * Fast because of three things.  The lines that a GPU wrote last are in no cache of this core: a glance asks for all of
 * its lanes' at once, where a look at one lane after the other would wait for each.  What is taken out is in sequence.
 * And tails are written once for all that was handled. */
#include "proxy/fifo_internal.h"

#include <stdatomic.h>
#include <stdio.h>

static const uint64_t LAP = 1ull << 63;

/* ---- taking out ------------------------------------------------------------------ */

static inline uint64_t first_bits(unsigned n)
{
	return n < 64 ? (1ull << n) - 1 : ~0ull;
}

/* Slots are looked at without order, and then this orders what was seen before what is done about it.  ThreadSanitizer
 * knows no fences: for it each look is ordered. */
#ifdef __SANITIZE_THREAD__
enum { LOOK = __ATOMIC_ACQUIRE };
static inline void order_looks(void)
{
}
#else
enum { LOOK = __ATOMIC_RELAXED };
static inline void order_looks(void)
{
	atomic_thread_fence(memory_order_acquire);
}
#endif

/* Which of a group's lanes have a trigger, a bit each, and what was seen of each lane's next slot.  In no order: no load
 * waits for another, nothing is guessed that could be guessed wrong, and a line that the GPU writes again at once need
 * not be fetched a second time.  A trigger is there when both its words are of the lap that is awaited. */
static inline uint64_t glance(const gpul_fifo *f, unsigned group, struct gpul_trigger seen[GPUL_FIFO_GROUP])
{
	const unsigned first = group * GPUL_FIFO_GROUP;
	const unsigned n = f->lanes - first < GPUL_FIFO_GROUP ? f->lanes - first : GPUL_FIFO_GROUP;
	const uint64_t *taken = f->taken + first, mask = (1ull << f->shift) - 1, awaited = f->awaited[group];
	const struct gpul_trigger *ring = f->slots + ((size_t)first << f->shift);
	uint64_t ones = 0, zeros = 0;

	for (unsigned i = 0; i < n; i++, ring += mask + 1) {
		const struct gpul_trigger *slot = &ring[taken[i] & mask];
		const uint64_t a = __atomic_load_n(&slot->word[0], LOOK);
		const uint64_t b = __atomic_load_n(&slot->word[1], LOOK);

		seen[i] = (struct gpul_trigger){ { a, b } };
		ones = ones >> 1 | (a & b & LAP);
		zeros = zeros >> 1 | (~(a | b) & LAP);
	}
	order_looks();  /* partner: the kernel's fence before its store (push_release) */
	return (awaited & ones >> (GPUL_FIFO_GROUP - n)) | (~awaited & zeros >> (GPUL_FIFO_GROUP - n));
}

/* LAP is set unless both words are of that lap. */
static inline uint64_t off(const struct gpul_trigger *slot, uint64_t lap)
{
	return (__atomic_load_n(&slot->word[0], LOOK) ^ lap) |
	       (__atomic_load_n(&slot->word[1], LOOK) ^ lap);
}

/* How many of a lane's slots from position first on are of the lap that is awaited: at most most, and not beyond the
 * ring's end. */
static inline unsigned count(const struct gpul_trigger *slot, uint64_t lap, unsigned most)
{
	unsigned n = 0;

	for (; n + 4 <= most; n += 4) {  /* a cache line at a time */
		if ((off(&slot[n], lap) | off(&slot[n + 1], lap) | off(&slot[n + 2], lap) | off(&slot[n + 3], lap)) & LAP)
			break;
	}
	while (n < most && !(off(&slot[n], lap) & LAP))
		n++;
	order_looks();
	return n;
}

/* Up to max triggers of a lane; the first one has been seen. */
static inline unsigned take(gpul_fifo *f, unsigned lane, const struct gpul_trigger *seen, gpul_fifo_item *items,
			    unsigned max)
{
	const unsigned shift = f->shift;
	const uint64_t mask = (1ull << shift) - 1;
	const struct gpul_trigger *ring = f->slots + ((size_t)lane << shift);
	const uint64_t first = f->taken[lane], room = f->released[lane] + mask + 1 - first;
	const unsigned most = max < room ? max : (unsigned)room;  /* no more than a lap, whatever the slots say */
	unsigned n = 0;

	for (; n < most; n++) {
		const uint64_t at = first + n, lap = ~(at >> shift) << 63;
		const uint64_t a = (n ? gpul_fifo_load(&ring[at & mask].word[0]) : seen->word[0]) ^ lap;
		const uint64_t b = (n ? gpul_fifo_load(&ring[at & mask].word[1]) : seen->word[1]) ^ lap;

		if ((a | b) & LAP)
			break;
		items[n] = (gpul_fifo_item){ .word = { a, b }, .position = at, .lane = lane };
	}
	f->taken[lane] = first + n;
	return n;
}

/* A lane's positions up to what was taken are owed to its tail; lap bit and turn go on. */
static inline void owe(gpul_fifo *f, unsigned lane)
{
	const unsigned group = lane / GPUL_FIFO_GROUP;
	const uint64_t bit = 1ull << lane % GPUL_FIFO_GROUP;

	f->awaited[group] = f->taken[lane] >> f->shift & 1 ? f->awaited[group] & ~bit : f->awaited[group] | bit;
	f->owing[group] |= bit;
	f->owing_groups |= 1ull << group;
	f->turn = (lane + 1) & (f->lanes - 1);
}

/* The same of those lanes of a group that are given.  The turn goes to the lane behind the last one. */
static inline unsigned take_from(gpul_fifo *f, unsigned group, uint64_t lanes, const struct gpul_trigger *seen,
				 gpul_fifo_item *items, unsigned max)
{
	unsigned n = 0;

	for (; lanes && n < max; lanes &= lanes - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(lanes), lane = group * GPUL_FIFO_GROUP + i;
		const unsigned took = take(f, lane, &seen[i], items + n, max - n);

		if (took)
			owe(f, lane);
		n += took;
	}
	return n;
}

/* The lanes of the first group, from the one whose turn it is, that have a trigger; 0: none has.  The turn goes round:
 * the end of its group, the other groups, the beginning of its group. */
static inline uint64_t look_round(gpul_fifo *f, unsigned *group, struct gpul_trigger seen[GPUL_FIFO_GROUP])
{
	const unsigned n_groups = (f->lanes + GPUL_FIFO_GROUP - 1) / GPUL_FIFO_GROUP;
	const uint64_t before = first_bits(f->turn % GPUL_FIFO_GROUP);
	uint64_t lanes;

	if (gpul_fifo_load(&f->header->raised))
		gpul_fifo_aborted(f);  /* which hands it on */
	*group = f->turn / GPUL_FIFO_GROUP;
	lanes = glance(f, *group, seen);
	if (lanes & ~before)
		return lanes & ~before;
	for (unsigned i = 1; i < n_groups; i++) {
		*group = *group + 1 < n_groups ? *group + 1 : 0;
		lanes = glance(f, *group, seen);
		if (lanes)
			return lanes;
	}
	if (n_groups == 1)
		return lanes;
	*group = f->turn / GPUL_FIFO_GROUP;
	return glance(f, *group, seen) & before;
}

unsigned gpul_fifo_poll(gpul_fifo *f, gpul_fifo_item *items, unsigned max)
{
	struct gpul_trigger seen[GPUL_FIFO_GROUP];
	unsigned group;
	const uint64_t lanes = look_round(f, &group, seen);

	return lanes ? take_from(f, group, lanes, seen, items, max) : 0;
}

unsigned gpul_fifo_poll_run(gpul_fifo *f, gpul_fifo_run *run, unsigned max)
{
	struct gpul_trigger seen[GPUL_FIFO_GROUP];
	const uint64_t mask = (1ull << f->shift) - 1;
	unsigned group, lane, n;
	const uint64_t lanes = look_round(f, &group, seen);
	uint64_t first, lap, room;

	if (!lanes)
		return 0;
	lane = group * GPUL_FIFO_GROUP + (unsigned)__builtin_ctzll(lanes);
	first = f->taken[lane];
	lap = ~(first >> f->shift) << 63;
	room = f->released[lane] + mask + 1 - first;
	if (room > mask + 1 - (first & mask))
		room = mask + 1 - (first & mask);
	*run = (gpul_fifo_run){ .triggers = f->slots + ((size_t)lane << f->shift) + (first & mask), .lap = lap,
				.position = first, .lane = lane };
	n = count(run->triggers, lap, max < room ? max : (unsigned)room);
	run->n = n;
	f->taken[lane] = first + n;
	if (n)
		owe(f, lane);
	return n;
}

/* ---- releasing ------------------------------------------------------------------- */

static inline void release(gpul_fifo *f, unsigned lane, uint64_t upto)
{
	f->released[lane] = upto;
	gpul_fifo_store(&f->lines[lane].tail, upto);  /* partner: the kernels' ld.acquire of the line */
	gpul_fifo_to_the_bus(&f->lines[lane]);
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
