/* check.c — checks each access of a kernel against the shadow memory and marks the bytes that it writes.
 *
 *     handler   global memory, all lanes active, in an allocation that is fully written   ──> one comparison of all lanes
 *               shared memory that is fully written                                        ──> nothing to check
 *               else check_access(): one shadow query for adjacent lanes; other patterns and address spaces lane by lane
 *
 * The interpreter itself checks that an address is accessible; if not, a fault ends the launch. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/tools/memcheck/parts_internal.h"

/* How an instruction accesses memory. */
struct effect {
	unsigned bytes, element; /* bytes that a lane accesses; bytes of each register */
	bool reads, writes;
};

/* The memory that an access refers to. h is NULL if all bytes count as written, or if the address is not accessible. */
struct place {
	struct shadow *h;
	uint64_t at; /* offset in the shadow */
	unsigned space;
	uint64_t address;    /* the accessed address, as in lane_accesses.at */
	bool plain;          /* only this thread can write this memory */
	struct record *heap; /* the record of the device malloc heap that contains the memory; else NULL */
	bool is_constant;
};

static _Atomic(op_fn *) own_handler[OP_N_CORE]; /* for each operation: memcheck's handler for instructions without a guard */

static struct effect effect_of(const struct insn *i)
{
	static _Atomic uint8_t bytes_of[OP_N_CORE]; /* cache of access sizes by operation; threads that race store the same value */
	const bool is_load = i->op >= OP_LD_U8_16 && i->op <= OP_LDO, is_store = i->op >= OP_ST_8_16 && i->op <= OP_STO;
	const bool varies = i->op == OP_LDV || i->op == OP_LDO || i->op == OP_STV || i->op == OP_STO || i->n > 1;
	struct effect e = { .bytes = varies ? 0 : atomic_load_explicit(&bytes_of[i->op], memory_order_relaxed) };

	if (!e.bytes)
		e.bytes = gpul_insn_access_bytes(i);
	if (!varies)
		atomic_store_explicit(&bytes_of[i->op], (uint8_t)e.bytes, memory_order_relaxed);
	e.element = i->n && varies ? e.bytes / i->n : e.bytes;
	e.reads = !is_store && i->op != OP_MBAR_INIT;
	e.writes = !is_load && i->op != OP_MBAR_TEST;
	return e;
}

/* ---- the memory that an access refers to ----------------------------------------------------------------------------- */

static struct slot *slot_of(struct block_shadow *x, const struct insn *i)
{
	const uint64_t now = atomic_load_explicit(&gpul_records_generation, memory_order_acquire);

	if (x->seen != now) {
		memset(x->slot, 0, sizeof x->slot);
		x->seen = now;
	}
	return &x->slot[i->src % CACHE_SLOTS];
}

static bool slot_covers(const struct slot *k, const struct insn *i, uint64_t at)
{
	return k->insn == i && at - k->base <= k->most;
}

/* Store the allocation that contains the address in the cache slot.  Returns false if no recorded allocation contains it. */
static bool fill_slot(struct slot *k, const struct insn *i, uint64_t at, unsigned bytes)
{
	struct record *r = gpul_records_find(at);

	if (!r || r->bytes < bytes || at - r->base > r->bytes - bytes)
		return false;
	*k = (struct slot){ i, r->base, r->bytes - bytes, r, r->shadow.complete && !(r->is_constant && effect_of(i).writes) };
	return true;
}

static struct place global_place(struct block_shadow *x, const struct insn *i, uint64_t at, unsigned bytes)
{
	struct slot *k = slot_of(x, i);
	struct place p = { .space = SPACE_GLOBAL, .address = at };

	if (!slot_covers(k, i, at) && !fill_slot(k, i, at, bytes))
		return p;
	p.is_constant = k->record->is_constant;
	if (k->record->shadow.bits && !k->complete)
		p.h = &k->record->shadow;
	if (k->record->is_heap)
		p.heap = k->record;
	p.at = at - k->base;
	return p;
}

static struct place place_of(struct warp_state *s, struct block_shadow *x, const struct insn *i, unsigned lane, uint64_t at, unsigned bytes)
{
	unsigned space = i->flags & SPACE_MASK;
	uint64_t offset = at;

