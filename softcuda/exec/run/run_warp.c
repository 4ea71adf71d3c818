/* run_warp.c — handlers in which lanes exchange data: shuffles, votes, matches, reductions over a warp.
 *
 * A `.sync` instruction has a member mask: the lanes that must execute it together.  If one of them has not arrived, the lanes that have
 * arrived stop (EVENT_SYNC), and execute the instruction again when the missing lanes have arrived. */
#include "softcuda/exec/run/lanes_internal.h"
#include "softcuda/exec/run/run_internal.h"

static uint32_t named_lanes(const struct warp *w, opref member)
{
	const uint32_t *m = U32(w, member);
	uint32_t all = 0;

	if ((member & 3) == BANK_CONSTS) /* a constant is the same in all lanes, which is the usual case */
		return m[0];
	if (w->mask == ALL_LANES)
		for (unsigned l = 0; l < LANES; l++)
			all |= m[l];
	else
		for (unsigned l = 0; l < LANES; l++)
			all |= w->mask & (1u << l) ? m[l] : 0;
	return all;
}

static bool members_have_arrived(struct warp_state *s, opref member)
{
	return lanes_have_arrived(s, named_lanes(&s->w, member));
}

HANDLER(BAR_WARP)
{
	if (!members_have_arrived(state_of(w), i->a))
		return raise_event(state_of(w), EVENT_SYNC, i);
	THREAD_FENCE(memory_order_acq_rel);
	return i + 1;
}

/* ---- shuffles, PTX ISA 9.7.9.6: d|p = a of another lane; b: lane or distance; c: clamp (bits 0-4), segment mask (8-12); e: member mask */
enum direction { UP, DOWN, BFLY, IDX };

static inline uint32_t source_lane(enum direction how, uint32_t lane, uint32_t b, uint32_t c, int32_t *in_range)
{
	const uint32_t clamp = c & 31, segment = c >> 8 & 31, move = b & 31, min = lane & segment;
	const int32_t max = (int32_t)(min | (clamp & ~segment));
	const int32_t j = (int32_t)(how == UP     ? lane - move
				    : how == DOWN ? lane + move
				    : how == BFLY ? lane ^ move
						  : min | (move & ~segment));

	*in_range = (how == UP ? j >= max : j <= max) ? -1 : 0;
	return *in_range ? (uint32_t)j & 31 : lane;
}

/* to[l] = a[from[l]] for all lanes, with from[l] < LANES. */
static inline void permute_lanes(uint32_t to[LANES], const uint32_t *a, const uint32_t from[LANES])
{
#if defined(__AVX512F__)
	const __m512i low = _mm512_load_si512(a), high = _mm512_load_si512(a + 16);

	for (unsigned l = 0; l < LANES; l += 16)
		_mm512_store_si512(to + l, _mm512_permutex2var_epi32(low, _mm512_load_si512(from + l), high));
#else
	for (unsigned l = 0; l < LANES; l++)
		to[l] = a[from[l]];
#endif
}

static inline const struct insn *shuffle(struct warp *w, const struct insn *i, enum direction how)
{
	const uint32_t *a = U32(w, i->a), *b = U32(w, i->b), *c = U32(w, i->c);
	_Alignas(64) uint32_t value[LANES], from[LANES];
	_Alignas(64) int32_t in_range[LANES];

	if (i->n && !members_have_arrived(state_of(w), i->e))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned l = 0; l < LANES; l++)
		from[l] = source_lane(how, l, b[l], c[l], &in_range[l]);
	permute_lanes(value, a, from);
	SET_LANES(w, U32(w, i->d), value[l]);
	if (i->flags)
		set_predicate(w, i->d2, signs32(in_range));
	return i + 1;
}

HANDLER(SHFL_UP)
{
	return shuffle(w, i, UP);
}
HANDLER(SHFL_DOWN)
{
	return shuffle(w, i, DOWN);
}
HANDLER(SHFL_BFLY)
{
	return shuffle(w, i, BFLY);
}
HANDLER(SHFL_IDX)
{
	return shuffle(w, i, IDX);
}

