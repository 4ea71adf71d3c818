/* fifo.c — the operations of the CPU's end of the FIFO: poll, release, abort.
 *
 *     scan_lanes() ── scan_group(): which of 64 lanes have a trigger? ──> pending ─┬─ poll: copies the triggers of each lane
 *                                                                                  └─ poll_run: one lane's, not copied
 *
 * Three things make it fast.  A cache line that the GPU has just written is not in this core's caches, so scan_group()
 * issues the loads of 64 lanes together; it keeps the values, because the GPU will soon write those lines again.  Further
 * triggers of a lane are read sequentially, with prefetching.  A lane's tail is written once per batch. */
#include "proxy/fifo_internal.h"

#include <stdio.h>

static const uint64_t LAP = 1ull << 63;

/* ---- scanning lanes for triggers -------------------------------------------------- */

/* Return one bit for each lane of a group that has a trigger, and store the triggers in seen.  The loop has no branches, so
 * that loads overlap and nothing is mispredicted.  A slot is full when both words have the expected
 * lap bit.  The acquire loads pair with the kernel's fence before its store (push_release). */
static inline uint64_t scan_group(gpul_fifo *f, unsigned group)
{
	const unsigned first = group * GPUL_FIFO_GROUP;
	const unsigned n = f->lanes - first < GPUL_FIFO_GROUP ? f->lanes - first : GPUL_FIFO_GROUP;
	const uint64_t *taken = f->taken + first, mask = f->mask, awaited = f->awaited[group];
	const struct gpul_trigger *ring = f->slots + (mask + 1) * first;
	uint64_t ones = 0, zeros = 0;

	for (unsigned i = 0; i < n; i++, ring += mask + 1) {
		const struct gpul_trigger *slot = &ring[taken[i] & mask];
		const uint64_t a = gpul_fifo_load(&slot->word[0]), b = gpul_fifo_load(&slot->word[1]);

		f->seen[i] = (struct gpul_trigger){ { a, b } };
		ones = ones >> 1 | (a & b & LAP);
		zeros = zeros >> 1 | (~(a | b) & LAP);
	}
	return (awaited & ones >> (GPUL_FIFO_GROUP - n)) | (~awaited & zeros >> (GPUL_FIFO_GROUP - n));
}

/* Make a mask of bits 0 to n - 1.  n is never 64, but gcc 12 compiles a faster scan_lanes() if this function tests for 64: an
 * empty poll of 128 lanes takes 223 ns instead of 233. */
static inline uint64_t bits_below(unsigned n)
{
	return n < 64 ? (1ull << n) - 1 : ~0ull;
}

/* Set `pending` to the lanes with triggers in the first group that has any.  The search begins with lane f->turn:
 * first the lanes of its group from `turn` on, then the other groups, then the lanes of its group below `turn`. */
static inline void scan_lanes(gpul_fifo *f)
{
	const unsigned n_groups = (f->lanes + GPUL_FIFO_GROUP - 1) / GPUL_FIFO_GROUP;
	const uint64_t before = bits_below(f->turn % GPUL_FIFO_GROUP); /* the group's lanes below f->turn */
	unsigned group = f->turn / GPUL_FIFO_GROUP;
	uint64_t lanes = scan_group(f, group);

	if (gpul_fifo_load(&f->header->raised))
		gpul_fifo_aborted(f); /* if a kernel has set an abort code, copy it to all lanes */
	if (lanes & ~before) {
		lanes &= ~before;
	} else if (n_groups > 1) {
		const bool again = lanes != 0;

		lanes = 0;
		for (unsigned i = 1; !lanes && i < n_groups; i++) {
			group = group + 1 < n_groups ? group + 1 : 0;
			lanes = scan_group(f, group);
		}
		if (!lanes && again) {
			group = f->turn / GPUL_FIFO_GROUP;
			lanes = scan_group(f, group);
		}
	}
	f->pending = lanes;
	f->pending_group = group;
}

/* ---- taking triggers out ---------------------------------------------------------- */

/* The lanes of a group from which triggers were taken, one bit each. */
struct taking {
	uint64_t owing; /* lanes whose new tails the next release must write */
	uint64_t round; /* lanes that have wrapped around, so that their next triggers have the other lap bit */
};

