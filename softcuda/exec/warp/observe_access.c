/* observe_access.c — describes to tools which memory each lane is about to access, before the instruction is executed. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/exec/matrix_internal.h"
#include "softcuda/exec/multimem_internal.h"
#include "softcuda/exec/warp/access_internal.h"
#include "softcuda/exec/warp/observe_internal.h"

/* ---- sizes of accesses ----------------------------------------------------------------------------------------- */

static const uint8_t load_bytes[] = {
#define X(name, memory, reg) sizeof(memory),
	GPUL_LOAD_KINDS(X)
#undef X
};
static const uint8_t store_bytes[] = {
#define X(name, memory, reg) sizeof(memory),
	GPUL_STORE_KINDS(X)
#undef X
};

/* Return the bytes that an atomic operation accesses, which the type in its name determines, such as 4 for ATOM_ADD_F16X2. */
static unsigned atomic_bytes(unsigned op)
{
	static const char *const names[] = {
#define X(name) #name,
		GPUL_ATOMIC_OPS(X)
#undef X
	};
	const char *type = strrchr(names[op - OP_ATOM_ADD_32], '_') + 1;

	if (strstr(type, "128"))
		return 16;
	if (strstr(type, "64"))
		return 8;
	if (strstr(type, "32") || strstr(type, "16X2"))
		return 4;
	return 2;
}

static bool is_atomic(unsigned op)
{
	return op >= OP_ATOM_ADD_32 && op <= OP_ATOM_EXCH_128;
}

static bool is_load(unsigned op)
{
	return op >= OP_LD_U8_16 && op <= OP_LDO;
}

static bool is_store(unsigned op)
{
	return op >= OP_ST_8_16 && op <= OP_STO;
}

bool gpul_insn_copies(const struct insn *i)
{
	return i->op == OP_CP_ASYNC || i->op == OP_CP_BULK || i->op == OP_CP_REDUCE;
}

static bool is_mbarrier(unsigned op)
{
	return op == OP_MBAR_INIT || op == OP_MBAR_ARRIVE || op == OP_MBAR_TEST;
}

static bool moves_matrix(unsigned op)
{
	return op == OP_LDMATRIX || op == OP_STMATRIX;
}

bool gpul_insn_is_multimem(const struct insn *i)
{
	return i->op == OP_MULTIMEM_LOAD || i->op == OP_MULTIMEM_STORE || i->op == OP_MULTIMEM_UPDATE;
}

bool gpul_insn_accesses_memory(const struct insn *i)
{
	return moves_matrix(i->op) || is_load(i->op) || is_store(i->op) || is_atomic(i->op) || is_mbarrier(i->op) || gpul_insn_copies(i) ||
	       gpul_insn_is_multimem(i);
}

unsigned gpul_insn_access_bytes(const struct insn *i)
{
	const unsigned n = i->n ? i->n : 1;

	if (gpul_insn_copies(i))
		return i->n;
	if (gpul_insn_is_multimem(i))
		return ((const struct multimem *)i->object)->bytes;
	if (moves_matrix(i->op))
		return MATRIX_ROW_BYTES;
	if (i->op == OP_LDV || i->op == OP_LDO)
		return load_bytes[i->e] * n;
	if (i->op == OP_STV || i->op == OP_STO)
		return store_bytes[i->e] * n;
	if (is_load(i->op))
		return load_bytes[i->op - OP_LD_U8_16];
	if (is_store(i->op))
		return store_bytes[i->op - OP_ST_8_16];
	return is_mbarrier(i->op) ? 8 : atomic_bytes(i->op) * n;
}

/* ---- order and scope: PTX ISA 9.0, 8.5 and 8.7 --------------------------------------------------------------------- */

static bool has_mod(const gpul_ptx_inst *in, unsigned mod)
{
	return in && gpul_ptx_has_mod(in, mod);
}