	if (space == SPACE_GENERIC) {
		if (at - (uintptr_t)s->shared < s->shared_bytes) {
			space = SPACE_SHARED;
			offset = at - (uintptr_t)s->shared;
		} else if (at - (uintptr_t)s->local - lane * s->local_stride < s->local_bytes) {
			space = SPACE_LOCAL;
			offset = at - (uintptr_t)s->local - lane * s->local_stride;
		}
	}
	if (space == SPACE_GLOBAL || space == SPACE_GENERIC)
		return global_place(x, i, at, bytes);
	if (space == SPACE_SHARED && offset < x->shared.bytes && bytes <= x->shared.bytes - offset && !x->shared.complete)
		return (struct place){ &x->shared, offset, space, offset, true, NULL, false };
	if (space == SPACE_LOCAL && x->local_bytes && offset < s->local_bytes && bytes <= s->local_bytes - offset)
		return (struct place){ &x->local, (s->index * LANES + lane) * x->local_bytes + offset, space, offset, true, NULL, false };
	return (struct place){ .space = space, .address = offset };
}

/* ---- checks -------------------------------------------------------------------------------------------------------- */

/* Returns true if a load reads unwritten memory, that is, if the first byte of the access, or of a vector element with which the
 * program computes, is unwritten. Other bytes may be padding of a structure that the program copies. */
static bool reads_unwritten(const struct warp_state *s, const struct insn *i, const struct shadow *h, uint64_t at, const struct effect *e)
{
	if (gpul_memcheck.strict)
		return !gpul_shadow_has(h, at, e->bytes);
	if (!shadow_has_byte(h, at))
		return true;
	for (unsigned k = 1; k * e->element < e->bytes; k++)
		if (!shadow_has_byte(h, at + k * e->element) && gpul_uses_elements(s->frame->code, i) >> k & 1)
			return true;
	return false;
}

/* Check the access of one lane; false: the launch must end. */
static bool check_lane(struct warp_state *s, const struct insn *i, unsigned lane, const struct effect *e, const struct place *p)
{
	if (p->heap && !gpul_shadow_has(&p->heap->alive, p->at, e->bytes)) {
		gpul_find_heap_fault(s, i, lane, p->address, e->bytes, e->writes);
		return false;
	}
	if (p->is_constant && e->writes)
		gpul_find_constant_store(s, i, lane, p->address, e->bytes);
	if (!p->h)
		return true;
	if (e->reads && reads_unwritten(s, i, p->h, p->at, e))
		gpul_find_unwritten(s, i, lane, p->space, p->address, e->bytes);
	if (e->writes)
		gpul_shadow_set(p->h, p->at, e->bytes, p->plain);
	return true;
}

static bool check_lanes(struct warp_state *s, const struct insn *i, uint32_t on, struct block_shadow *x, const struct effect *e)
{
	struct shadow *last = NULL;

	EACH_LANE_OF(l, on)
	{
		const struct place p = place_of(s, x, i, l, lane_address(s, i, l), e->bytes);

		if (!check_lane(s, i, l, e, &p))
			return false;
		last = p.space != SPACE_LOCAL && !p.heap ? p.h : NULL;
	}
	if (last)
		gpul_shadow_advance(last);
	return true;
}

/* Returns true if each lane l accesses the bytes [at + l * bytes, at + (l + 1) * bytes), so that the lanes access one contiguous range. */
static bool is_row(const struct warp_state *s, const struct insn *i, unsigned bytes, uint64_t *at)
{
	uint64_t room[LANES], offset;
	const uint64_t *a = lane_addresses(s, i, room, &offset);

	*at = a[0] + offset;
	return addresses_are_a_row(a, bytes);
}

/* Check an access to one contiguous range with one shadow query.  Returns false if it is not contiguous, not in one allocation, or
 * unwritten. */
static bool check_row(struct warp_state *s, const struct insn *i, struct block_shadow *x, const struct effect *e)
{
	const unsigned all = e->bytes * LANES;
	struct place first, last;
	uint64_t at;

	if ((i->flags & SPACE_MASK) == SPACE_LOCAL || !is_row(s, i, e->bytes, &at))
		return false;
	first = place_of(s, x, i, 0, at, e->bytes);
	last = place_of(s, x, i, LANES - 1, at + all - e->bytes, e->bytes);
	if (!first.h || first.h != last.h || first.heap || first.space == SPACE_LOCAL || last.at - first.at != all - e->bytes)
		return false;
	if (e->reads && !gpul_shadow_has(first.h, first.at, all))
		return false;
	if (e->writes)
		gpul_shadow_set(first.h, first.at, all, first.plain);
	gpul_shadow_advance(first.h);
	return true;
}

