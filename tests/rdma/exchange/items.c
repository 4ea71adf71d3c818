/* items.c — the messages of a round: every size class, alignments, shorter than and equal to their buffers, multi-receives. */
#include "tests/rdma/exchange/exchange.h"

#define MIB (UINT64_C(1) << 20)

static const uint64_t classes[] = {
	0, 1, 7, 8, 63, 64, 127, 4095, 4096, 4097, 12345, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 2 * MIB + 4099,
};
enum { N_CLASSES = sizeof classes / sizeof classes[0] };

static uint64_t next(uint64_t *state)
{
	return mix((*state)++);
}

static uint64_t seed_of(const plan *p, unsigned direction, unsigned stream, uint64_t k)
{
	return mix(mix(p->seed + p->connection * 2 + direction) + mix(p->round * 2 + stream) + k);
}

/* Return class k (modulo their number) of the size classes of at most `most` bytes. */
static uint64_t class_at(uint64_t k, uint64_t most)
{
	unsigned n = 0;

	while (n < N_CLASSES && classes[n] <= most)
		n++;
	return classes[k % n];
}

/* Return the size of a buffer: in a third of the cases that of its message, in a third a few bytes more, in a third many more. */
static uint64_t room_for(uint64_t bytes, uint64_t random)
{
	switch (random % 3) {
	case 0:
		return bytes;
	case 1:
		return bytes + 1 + (random >> 8) % 63;
	default:
		return bytes + (random >> 8) % SPARE;
	}
}

static void make_one(const plan *p, uint32_t k, uint64_t *state, item *out)
{
	part *x = &out->parts[0];

	out->n = 1;
	/* The largest size is not in a class: a plan with a single item sends it. */
	x->bytes = p->n_items == 1 ? p->max_bytes : class_at(k - k / 4 + p->connection * 5 + p->round * 3, p->max_bytes);
	x->room = room_for(x->bytes, next(state));
	x->offset = PAD;
	x->tag = (uint32_t)next(state);
}

static void make_several(const plan *p, uint64_t *state, item *out)
{
	const uint64_t room = p->segment_bytes < MULTI_BYTES ? p->segment_bytes : MULTI_BYTES;
	uint64_t offset = PAD;

	out->n = 2 + (unsigned)(next(state) % (GPUL_RDMA_MAX_PARTS - 1));
	for (unsigned i = 0; i < out->n; i++) {
		part *x = &out->parts[i];

		x->bytes = class_at(next(state), p->max_bytes < room ? p->max_bytes : room);
		x->room = room_for(x->bytes, next(state));
		x->room = x->room < room ? x->room : room;
		x->offset = offset;
		x->tag = (uint32_t)next(state) << 3 | i;
		offset += MULTI_BYTES + PAD;
	}
}

void item_make(const plan *p, unsigned direction, uint32_t k, item *out)
{
	const uint64_t seed = seed_of(p, direction, 0, k);
	uint64_t state = seed;

	if (k % 4 == 3)
		make_several(p, &state, out);
	else
		make_one(p, k, &state, out);
	for (unsigned i = 0; i < out->n; i++) {
		const unsigned other = (unsigned)(next(&state) % (i + 1));

		out->parts[i].from = (uint32_t)(next(&state) % 64);
		out->parts[i].to = (uint32_t)(next(&state) % 64);
		out->parts[i].seed = mix(seed + i);
		out->order[i] = out->order[other]; /* a random permutation */
		out->order[other] = i;
	}
}

uint64_t slot_bytes(uint64_t max_bytes)
{
	const uint64_t one = max_bytes + SPARE + 3 * PAD, several = (uint64_t)GPUL_RDMA_MAX_PARTS * (MULTI_BYTES + PAD) + 2 * PAD;

	return ((one > several ? one : several) + 4095) / 4096 * 4096;
}

uint64_t put_make(const plan *p, unsigned direction, uint64_t k, uint32_t *align, uint64_t *seed)
{
	uint64_t state = seed_of(p, direction, 1, k);

	*seed = next(&state);
	*align = (uint32_t)(next(&state) % 64);
	return class_at(next(&state), p->max_bytes < PUT_BYTES ? p->max_bytes : PUT_BYTES);
}