static void order_of(const gpul_ptx_inst *in, const struct insn *i, struct lane_accesses *a)
{
	a->scope = has_mod(in, GPUL_PTX_MOD_CTA)       ? SCOPE_CTA
		   : has_mod(in, GPUL_PTX_MOD_CLUSTER) ? SCOPE_CLUSTER
		   : has_mod(in, GPUL_PTX_MOD_SYS)     ? SCOPE_SYS
						       : SCOPE_GPU;
	a->order = has_mod(in, GPUL_PTX_MOD_ACQ_REL)    ? ORDER_ACQ_REL
		   : has_mod(in, GPUL_PTX_MOD_ACQUIRE)  ? ORDER_ACQUIRE
		   : has_mod(in, GPUL_PTX_MOD_RELEASE)  ? ORDER_RELEASE
		   : has_mod(in, GPUL_PTX_MOD_RELAXED)  ? ORDER_RELAXED
		   : has_mod(in, GPUL_PTX_MOD_VOLATILE) ? ORDER_VOLATILE
							: ORDER_WEAK;
	if (a->order == ORDER_VOLATILE || has_mod(in, GPUL_PTX_MOD_MMIO)) /* PTX specifies .sys for volatile and .mmio */
		a->scope = SCOPE_SYS;
	if (a->order == ORDER_WEAK && gpul_insn_access_kind(i) == ACCESS_ATOMIC &&
	    !is_mbarrier(i->op)) /* in PTX, atom and red are relaxed by default */
		a->order = ORDER_RELAXED;
	/* In PTX, by default, mbarrier.arrive is a release and mbarrier.test_wait an acquire, both with scope .cta */
	if (a->order == ORDER_WEAK && is_mbarrier(i->op)) {
		a->order = i->op == OP_MBAR_ARRIVE ? ORDER_RELEASE : i->op == OP_MBAR_TEST ? ORDER_ACQUIRE : ORDER_WEAK;
		a->scope = has_mod(in, GPUL_PTX_MOD_CLUSTER) ? SCOPE_CLUSTER : SCOPE_CTA;
	}
}

/* ---- address spaces of accesses ------------------------------------------------------------------------------------ */

static bool in_window(uint64_t at, const void *base, uint64_t bytes, uint64_t *offset)
{
	*offset = at - (uintptr_t)base;
	return *offset < bytes;
}

static void place_lane(const struct warp_state *s, const struct insn *i, unsigned l, uint64_t at, struct lane_accesses *a)
{
	const unsigned space = i->flags & SPACE_MASK;
	uint64_t offset;

	a->at[l] = at;
	a->space[l] = (uint8_t)(space == SPACE_GENERIC ? SPACE_GLOBAL : space);
	if (space != SPACE_GENERIC)
		return;
	if (in_window(at, s->shared, s->shared_bytes, &offset))
		a->space[l] = SPACE_SHARED;
	else if (in_window(at, s->local + l * s->local_stride, s->local_bytes, &offset))
		a->space[l] = SPACE_LOCAL;
	else if (in_window(at, s->params, s->param_bytes, &offset))
		a->space[l] = SPACE_PARAM;
	else
		return;
	a->at[l] = offset;
}

/* Describe an access of the lanes in `on`.  address: the instruction, or a struct insn that holds one of its address operands. */
static struct lane_accesses *describe(const struct warp_state *s, const struct insn *address, uint32_t on, enum access_kind kind,
				      uint32_t bytes, struct lane_accesses *a)
{
	a->kind = kind;
	a->order = ORDER_WEAK;
	a->scope = SCOPE_GPU;
	a->async = a->mbarrier = false;
	a->lanes = on;
	EACH_LANE_OF(l, on)
	{
		a->bytes[l] = bytes;
		place_lane(s, address, l, lane_address(s, address, l), a);
	}
	return a;
}

/* ---- asynchronous copies ------------------------------------------------------------------------------------------- */

/* Return how many bytes a lane of cp.async reads; it fills the rest of its destination with zeros. */
static uint32_t bytes_read(const struct warp_state *s, const struct async_copy *c, uint32_t bytes, unsigned l)
{
	uint32_t n = bytes;

	if (c->ignores)
		n = *PRED(&s->w, c->source_bytes) >> l & 1 ? 0 : bytes;
	else if (c->has_source_bytes)
		n = U32(&s->w, c->source_bytes)[l];
	return n < bytes ? n : bytes;
}