/* Check (load) or mark (store) the bytes of all lanes, at their offsets in one shadow. Returns false if a byte is unwritten. */
static bool check_offsets(struct shadow *h, const uint64_t at[LANES], const struct effect *e, bool plain)
{
	const uint64_t whole = e->bytes < 64 ? (UINT64_C(1) << e->bytes) - 1 : UINT64_MAX;
	uint64_t firsts = 0, missing = 0;

	for (unsigned k = 0; k < e->bytes; k += e->element)
		firsts |= UINT64_C(1) << k;
	for (unsigned l = 0; l < LANES && e->reads; l++)
		missing |= firsts & ~(__atomic_load_n(&h->bits[at[l] / 64], __ATOMIC_RELAXED) >> (at[l] % 64));
	if (missing)
		return false;
	for (unsigned l = 0; l < LANES && e->writes; l++) {
		const uint64_t bits = whole << (at[l] % 64), old = __atomic_load_n(&h->bits[at[l] / 64], __ATOMIC_RELAXED);

		if (!(bits & ~old))
			continue;
		if (plain)
			__atomic_store_n(&h->bits[at[l] / 64], old | bits, __ATOMIC_RELAXED);
		else
			__atomic_fetch_or(&h->bits[at[l] / 64], bits, __ATOMIC_RELAXED);
	}
	return true;
}

/* Check lanes whose addresses are all in one allocation or all in shared memory; false: not so, unwritten or misaligned. */
static bool check_gather(struct warp_state *s, const struct insn *i, struct block_shadow *x, const struct effect *e)
{
	const bool is_shared = (i->flags & SPACE_MASK) == SPACE_SHARED;
	const struct slot *k = is_shared ? NULL : slot_of(x, i);
	struct shadow *h = is_shared ? &x->shared : k->insn == i ? &k->record->shadow : NULL;
	const uint64_t base = is_shared ? 0 : k->base;
	uint64_t room[LANES], at[LANES], offset, bad = 0, most;
	const uint64_t *a;

	if ((i->flags & SPACE_MASK) == SPACE_LOCAL || !h || !h->bits || gpul_memcheck.strict || (k && k->record->is_heap) ||
	    h->bytes < e->bytes)
		return false;
	most = h->bytes - e->bytes;
	a = lane_addresses(s, i, room, &offset);
	for (unsigned l = 0; l < LANES; l++) {
		at[l] = a[l] + offset - base;
		bad |= (uint64_t)(at[l] > most) | (at[l] & (e->bytes - 1));
	}
	if (bad || (!h->complete && !check_offsets(h, at, e, is_shared)))
		return false;
	gpul_shadow_advance(h);
	return true;
}

/* Check the access of all lanes; false: the launch must end. */
static bool check_access(struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct block_shadow *x = shadow_of_block(s->block);
	const struct effect e = effect_of(i);

	return !x || !on || (on == ALL_LANES && check_row(s, i, x, &e)) || (on == s->w.mask && check_gather(s, i, x, &e)) ||
	       check_lanes(s, i, on, x, &e);
}

/* ---- asynchronous copies: they also copy the shadow bits, so that copies of unwritten bytes count as unwritten ------ */

static struct place place_of_access(struct warp_state *s, struct block_shadow *x, const struct insn *i, unsigned lane,
				    const struct lane_accesses *a)
{
	struct insn as = *i;

	as.flags = (uint8_t)a->space[lane];
	as.src = i->src + (a->kind == ACCESS_READ ? 0 : 1); /* the source and the destination of a copy use different slots of the cache */
	return place_of(s, x, &as, lane, a->at[lane], a->bytes[lane]);
}

static void copy_shadow(struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct block_shadow *x = shadow_of_block(s->block);
	struct lane_accesses a[MAX_INSN_ACCESSES];

	if (!x || gpul_insn_accesses(s, i, on, a) < 2)
		return;
	EACH_LANE_OF(l, on)
	{
		const uint32_t n = a[0].bytes[l] < a[1].bytes[l] ? a[0].bytes[l] : a[1].bytes[l];
		struct place to = place_of_access(s, x, i, l, &a[1]), from = n ? place_of_access(s, x, i, l, &a[0]) : to;

		if (!to.h)
			continue;
		if (from.h && a[1].kind == ACCESS_WRITE)
			gpul_shadow_copy(to.h, to.at, from.h, from.at, n, to.plain);
		else
			gpul_shadow_set(to.h, to.at, n, to.plain);
		gpul_shadow_set(to.h, to.at + n, a[1].bytes[l] - n, to.plain);
	}
}