/* ---- votes: insn->a is the predicate, insn->b the member mask (if insn->n is set) ------------------ */

/* Return the lanes that vote together with lane l: the active lanes in the member mask of lane l. */
static inline uint32_t voters(const struct warp *w, const struct insn *i, unsigned l)
{
	return i->n ? U32(w, i->b)[l] & w->mask : w->mask;
}

enum vote { ALL, ANY, UNI };

static inline const struct insn *vote(struct warp *w, const struct insn *i, enum vote how)
{
	uint32_t yes, result = 0;

	if (i->n && !members_have_arrived(state_of(w), i->b))
		return raise_event(state_of(w), EVENT_SYNC, i);
	yes = *PRED(w, i->a);
	EACH_ACTIVE(l, w)
	{
		uint32_t who = voters(w, i, l), on = yes & who;
		bool r = how == ALL ? on == who : how == ANY ? on != 0 : on == 0 || on == who;

		result |= (uint32_t)r << l;
	}
	set_predicate(w, i->d, result);
	return i + 1;
}

HANDLER(VOTE_ALL)
{
	return vote(w, i, ALL);
}
HANDLER(VOTE_ANY)
{
	return vote(w, i, ANY);
}
HANDLER(VOTE_UNI)
{
	return vote(w, i, UNI);
}

HANDLER(VOTE_BALLOT)
{
	uint32_t yes, here = w->mask;

	if (i->n && !members_have_arrived(state_of(w), i->b))
		return raise_event(state_of(w), EVENT_SYNC, i);
	yes = *PRED(w, i->a) & here;
	if (i->n) {
		const uint32_t *member = U32(w, i->b);
		SET_LANES(w, U32(w, i->d), yes & member[l]);
	} else {
		SET_LANES(w, U32(w, i->d), yes);
	}
	return i + 1;
}

HANDLER(ACTIVEMASK)
{
	SET_LANES(w, U32(w, i->d), w->mask);
	return i + 1;
}

/* elect.sync d|p, a: d becomes the lowest lane of the member mask a, and p becomes true in that lane only. */
HANDLER(ELECT)
{
	const uint32_t *member = U32(w, i->a);
	uint32_t leader[LANES], leads = 0;

	if (!members_have_arrived(state_of(w), i->a))
		return raise_event(state_of(w), EVENT_SYNC, i);
	EACH_ACTIVE(l, w)
	{
		uint32_t who = member[l] & w->mask;

		leader[l] = first_lane(who ? who : w->mask);
		leads |= (uint32_t)(leader[l] == l) << l;
	}
	EACH_ACTIVE(l, w)
	U32(w, i->d)[l] = leader[l];
	set_predicate(w, i->d2, leads);
	return i + 1;
}

/* ---- match: insn->a is the value, insn->b the member mask -------------------------------------- */

static inline uint64_t value_at(const struct warp *w, opref a, unsigned bytes, unsigned l)
{
	return bytes == 8 ? U64(w, a)[l] : U32(w, a)[l];
}

static inline const struct insn *match_any(struct warp *w, const struct insn *i, unsigned bytes)
{
	uint32_t equal[LANES];

	if (!members_have_arrived(state_of(w), i->b))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned l = 0; l < LANES; l++) {
		uint64_t mine = value_at(w, i->a, bytes, l);

		equal[l] = 0;
		for (unsigned k = 0; k < LANES; k++)
			equal[l] |= (uint32_t)(value_at(w, i->a, bytes, k) == mine) << k;
		equal[l] &= w->mask & U32(w, i->b)[l];
	}
	SET_LANES(w, U32(w, i->d), equal[l]);
	return i + 1;
}

HANDLER(MATCH_ANY_32)
{
	return match_any(w, i, 4);
}
HANDLER(MATCH_ANY_64)
{
	return match_any(w, i, 8);
}

