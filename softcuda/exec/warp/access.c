/* access.c — checks the memory accesses of each lane separately, when access_internal.h cannot check all lanes together. */
#include "softcuda/exec/warp/access_internal.h"

/* Returns true if [at, at + bytes) is inside [0, size). */
static bool inside(uint64_t at, uint64_t bytes, uint64_t size)
{
	return at <= size && bytes <= size - at;
}

/* Return the host address of an access by a generic address to shared memory of another block in the cluster; 0: not allowed. */
static uint64_t peer_generic(const struct warp_state *s, uint64_t at, uint64_t bytes)
{
	uint64_t offset;
	const struct block *b = gpul_cluster_find(s->block, at, &offset);

	return b && inside(offset, bytes, b->shared_bytes) ? at : 0;
}

static uint64_t peer_shared(const struct warp_state *s, uint64_t at, uint64_t bytes)
{
	const struct block *b = cluster_block(s->block, (uint32_t)at);
	const uint64_t offset = at & ((1u << CLUSTER_RANK_AT) - 1);

	return b && inside(offset, bytes, b->shared_bytes) ? (uintptr_t)b->shared + offset : 0;
}

/* Return true if an access through a generic address is allowed.  The block's shared memory, the lane's local memory and the
 * parameters are checked before the memory table, whose search takes longer. */
static bool generic_allowed(struct warp_state *s, unsigned slot, unsigned l, uint64_t at, uint64_t bytes, bool write)
{
	return inside(at - (uintptr_t)s->shared, bytes, s->shared_bytes) ||
	       inside(at - (uintptr_t)s->local - l * s->local_stride, bytes, s->local_bytes) ||
	       (!write && inside(at - (uintptr_t)s->params, bytes, s->param_bytes)) || range_covers(s->cache, slot, at, bytes, write) ||
	       peer_generic(s, at, bytes);
}

/* Return the host address of a lane's access; 0: the access is not allowed. */
static uint64_t host_address(struct warp_state *s, const struct insn *i, unsigned l, uint64_t at, unsigned bytes, bool write)
{
	switch (i->flags & SPACE_MASK) {
	case SPACE_GLOBAL:
		return range_covers(s->cache, i->src, at, bytes, write) ? at : 0;
	case SPACE_GENERIC:
		return generic_allowed(s, i->src, l, at, bytes, write) ? at : 0;
	case SPACE_SHARED:
		return inside(at, bytes, s->shared_bytes) ? (uintptr_t)s->shared + at : peer_shared(s, at, bytes);
	case SPACE_LOCAL:
		return inside(at, bytes, s->local_bytes) ? (uintptr_t)s->local + l * s->local_stride + at : 0;
	default:
		return !write && inside(at, bytes, s->param_bytes) ? (uintptr_t)s->params + at : 0;
	}
}

enum shape gpul_access_slow(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x)
{
	EACH_ACTIVE(l, &s->w)
	{
		uint64_t at = lane_address(s, i, l);

		x->each[l] = at & (bytes - 1) ? 0 : host_address(s, i, l, at, bytes, write);
		if (!x->each[l] && write && gpul_store_multicast(s, i, bytes, host_address, x))
			return SHAPE_FAULT; /* the store is done; SHAPE_FAULT makes the handler return x->stop, here the next instruction */
		if (!x->each[l]) {
			x->stop = gpul_fault_access(s, i, l, at, bytes, write);
			return SHAPE_FAULT;
		}
	}
	return SHAPE_EACH;
}

bool gpul_lane_may_read(struct warp_state *s, unsigned lane, uint64_t at, uint64_t bytes)
{
	return generic_allowed(s, 0, lane, at, bytes, false);
}

bool gpul_lane_may_write(struct warp_state *s, unsigned lane, uint64_t at, uint64_t bytes)
{
	return generic_allowed(s, 0, lane, at, bytes, true);
}

bool gpul_lane_string(struct warp_state *s, unsigned lane, uint64_t at, char *buf, size_t bytes)
{
	size_t n = 0;

	for (; n + 1 < bytes; n++) {
		if (!gpul_lane_may_read(s, lane, at + n, 1))
			return false;
		buf[n] = *(const char *)(uintptr_t)(at + n);
		if (!buf[n])
			return true;
	}
	buf[n] = '\0';
	return true;
}