/* ---- tensor copies, wgmma ------------------------------------------------------------------------------------------------- */

struct piece_check {
	struct warp_state *s;
	const struct insn *i;
	struct place from; /* the memory that was read last, which is the source of a copy */
};

/* Check one piece of memory. wgmma computes with its bytes, so they must be written; tensor copies only copy shadow bits. */
static void check_piece(void *context, const struct memory_piece *p)
{
	struct piece_check *c = context;
	struct block_shadow *x = shadow_of_block(p->block);
	const bool computes = !p->copies && p->kind == ACCESS_READ && (c->i->op == OP_WGMMA_FLOAT || c->i->op == OP_WGMMA_INT);
	struct insn as = { .flags = p->space, .src = c->i->src + (p->kind == ACCESS_READ ? 0 : 1) };
	struct place at;

	if (!x || p->space == SPACE_SURFACE)
		return;
	at = place_of(c->s, x, &as, p->lane, p->at, p->bytes);
	if (p->kind == ACCESS_READ)
		c->from = at;
	else if (at.is_constant)
		gpul_find_constant_store(c->s, c->i, p->lane, at.address, p->bytes);
	if (!at.h)
		return;
	if (computes && !gpul_shadow_has(at.h, at.at, p->bytes))
		gpul_find_unwritten(c->s, c->i, p->lane, at.space, at.address, p->bytes);
	if (p->kind == ACCESS_READ)
		return;
	if (p->copies && p->kind == ACCESS_WRITE && c->from.h)
		gpul_shadow_copy(at.h, at.at, c->from.h, c->from.at, p->bytes, at.plain);
	else
		gpul_shadow_set(at.h, at.at, p->bytes, at.plain);
	gpul_shadow_advance(at.h);
}

/* ---- hooks --------------------------------------------------------------------------------------------------------------- */

static bool is_copy(const struct insn *i)
{
	return i->op == OP_CP_ASYNC || i->op == OP_CP_BULK || i->op == OP_CP_REDUCE;
}

/* Returns true if the memory may be unwritten.  Constants and kernel parameters never are; other parameters are local memory. */
static bool may_be_unwritten(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);

	return in && !gpul_ptx_has_mod(in, GPUL_PTX_MOD_CONST) && !gpul_ptx_has_mod(in, GPUL_PTX_MOD_PARAM) &&
	       !gpul_ptx_has_mod(in, GPUL_PTX_MOD_PARAM__FUNC) && (i->flags & SPACE_MASK) != SPACE_PARAM;
}

bool gpul_check_wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	const struct call_site *site = i->object;

	(void)o;
	if (i->op == OP_CALL_BUILTIN)
		return site->builtin == BUILTIN_MALLOC || site->builtin == BUILTIN_FREE || gpul_builtin_written_bytes(site->builtin);
	if (i->op == OP_CALL || i->op == OP_ALLOCA)
		return true;
	if (gpul_insn_has_pieces(i))
		return true;
	return gpul_insn_accesses_memory(i) && !gpul_insn_is_multimem(i) && (is_copy(i) || may_be_unwritten(code, i));
}

enum observed gpul_check_before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	(void)o;
	if (i->op == OP_CALL_BUILTIN)
		return gpul_heap_before_call(s, i, on);
	if (i->op == OP_CALL || i->op == OP_ALLOCA || !on)
		return OBSERVED_RUN;
	if (gpul_insn_has_pieces(i))
		gpul_insn_pieces(s, i, on, check_piece, &(struct piece_check){ .s = s, .i = i });
	else if (is_copy(i))
		copy_shadow(s, i, on);
	else if (!check_access(s, i, on))
		return OBSERVED_FAULT;
	return OBSERVED_RUN;
}