static inline const struct insn *match_all(struct warp *w, const struct insn *i, unsigned bytes)
{
	uint32_t result[LANES], all = 0;

	if (!members_have_arrived(state_of(w), i->b))
		return raise_event(state_of(w), EVENT_SYNC, i);
	EACH_ACTIVE(l, w)
	{
		uint32_t who = U32(w, i->b)[l] & w->mask;
		bool same = true;

		for (uint32_t others = who; others; others &= others - 1)
			same = same && value_at(w, i->a, bytes, first_lane(others)) == value_at(w, i->a, bytes, l);
		result[l] = same ? who : 0;
		all |= (uint32_t)same << l;
	}
	EACH_ACTIVE(l, w)
	U32(w, i->d)[l] = result[l];
	set_predicate(w, i->d2, all);
	return i + 1;
}

HANDLER(MATCH_ALL_32)
{
	return match_all(w, i, 4);
}
HANDLER(MATCH_ALL_64)
{
	return match_all(w, i, 8);
}

/* ---- redux: insn->a is the value, insn->b the member mask --------------------------------------- */

#define REDUX(name, type, expression) \
	HANDLER(REDUX_##name) \
	{ \
		uint32_t result[LANES]; \
		if (!members_have_arrived(state_of(w), i->b)) \
			return raise_event(state_of(w), EVENT_SYNC, i); \
		EACH_ACTIVE(l, w) \
		{ \
			uint32_t who = (U32(w, i->b)[l] & w->mask) | (1u << l); \
			type r = (type)U32(w, i->a)[first_lane(who)]; \
			for (uint32_t more = who & (who - 1); more; more &= more - 1) { \
				type x = (type)U32(w, i->a)[first_lane(more)]; \
				r = (expression); \
			} \
			result[l] = (uint32_t)r; \
		} \
		EACH_ACTIVE(l, w) \
		U32(w, i->d)[l] = result[l]; \
		return i + 1; \
	}

REDUX(ADD, uint32_t, r + x)
REDUX(MIN_U32, uint32_t, x < r ? x : r)
REDUX(MAX_U32, uint32_t, x > r ? x : r)
REDUX(MIN_S32, int32_t, x < r ? x : r)
REDUX(MAX_S32, int32_t, x > r ? x : r)
REDUX(AND, uint32_t, r &x)
REDUX(OR, uint32_t, r | x)
REDUX(XOR, uint32_t, r ^ x)

/* Reduce two values.  PTX ISA 9.7.14.11: -0.0 is less than +0.0; the result is NaN only if all operands are, or, with .NaN, if one is. */
static uint32_t reduce_f32(uint32_t r, uint32_t x, unsigned how)
{
	const uint32_t sign = 0x80000000, canonical = 0x7fffffff;
	const bool nan_r = (r & ~sign) > 0x7f800000, nan_x = (x & ~sign) > 0x7f800000;
	const uint32_t key_r = r & sign ? ~r : r | sign, key_x = x & sign ? ~x : x | sign;

	if (nan_r || nan_x)
		return (nan_r && nan_x) || how & REDUX_NAN ? canonical : nan_r ? x : r;
	return (key_x > key_r) == !!(how & REDUX_MAX) ? x : r;
}

HANDLER(REDUX_F32)
{
	const uint32_t keep = i->e & REDUX_ABS ? 0x7fffffff : UINT32_MAX;
	uint32_t result[LANES];

	if (!members_have_arrived(state_of(w), i->b))
		return raise_event(state_of(w), EVENT_SYNC, i);
	EACH_ACTIVE(l, w)
	{
		const uint32_t who = (U32(w, i->b)[l] & w->mask) | (1u << l);
		uint32_t r = U32(w, i->a)[first_lane(who)] & keep;

		r = reduce_f32(r, r, i->e);
		for (uint32_t more = who & (who - 1); more; more &= more - 1)
			r = reduce_f32(r, U32(w, i->a)[first_lane(more)] & keep, i->e);
		result[l] = r;
	}
	EACH_ACTIVE(l, w)
	U32(w, i->d)[l] = result[l];
	return i + 1;
}