static inline struct gpul_trigger *ring_of(const gpul_fifo *f, unsigned lane)
{
	return f->slots + (f->mask + 1) * lane;
}

static inline uint64_t lap_of(const gpul_fifo *f, uint64_t at)
{
	return ~(at >> f->shift) << 63;
}

/* Return how many more triggers may be taken from a lane: at most as many as it has slots, because a hostile peer may fill slots
 * that have not been released. */
static inline unsigned room_of(const gpul_fifo *f, unsigned lane, unsigned max)
{
	const uint64_t room = f->released[lane] + f->mask + 1 - f->taken[lane];

	return max < room ? max : (unsigned)room;
}

static inline void record_taken(gpul_fifo *f, struct taking *t, unsigned lane, uint64_t bit, unsigned n)
{
	const bool round = (f->taken[lane] & f->mask) + n > f->mask;

	f->taken[lane] += n;
	t->owing |= bit;
	t->round |= round ? bit : 0;
}

/* End a batch from a group, whose last trigger came from `lane`: the next scan begins with the lane after it. */
static inline void end_batch(gpul_fifo *f, const struct taking *t, unsigned lane)
{
	const unsigned group = lane / GPUL_FIFO_GROUP;

	f->turn = (lane + 1) & (f->lanes - 1);
	f->awaited[group] ^= t->round;
	f->owing[group] |= t->owing;
	f->owing_groups |= 1ull << group;
}

/* Copy up to max consecutive triggers that have the lap's bit; returns their number. */
static inline unsigned copy_run(const struct gpul_trigger *slot, uint64_t lap, gpul_fifo_item item, gpul_fifo_item *items, unsigned max)
{
	unsigned n = 0;

	for (; n < max; n++, item.position++) {
		item.word[0] = gpul_fifo_load(&slot[n].word[0]) ^ lap;
		item.word[1] = gpul_fifo_load(&slot[n].word[1]) ^ lap;
		if ((item.word[0] | item.word[1]) & LAP)
			break;
		items[n] = item;
	}
	return n;
}

/* Copy up to max triggers of a lane, from position `at` on: first up to the end of the ring, then from its beginning. */
static inline unsigned copy_lane(const gpul_fifo *f, unsigned lane, uint64_t at, gpul_fifo_item *items, unsigned max)
{
	const struct gpul_trigger *ring = ring_of(f, lane);
	unsigned n = 0;

	while (n < max) { /* runs at most twice */
		const uint64_t to_end = f->mask + 1 - (at & f->mask);
		const unsigned wanted = max - n < to_end ? max - n : (unsigned)to_end;
		const unsigned got = copy_run(&ring[at & f->mask], lap_of(f, at), (gpul_fifo_item){ .position = at, .lane = lane },
					      items + n, wanted);

		n += got;
		at += got;
		if (got < wanted)
			break;
	}
	return n;
}

unsigned gpul_fifo_poll(gpul_fifo *f, gpul_fifo_item *items, unsigned max)
{
	struct taking t = { 0 };
	uint64_t pending;
	unsigned n = 0, lane = 0;

	if (!f->pending)
		scan_lanes(f);
	for (pending = f->pending; pending && n < max; pending &= pending - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(pending);

		lane = f->pending_group * GPUL_FIFO_GROUP + i;
		const uint64_t first = f->taken[lane];
		const unsigned room = room_of(f, lane, max - n);
		unsigned got = 1;

		if (room == 0)
			continue;
		items[n] = (gpul_fifo_item){ .word = { f->seen[i].word[0] & ~LAP, f->seen[i].word[1] & ~LAP },
					     .position = first,
					     .lane = lane };
		if (room > 1)
			got += copy_lane(f, lane, first + 1, items + n + 1, room - 1);
		record_taken(f, &t, lane, pending & -pending, got);
		n += got;
	}
	f->pending = pending;
	if (n > 0)
		end_batch(f, &t, lane);
	return n;
}