/* Mark as written the bytes that a call of the device runtime has stored, such as a stream handle. */
static void see_written(const struct warp_state *s, const struct insn *i, uint32_t on)
{
	const struct call_site *site = i->object;
	const unsigned bytes = gpul_builtin_written_bytes(site->builtin);
	struct block_shadow *x = shadow_of_block(s->block);

	EACH_LANE_OF(l, bytes ? on : 0)
	{
		const uint64_t at = gpul_builtin_argument(s, site, 0, l), in_local = at - (uintptr_t)s->local - l * s->local_stride,
			       in_shared = at - (uintptr_t)s->shared;

		if (in_shared < x->shared.bytes)
			gpul_shadow_set(&x->shared, in_shared, bytes, false);
		else if (x->local_bytes && in_local < s->local_bytes)
			gpul_shadow_set(&x->local, (s->index * LANES + l) * x->local_bytes + in_local, bytes, false);
		else
			gpul_records_written(at, 0, bytes);
	}
}

void gpul_check_after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	(void)o;
	if (!on || waits || s->event == EVENT_FAULT)
		return;
	if (i->op == OP_CALL_BUILTIN) {
		gpul_heap_after_call(s, i, on);
		see_written(s, i, on);
	} else if (i->op == OP_CALL && s->frame->site == i->object) {
		gpul_local_enter(s, s->frame, on);
	} else if (i->op == OP_ALLOCA) {
		gpul_local_alloca(s, i, on);
	}
}

/* ---- handlers -------------------------------------------------------------------------------------------------------------- */

typedef uint64_t lanes4 __attribute__((vector_size(32), may_alias));

/* Returns true if all 32 addresses are from base to base + most: an address outside, at either end, sets the sign bit of `bad`. */
static inline __attribute__((always_inline)) bool all_within(const uint64_t *a, uint64_t base, uint64_t most)
{
	const lanes4 *v = (const void *)a;
	lanes4 bad = { 0 };

	for (unsigned k = 0; k < LANES / 4; k++) {
		const lanes4 d = v[k] - base;

		bad |= d | (most - d);
	}
	return !((bad[0] | bad[1] | bad[2] | bad[3]) >> 63);
}

static const struct insn *check_and_run(struct warp *w, const struct insn *i, op_fn *run)
{
	return check_access(state_of(w), i, w->mask) ? run(w, i) : state_of(w)->limit;
}

/* Handle an access without a guard predicate to global memory with 64-bit addresses. */
static inline __attribute__((always_inline)) const struct insn *run_global(struct warp *w, const struct insn *i)
{
	const struct block_shadow *x = shadow_of_block(state_of(w)->block);
	op_fn *const run = atomic_load_explicit(&own_handler[i->op], memory_order_relaxed);

	if (w->mask == ALL_LANES && x) {
		const struct slot *k = &x->slot[i->src % CACHE_SLOTS];

		if (k->insn == i && k->complete && x->seen == atomic_load_explicit(&gpul_records_generation, memory_order_relaxed) &&
		    all_within(U64(w, i->a), k->base - (uint64_t)i->imm, k->most))
			return run(w, i);
	}
	return check_and_run(w, i, run);
}

static const struct insn *global_base(struct warp *w, const struct insn *i)
{
	return run_global(w, i);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static const struct insn *global_avx2(struct warp *w, const struct insn *i)
{
	return run_global(w, i);
}
#endif

/* Handle an access without a guard predicate to shared memory. */
static const struct insn *run_shared(struct warp *w, const struct insn *i)
{
	const struct block_shadow *x = shadow_of_block(state_of(w)->block);
	op_fn *const run = atomic_load_explicit(&own_handler[i->op], memory_order_relaxed);

	return !x || x->shared.complete ? run(w, i) : check_and_run(w, i, run);
}

observed_fn *gpul_check_handler(struct observer *o, const struct func_code *code, const struct insn *i)
{
	const unsigned space = i->flags & SPACE_MASK;

	(void)o, (void)code;
	if (i->inner || is_copy(i) || !gpul_insn_accesses_memory(i) || gpul_insn_is_multimem(i))
		return NULL;
	atomic_store_explicit(&own_handler[i->op], i->run, memory_order_relaxed);
	if (space == SPACE_SHARED)
		return run_shared;
	if ((space != SPACE_GLOBAL && space != SPACE_GENERIC) || i->flags & (FLAG_ADDRESS_32 | FLAG_FRAME))
		return NULL;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return global_avx2;
#endif
	return global_base;
}
