/* run_address.c — handlers for copies between register widths and for addresses: cvta, isspacep, addresses of variables.
 *
 * A .shared address is an offset in the block's shared memory, a .local address an offset in the lane's local memory, a .param
 * address an offset in the kernel's parameters.  A generic address is a host address: a .global or .const address is the same as its
 * generic address; in the other spaces, the generic address is the host address of that memory (the window) + the offset. */
#include "softcuda/exec/run/run_internal.h"

#define COPY(name, to, to_type, from) \
	HANDLER(name) \
	{ \
		__typeof__(from(w, i->a)) const a = from(w, i->a); \
		SET_LANES(w, to(w, i->d), (to_type)a[l]); \
		return i + 1; \
	}

COPY(CUT_32_16, U16, uint16_t, U32)
COPY(CUT_64_16, U16, uint16_t, U64)
COPY(CUT_64_32, U32, uint32_t, U64)
COPY(EXT_U16_32, U32, uint32_t, U16)
COPY(EXT_S16_32, S32, int32_t, S16)
COPY(EXT_U16_64, U64, uint64_t, U16)
COPY(EXT_S16_64, S64, int64_t, S16)
COPY(EXT_U32_64, U64, uint64_t, U32)
COPY(EXT_S32_64, S64, int64_t, S32)

HANDLER(ADDR_32)
{
	const uint32_t *a = U32(w, i->a), add = (uint32_t)i->imm;

	SET_LANES(w, U32(w, i->d), a[l] + add);
	return i + 1;
}

HANDLER(ADDR_64)
{
	const uint64_t *a = U64(w, i->a), add = (uint64_t)i->imm;

	SET_LANES(w, U64(w, i->d), a[l] + add);
	return i + 1;
}

HANDLER(LOCAL_ADDR_32)
{
	uint32_t at = state_of(w)->frame->local_offset + (uint32_t)i->imm;

	SET_LANES(w, U32(w, i->d), at);
	return i + 1;
}

HANDLER(LOCAL_ADDR_64)
{
	uint64_t at = state_of(w)->frame->local_offset + (uint64_t)i->imm;

	SET_LANES(w, U64(w, i->d), at);
	return i + 1;
}

/* Return the host address of an address space's memory in lane 0; *stride: the distance to the next lane's memory, 0 if shared. */
static uint64_t window_base(const struct warp_state *s, unsigned flags, uint64_t *stride)
{
	*stride = 0;
	switch (flags & SPACE_MASK) {
	case SPACE_SHARED:
		return (uintptr_t)s->shared;
	case SPACE_LOCAL:
		*stride = s->local_stride;
		return (uintptr_t)s->local;
	case SPACE_PARAM:
		return (uintptr_t)s->params;
	default:
		return 0;
	}
}

/* ---- clusters: addresses in the shared memory of other blocks (struct cluster in warp/warp_internal.h) --------------- */

static const struct insn *peers_to_generic(struct warp *w, const struct insn *i)
{
	const struct warp_state *s = state_of(w);

	EACH_ACTIVE(l, w)
	{
		const uint32_t at = (uint32_t)U64(w, i->a)[l];
		const struct block *b = cluster_block(s->block, at);

		U64(w, i->d)[l] = b ? (uintptr_t)b->shared + (at & ((1u << CLUSTER_RANK_AT) - 1)) : (uintptr_t)s->shared + at;
	}
	return i + 1;
}

static const struct insn *peers_from_generic(struct warp *w, const struct insn *i)
{
	const struct warp_state *s = state_of(w);

	EACH_ACTIVE(l, w)
	{
		const uint64_t at = U64(w, i->a)[l];
		uint64_t offset;
		const struct block *b = gpul_cluster_find(s->block, at, &offset);

		U64(w, i->d)[l] = b && b != s->block ? (uint64_t)(b->rank + 1) << CLUSTER_RANK_AT | offset : at - (uintptr_t)s->shared;
	}
	return i + 1;
}

/* mapa d, a, b: return the address, in the block of rank b, of the shared variable at address a of any block.  i->n: generic addresses. */
static uint64_t map_address(const struct warp_state *s, const struct insn *i, uint64_t at, uint32_t rank)
{
	const struct cluster *c = s->block->cluster;
	uint64_t offset = at & ((1u << CLUSTER_RANK_AT) - 1);

	if (!c)
		return at;
	if (rank >= c->n_blocks || !c->block[rank] || (i->n && !gpul_cluster_find(s->block, at, &offset)))
		return 0;
	return i->n ? (uintptr_t)c->block[rank]->shared + offset : (uint64_t)(rank + 1) << CLUSTER_RANK_AT | offset;
}