/* Compare lap bits: bit LAP of the result is set unless both words have the lap's bit. */
static inline uint64_t lap_mismatch(const struct gpul_trigger *slot, uint64_t lap)
{
	return (gpul_fifo_load(&slot->word[0]) ^ lap) | (gpul_fifo_load(&slot->word[1]) ^ lap);
}

/* Prefetch distance in slots.  With 32 instead of none, an H200's host reads 40 % more triggers per second; with 128, the GPU's
 * write removes the line from the cache again before it is used. */
enum { AHEAD = 32 };

/* Count consecutive slots that have the lap's bit, one cache line at a time, so that only the last branch is mispredicted. */
static inline unsigned count_run(const struct gpul_trigger *ring, uint64_t at, uint64_t mask, uint64_t lap, unsigned max)
{
	const struct gpul_trigger *slot = &ring[at & mask];
	unsigned n = 0;

	for (; n + 4 <= max; n += 4) {
		__builtin_prefetch(&ring[(at + n + AHEAD) & mask]); /* this may also prefetch slots after the end of the run */
		if ((lap_mismatch(&slot[n], lap) | lap_mismatch(&slot[n + 1], lap) | lap_mismatch(&slot[n + 2], lap) |
		     lap_mismatch(&slot[n + 3], lap)) &
		    LAP)
			break;
	}
	while (n < max && !(lap_mismatch(&slot[n], lap) & LAP))
		n++;
	return n;
}

unsigned gpul_fifo_poll_run(gpul_fifo *f, gpul_fifo_run *run, unsigned max)
{
	struct taking t = { 0 };

	if (!f->pending)
		scan_lanes(f);
	if (!f->pending || max == 0)
		return 0;
	const unsigned i = (unsigned)__builtin_ctzll(f->pending), lane = f->pending_group * GPUL_FIFO_GROUP + i;
	const uint64_t first = f->taken[lane], to_end = f->mask + 1 - (first & f->mask);
	const unsigned room = room_of(f, lane, max), most = room < to_end ? room : (unsigned)to_end;

	f->pending &= f->pending - 1;
	if (most == 0)
		return 0;
	*run = (gpul_fifo_run){ .triggers = &f->seen[i], .lap = lap_of(f, first), .position = first, .lane = lane, .n = 1 };
	if (most > 1) {
		run->triggers = ring_of(f, lane) + (first & f->mask);
		run->n = 1 + count_run(ring_of(f, lane), first + 1, f->mask, run->lap, most - 1);
	}
	record_taken(f, &t, lane, 1ull << i, run->n);
	end_batch(f, &t, lane);
	return run->n;
}

/* ---- releasing ------------------------------------------------------------------- */

static inline void store_tail(gpul_fifo *f, unsigned lane, uint64_t upto)
{
	f->released[lane] = upto;
	gpul_fifo_store(&f->lines[lane].tail, upto); /* pairs with the kernels' ld.acquire of the line */
}

void gpul_fifo_release_lane(gpul_fifo *f, unsigned lane, uint64_t upto)
{
	assert(lane < f->lanes && upto - f->released[lane] <= f->taken[lane] - f->released[lane]);
	store_tail(f, lane, upto);
}

void gpul_fifo_release(gpul_fifo *f)
{
	for (; f->owing_groups; f->owing_groups &= f->owing_groups - 1) {
		const unsigned group = (unsigned)__builtin_ctzll(f->owing_groups);

		for (uint64_t lanes = f->owing[group]; lanes; lanes &= lanes - 1) {
			const unsigned lane = group * GPUL_FIFO_GROUP + (unsigned)__builtin_ctzll(lanes);

			store_tail(f, lane, f->taken[lane]);
		}
		f->owing[group] = 0;
	}
}

/* ---- aborting --------------------------------------------------------------------- */

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
	case 0:
		return "not aborted";
	case GPUL_FIFO_CODE_TIMED_OUT:
		return "a kernel waited longer than its time-out";
	case GPUL_FIFO_CODE_STOPPED:
		return "the proxy was stopped";
	case GPUL_FIFO_CODE_PEER_GONE:
		return "the other process has ended";
	}
	snprintf(buf, 64, code < GPUL_FIFO_CODE_TIMED_OUT ? "a handler failed with status %u" : "code %u", code);
	return buf;
}
