/* run_atomic.c — handlers of atom and red: one atomic operation per lane, in the order of lanes, or a single one for all lanes if
 * they access the same address.
 *
 * All warps of a block run on one thread, so shared memory needs no atomic instruction; for global memory and
 * generic addresses the compiler's atomics are used.  Every memory order is executed as acq_rel, which
 * costs nothing on x86-64.  Floating-point additions use compare and exchange. */
#include "softcuda/exec/run/half_internal.h"
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/warp/access_internal.h"

/* Returns true if all active lanes access the same address, as when threads increment a counter.  The loop can include inactive
 * lanes, because resolve() gives them the offset of an active lane. */
static inline bool lanes_meet(enum shape shape, const struct access *x)
{
	int32_t differ = 0;

	if (shape != SHAPE_GATHER)
		return false;
	for (unsigned l = 1; l < LANES; l++)
		differ |= x->offset[l] ^ x->offset[0];
	return !differ;
}

/* For lanes that access the same address p: apply each lane's operation, in lane order, to a local variable; then update memory once. */
#define UPDATE_ONCE(type, p, d, bv, cv, update) \
	do { \
		type before[LANES], seen = __atomic_load_n(p, __ATOMIC_RELAXED), next; \
		do { \
			next = seen; \
			FOR_LANES(l, w, { \
				const type old = next; \
				const type b = (bv)[l]; \
				const type c = (cv)[l]; \
				(void)c; \
				before[l] = old; \
				next = (type)(update); \
			}); \
		} while (!__atomic_compare_exchange_n(p, &seen, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)); \
		FOR_LANES(l, w, (d)[l] = before[l]); \
	} while (0)

