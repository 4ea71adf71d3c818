/* access_multicast.c — ordinary stores to multicast addresses, which write the value to the copy of each device.
 *
 * NCCL stores the flags of its NVLS channels this way.  Ordinary loads and atomic operations, which PTX leaves undefined, fault. */
#include "softcuda/exec/warp/access_internal.h"

enum { MOST_BYTES = 64 };

static const struct {
	uint8_t memory, reg;
} kinds[] = {
#define X(name, memory_type, reg_type) { sizeof(memory_type), sizeof(reg_type) },
	GPUL_STORE_KINDS(X)
#undef X
};

static bool is_store(const struct insn *i)
{
	return (i->op >= OP_ST_8_16 && i->op <= OP_ST_64_64) || i->op == OP_STV || i->op == OP_STO;
}

/* Read the value that one lane stores. */
static void read_value(const struct warp_state *s, const struct insn *i, unsigned lane, uint8_t value[MOST_BYTES])
{
	const unsigned n = i->n ? i->n : 1, memory = kinds[i->e].memory, reg = kinds[i->e].reg;
	const opref *list = i->n ? OPLIST(&s->w, i->b) : &i->b;

	for (unsigned e = 0; e < n; e++)
		memcpy(value + e * memory, (const uint8_t *)opptr(&s->w, list[e]) + lane * reg, memory);
}

/* Store a value with one store instruction per 8 bytes, in ascending order of addresses. */
static void store_value(uint8_t *to, const uint8_t *value, unsigned bytes)
{
	uint64_t word = 0;

	for (unsigned k = 0; k < bytes; k += 8) {
		memcpy(&word, value + k, bytes < 8 ? bytes : 8);
		if (bytes == 1)
			__atomic_store_n(to, (uint8_t)word, __ATOMIC_RELEASE);
		else if (bytes == 2)
			__atomic_store_n((uint16_t *)(void *)to, (uint16_t)word, __ATOMIC_RELEASE);
		else if (bytes == 4)
			__atomic_store_n((uint32_t *)(void *)to, (uint32_t)word, __ATOMIC_RELEASE);
		else
			__atomic_store_n((uint64_t *)(void *)(to + k), word, __ATOMIC_RELEASE);
	}
}

bool gpul_store_multicast(struct warp_state *s, const struct insn *i, unsigned bytes, host_address_fn *host_address, struct access *x)
{
	_Alignas(16) uint8_t value[MOST_BYTES];
	char why[160];

	if (!is_store(i) || (i->flags & SPACE_MASK) > SPACE_GENERIC)
		return false;
	EACH_ACTIVE(l, &s->w)
	{
		const uint64_t at = lane_address(s, i, l), host = at & (bytes - 1) ? 0 : host_address(s, i, l, at, bytes, true);
		const struct copies_slot *k = host || at & (bytes - 1) ? NULL
								       : copies_at(s->cache, i->src, at, bytes, true, why, sizeof why);

		if (!host && !k)
			return false;
		read_value(s, i, l, value);
		if (host)
			store_value((uint8_t *)(uintptr_t)host, value, bytes);
		for (unsigned n = 0; k && n < k->copies.n; n++)
			store_value(k->copies.at[n] + (at - k->base), value, bytes);
	}
	s->stirs = true;
	x->stop = i + 1;
	return true;
}