static unsigned describe_copy(const struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses out[])
{
	const struct async_copy *c = i->object;
	const bool bulk = i->op != OP_CP_ASYNC, reduces = i->op == OP_CP_REDUCE;
	struct lane_accesses *from = describe(s, &c->from, on, ACCESS_READ, i->n, &out[0]);
	struct lane_accesses *to = describe(s, reduces ? &c->step : &c->to, on, reduces ? ACCESS_ATOMIC : ACCESS_WRITE, i->n, &out[1]);

	from->async = to->async = true;
	if (reduces)
		to->order = ORDER_RELAXED;
	EACH_LANE_OF(l, on)
	{
		from->bytes[l] = bulk ? U32(&s->w, c->source_bytes)[l] : bytes_read(s, c, i->n, l);
		to->bytes[l] = bulk ? from->bytes[l] : i->n;
	}
	if (!bulk || !c->has_barrier)
		return 2;
	describe(s, &c->barrier, on, ACCESS_ATOMIC, 8, &out[2]);
	out[2].async = out[2].mbarrier = true;
	out[2].order = ORDER_RELEASE;
	out[2].scope = SCOPE_CTA;
	return 3;
}

enum access_kind gpul_insn_access_kind(const struct insn *i)
{
	if (is_load(i->op) || i->op == OP_MBAR_TEST || i->op == OP_LDMATRIX || i->op == OP_MULTIMEM_LOAD)
		return ACCESS_READ;
	return is_store(i->op) || i->op == OP_STMATRIX || i->op == OP_MBAR_INIT || i->op == OP_MULTIMEM_STORE ? ACCESS_WRITE
													      : ACCESS_ATOMIC;
}

/* Set the size of those accesses to 0 that are to the shared memory of other blocks in the cluster. */
static unsigned hide_peers(const struct warp_state *s, struct lane_accesses out[], unsigned n)
{
	for (unsigned k = 0; s->block->cluster && k < n; k++)
		EACH_LANE_OF(l, out[k].lanes)
		{
			uint64_t offset;
			const struct lane_accesses *a = &out[k];
			const bool peer = a->space[l] == SPACE_SHARED ? a->at[l] >> CLUSTER_RANK_AT
								      : gpul_cluster_find(s->block, a->at[l], &offset) != NULL;

			out[k].bytes[l] = peer ? 0 : out[k].bytes[l];
		}
	return n;
}

unsigned gpul_insn_accesses(struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses out[MAX_INSN_ACCESSES])
{
	const gpul_ptx_inst *in = gpul_insn_ptx(s->frame->code, i);

	if (!on || !gpul_insn_accesses_memory(i))
		return 0;
	if (gpul_insn_copies(i))
		return hide_peers(s, out, describe_copy(s, i, on, out));
	if (moves_matrix(i->op))
		on &= matrix_address_lanes(i);
	describe(s, gpul_insn_is_multimem(i) ? &((const struct multimem *)i->object)->address : i, on, gpul_insn_access_kind(i),
		 gpul_insn_access_bytes(i), out);
	order_of(in, i, out);
	out->mbarrier = is_mbarrier(i->op);
	out->async = has_mod(in, GPUL_PTX_MOD_ASYNC);
	return hide_peers(s, out, 1);
}

uint8_t *gpul_access_host(const struct warp_state *s, unsigned lane, unsigned space, uint64_t at)
{
	const struct block *other = space == SPACE_SHARED ? cluster_block(s->block, (uint32_t)at) : NULL;

	switch (space) {
	case SPACE_SHARED: /* the shared memory of this block, or of another block in its cluster */
		return (other ? other->shared : s->shared) + (at & ((1u << CLUSTER_RANK_AT) - 1));
	case SPACE_LOCAL:
		return s->local + lane * s->local_stride + at;
	case SPACE_PARAM:
		return (uint8_t *)(uintptr_t)s->params + at;
	default:
		return (uint8_t *)(uintptr_t)at;
	}
}