/* Define a handler; the expression `update` computes the new value from the old one (`old`), and from the operands b and c of lane l. */
#define ATOMIC(name, type, update) \
	HANDLER(ATOM_##name) \
	{ \
		typedef MEMORY_TYPE(type) cell; \
		const bool shared = (i->flags & SPACE_MASK) == SPACE_SHARED; \
		const unsigned n = i->n ? i->n : 1, bytes = (unsigned)sizeof(cell) * n; \
		const opref *bs = i->n ? OPLIST(w, i->b) : &i->b, *ds = i->n ? OPLIST(w, i->d) : &i->d; \
		struct access x; \
		const enum shape shape = resolve(state_of(w), i, bytes, true, &x); \
		state_of(w)->stirs = true; \
		state_of(w)->block->polls |= !shared; \
		if (shape == SHAPE_FAULT) \
			return x.stop; \
		const bool meet = lanes_meet(shape, &x); \
		shape_to_pointers(shape, bytes, &x); \
		for (unsigned e = 0; e < n; e++) { \
			type *d = opptr(w, ds[e]); \
			const type *bv = opptr(w, bs[e]), *cv = opptr(w, i->c); \
			if (meet) { \
				cell *p = (cell *)(uintptr_t)x.each[0] + e; \
				UPDATE_ONCE(type, p, d, bv, cv, update); \
			} else if (shared) { \
				EACH_ACTIVE(l, w) \
				{ \
					cell *p = (cell *)(uintptr_t)x.each[l] + e; \
					const type old = *p, b = bv[l], c = cv[l]; \
					(void)c; \
					*p = (type)(update); \
					d[l] = old; \
				} \
			} else { \
				EACH_ACTIVE(l, w) \
				{ \
					cell *p = (cell *)(uintptr_t)x.each[l] + e; \
					const type b = bv[l], c = cv[l]; \
					type old = __atomic_load_n(p, __ATOMIC_RELAXED); \
					(void)c; \
					while (!__atomic_compare_exchange_n(p, &old, (type)(update), true, __ATOMIC_ACQ_REL, \
									    __ATOMIC_RELAXED)) \
						; \
					d[l] = old; \
				} \
			} \
		} \
		return i + 1; \
	}

/* Like ATOMIC, for operations for which the CPU has an instruction (builtin); it is used unless all lanes access the same address. */
#define FETCH(name, type, update, builtin) \
	HANDLER(ATOM_##name) \
	{ \
		typedef MEMORY_TYPE(type) cell; \
		const bool shared = (i->flags & SPACE_MASK) == SPACE_SHARED; \
		type *d = opptr(w, i->d); \
		const type *bv = opptr(w, i->b); \
		struct access x; \
		enum shape shape = resolve(state_of(w), i, sizeof(cell), true, &x); \
		state_of(w)->stirs = true; \
		state_of(w)->block->polls |= !shared; \
		if (shape == SHAPE_FAULT) \
			return x.stop; \
		if (lanes_meet(shape, &x)) { \
			cell *p = (cell *)(void *)(x.at + x.offset[0]); \
			UPDATE_ONCE(type, p, d, bv, bv, update); \
			return i + 1; \
		} \
		if (shared && shape == SHAPE_GATHER) { \
			FOR_LANES(l, w, { \
				cell *p = (cell *)(void *)(x.at + x.offset[l]); \
				const type old = *p; \
				const type b = bv[l]; \
				*p = (type)(update); \
				d[l] = old; \
			}); \
			return i + 1; \
		} \
		shape_to_pointers(shape, sizeof(cell), &x); \
		if (shared) { \
			EACH_ACTIVE(l, w) \
			{ \
				cell *p = (cell *)(uintptr_t)x.each[l]; \
				const type old = *p, b = bv[l]; \
				*p = (type)(update); \
				d[l] = old; \
			} \
		} else { \
			EACH_ACTIVE(l, w) \
			d[l] = builtin((cell *)(uintptr_t)x.each[l], bv[l], __ATOMIC_ACQ_REL); \
		} \
		return i + 1; \
	}

FETCH(ADD_32, uint32_t, old + b, __atomic_fetch_add)
FETCH(ADD_64, uint64_t, old + b, __atomic_fetch_add)
FETCH(EXCH_32, uint32_t, b, __atomic_exchange_n)
FETCH(EXCH_64, uint64_t, b, __atomic_exchange_n)
ATOMIC(AND_32, uint32_t, old &b)
ATOMIC(AND_64, uint64_t, old &b)
ATOMIC(OR_32, uint32_t, old | b)
ATOMIC(OR_64, uint64_t, old | b)
ATOMIC(XOR_32, uint32_t, old ^ b)
ATOMIC(XOR_64, uint64_t, old ^ b)
ATOMIC(MIN_U32, uint32_t, b < old ? b : old)
ATOMIC(MIN_S32, int32_t, b < old ? b : old)
ATOMIC(MIN_U64, uint64_t, b < old ? b : old)
ATOMIC(MIN_S64, int64_t, b < old ? b : old)
ATOMIC(MAX_U32, uint32_t, b > old ? b : old)
ATOMIC(MAX_S32, int32_t, b > old ? b : old)
ATOMIC(MAX_U64, uint64_t, b > old ? b : old)
ATOMIC(MAX_S64, int64_t, b > old ? b : old)
ATOMIC(CAS_16, uint16_t, old == b ? c : old)
ATOMIC(CAS_32, uint32_t, old == b ? c : old)
ATOMIC(CAS_64, uint64_t, old == b ? c : old)
ATOMIC(INC_U32, uint32_t, old >= b ? 0 : old + 1)
ATOMIC(DEC_U32, uint32_t, old == 0 || old > b ? b : old - 1)

/* ---- floating point -------------------------------------------------------------------------- */

/* PTX ISA 9.7.13.5: f32 additions in global memory flush subnormals to zero, those in shared memory do not. */
static uint32_t add_f32(uint32_t a, uint32_t b, bool flushes)
{
	const float x = float_of(a), y = float_of(b);

	return bits_of(canonical(flushes ? flush(flush(x) + flush(y)) : x + y));
}

static uint64_t add_f64(uint64_t a, uint64_t b)
{
	const double x = double_of(a) + double_of(b);

	return isnan(x) ? 0xfff8000000000000u : bits_of64(x);
}

ATOMIC(ADD_F32, uint32_t, add_f32(old, b, !shared))
ATOMIC(ADD_F64, uint64_t, add_f64(old, b))

/* Add two f16 or bf16: their sum in double is exact, or not near a tie, and rounded to odd, so that the final rounding is correct. */
static float sum_of_halves(float a, float b)
{
	return odd_float((double)a + (double)b);
}

typedef float binary(float a, float b);

static inline uint16_t half_op(uint16_t a, uint16_t b, binary *f)
{
	return f16_from_float(f(f16_to_float(a), f16_to_float(b)));
}

static inline uint16_t brain_op(uint16_t a, uint16_t b, binary *f)
{
	return bf16_from_float(f(bf16_to_float(a), bf16_to_float(b)));
}

#define PAIR(op, f) ((uint32_t)op((uint16_t)old, (uint16_t)b, f) | (uint32_t)op((uint16_t)(old >> 16), (uint16_t)(b >> 16), f) << 16)

ATOMIC(ADD_F16, uint16_t, half_op(old, b, sum_of_halves))
ATOMIC(MIN_F16, uint16_t, half_op(old, b, min_f32))
ATOMIC(MAX_F16, uint16_t, half_op(old, b, max_f32))
ATOMIC(ADD_BF16, uint16_t, brain_op(old, b, sum_of_halves))
ATOMIC(MIN_BF16, uint16_t, brain_op(old, b, min_f32))
ATOMIC(MAX_BF16, uint16_t, brain_op(old, b, max_f32))
ATOMIC(ADD_F16X2, uint32_t, PAIR(half_op, sum_of_halves))
ATOMIC(MIN_F16X2, uint32_t, PAIR(half_op, min_f32))
ATOMIC(MAX_F16X2, uint32_t, PAIR(half_op, max_f32))
ATOMIC(ADD_BF16X2, uint32_t, PAIR(brain_op, sum_of_halves))
ATOMIC(MIN_BF16X2, uint32_t, PAIR(brain_op, min_f32))
ATOMIC(MAX_BF16X2, uint32_t, PAIR(brain_op, max_f32))

/* ---- 128 bits: a register has the 64-bit low words of 32 lanes, then their high words ------------------------------------ */

__extension__ typedef unsigned __int128 uint128;
typedef uint128 wide __attribute__((may_alias));

static inline uint128 wide_at(const struct warp *w, opref r, unsigned l)
{
	return (uint128)U64(w, r)[LANES + l] << 64 | U64(w, r)[l];
}

#if defined(__x86_64__) && defined(__GNUC__)
/* Compare and exchange 16 bytes by cmpxchg16b, which nearly all x86-64 CPUs have.  Compiler builtins may call a library instead. */
static bool swap_wide(wide *p, uint128 *old, uint128 new)
{
	uint64_t lo = (uint64_t)*old, hi = (uint64_t)(*old >> 64);
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*p), "+a"(lo), "+d"(hi)
			 : "b"((uint64_t)new), "c"((uint64_t)(new >> 64))
			 : "memory");
	*old = (uint128)hi << 64 | lo;
	return done;
}
#else
static bool swap_wide(wide *p, uint128 *old, uint128 new)
{
	return __atomic_compare_exchange_n(p, old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
#endif

static inline const struct insn *atomic_wide(struct warp *w, const struct insn *i, bool compare)
{
	struct access x;

	state_of(w)->stirs = state_of(w)->block->polls = true;
	if (resolve_each(state_of(w), i, 16, true, &x))
		return x.stop;
	EACH_ACTIVE(l, w)
	{
		wide *p = (wide *)(uintptr_t)x.each[l];
		uint128 b = wide_at(w, i->b, l), new = compare ? wide_at(w, i->c, l) : b, old = b;

		/* A failed exchange sets old to the value in memory, so no separate load is needed. */
		while (!swap_wide(p, &old, compare && old != b ? old : new))
			;
		U64(w, i->d)[l] = (uint64_t)old;
		U64(w, i->d)[LANES + l] = (uint64_t)(old >> 64);
	}
	return i + 1;
}

HANDLER(ATOM_CAS_128)
{
	return atomic_wide(w, i, true);
}
HANDLER(ATOM_EXCH_128)
{
	return atomic_wide(w, i, false);
}