HANDLER(MAPA_32)
{
	EACH_ACTIVE(l, w)
	U32(w, i->d)[l] = (uint32_t)map_address(state_of(w), i, U32(w, i->a)[l], U32(w, i->b)[l]);
	return i + 1;
}

HANDLER(MAPA_64)
{
	EACH_ACTIVE(l, w)
	U64(w, i->d)[l] = map_address(state_of(w), i, U64(w, i->a)[l], U32(w, i->b)[l]);
	return i + 1;
}

static uint32_t rank_of_address(const struct warp_state *s, const struct insn *i, uint64_t at)
{
	uint64_t offset;
	const struct block *b = i->n ? gpul_cluster_find(s->block, at, &offset) : cluster_block(s->block, (uint32_t)at);

	return b ? b->rank : s->block->cluster ? s->block->rank : 0;
}

HANDLER(CTARANK_32)
{
	EACH_ACTIVE(l, w)
	U32(w, i->d)[l] = rank_of_address(state_of(w), i, U32(w, i->a)[l]);
	return i + 1;
}

HANDLER(CTARANK_64)
{
	EACH_ACTIVE(l, w)
	U32(w, i->d)[l] = rank_of_address(state_of(w), i, U64(w, i->a)[l]);
	return i + 1;
}

/* As measured on an H200, only the lower 32 bits of a .shared address are used, but all 64 bits of a .local address. */
HANDLER(TO_GENERIC)
{
	uint64_t stride, base = window_base(state_of(w), i->flags, &stride);
	const uint64_t *a = U64(w, i->a);
	const uint64_t keep = (i->flags & SPACE_MASK) == SPACE_SHARED ? UINT32_MAX : UINT64_MAX;

	if (state_of(w)->block->cluster && (i->flags & SPACE_MASK) == SPACE_SHARED)
		return peers_to_generic(w, i);
	SET_LANES(w, U64(w, i->d), (a[l] & keep) + base + l * stride);
	return i + 1;
}

HANDLER(FROM_GENERIC)
{
	uint64_t stride, base = window_base(state_of(w), i->flags, &stride);
	const uint64_t *a = U64(w, i->a);

	if (state_of(w)->block->cluster && (i->flags & SPACE_MASK) == SPACE_SHARED)
		return peers_from_generic(w, i);
	SET_LANES(w, U64(w, i->d), a[l] - base - l * stride);
	return i + 1;
}

static uint32_t lanes_inside(const struct warp *w, opref a, uint64_t base, uint64_t stride, uint64_t bytes)
{
	uint32_t inside = 0;

	for (unsigned l = 0; l < LANES; l++)
		inside |= (uint32_t)(U64(w, a)[l] - base - l * stride < bytes) << l;
	return inside;
}

HANDLER(ISSPACEP)
{
	const struct warp_state *s = state_of(w);
	uint32_t shared = lanes_inside(w, i->a, (uintptr_t)s->shared, 0, s->shared_bytes);
	uint32_t local = lanes_inside(w, i->a, (uintptr_t)s->local, s->local_stride, s->local_bytes);
	uint32_t param = lanes_inside(w, i->a, (uintptr_t)s->params, 0, s->param_bytes), peers = 0, is;

	for (unsigned l = 0; s->block->cluster && l < LANES; l++) {
		uint64_t offset;

		peers |= (uint32_t)(gpul_cluster_find(s->block, U64(w, i->a)[l], &offset) != NULL) << l;
	}
	switch (i->flags & SPACE_MASK) {
	case SPACE_SHARED:
		is = i->n ? shared | peers : shared;
		break;
	case SPACE_LOCAL:
		is = local;
		break;
	case SPACE_PARAM:
		is = param;
		break;
	default:
		is = ~(shared | peers | local | param);
		break;
	}
	set_predicate(w, i->d, is);
	return i + 1;
}

HANDLER(ISSPACEP_CONST)
{
	const struct address_ranges *r = i->object;
	const uint64_t *a = U64(w, i->a);
	uint32_t is = 0;

	EACH_ACTIVE(l, w)
	for (uint32_t k = 0; k < r->n; k++)
		if (a[l] >= r->at[k].begin && a[l] < r->at[k].end)
			is |= 1u << l;
	set_predicate(w, i->d, is);
	return i + 1;
}
