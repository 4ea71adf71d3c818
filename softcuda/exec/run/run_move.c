/* run_move.c — handlers of mov, packing and unpacking, selp, slct, logic on predicates: PTX ISA 9.7.9.2, 9.7.7, 9.7.8. */
#include "softcuda/exec/run/lanes_internal.h"

UNARY(MOV_16, uint16_t, uint16_t, a[l])
UNARY(MOV_32, uint32_t, uint32_t, a[l])
UNARY(MOV_64, uint64_t, uint64_t, a[l])

/* Copy a 128-bit register: the low words of all lanes, then the high words. */
OP(MOV_128)
{
	OPERAND(uint64_t, a);
	uint64_t *d = opptr(w, i->d);
	MERGE_LANES(uint64_t, d, a[l]);
	MERGE_LANES(uint64_t, d + LANES, a[LANES + l]);
	return i + 1;
}

/* mov.b32 d, {x, y}: insn->a is the list {x, y}, and x becomes the low part of d.  P: the type of a part in its register. */
#define PACK(name, T, P, parts, part_bits) \
	OP(name) \
	{ \
		const opref *list = OPLIST(w, i->a); \
		const P *x[parts]; \
		for (unsigned k = 0; k < (parts); k++) \
			x[k] = opptr(w, list[k]); \
		_Alignas(64) T t[LANES] = { 0 }; \
		for (unsigned k = 0; k < (parts); k++) \
			for (unsigned l = 0; l < LANES; l++) \
				t[l] = (T)(t[l] | (T)((T)x[k][l] << (part_bits) * k)); \
		merge_lanes(w->mask, opptr(w, i->d), t, sizeof(T)); \
		return i + 1; \
	}
/* .b8 parts are in 16-bit registers, whose upper byte is ignored, because it may contain sign bits. */
#define PACK_BYTES(name, T, parts) \
	OP(name) \
	{ \
		const opref *list = OPLIST(w, i->a); \
		_Alignas(64) T t[LANES] = { 0 }; \
		for (unsigned k = 0; k < (parts); k++) \
			for (unsigned l = 0; l < LANES; l++) \
				t[l] = (T)(t[l] | (T)((T)(U16(w, list[k])[l] & 0xff) << 8 * k)); \
		merge_lanes(w->mask, opptr(w, i->d), t, sizeof(T)); \
		return i + 1; \
	}
PACK_BYTES(PACK_2X8, uint16_t, 2)
PACK_BYTES(PACK_4X8, uint32_t, 4)
PACK(PACK_2X16, uint32_t, uint16_t, 2, 16)
PACK(PACK_4X16, uint64_t, uint16_t, 4, 16)
PACK(PACK_2X32, uint64_t, uint32_t, 2, 32)

OP(PACK_2X64)
{
	const opref *list = OPLIST(w, i->a);
	_Alignas(64) uint64_t t[2][LANES]; /* the 128-bit register d does not overlap the 64-bit parts */
	memcpy(t[0], U64(w, list[0]), sizeof(t[0]));
	memcpy(t[1], U64(w, list[1]), sizeof(t[1]));
	uint64_t *d = opptr(w, i->d);
	merge64(w->mask, d, t[0]);
	merge64(w->mask, d + LANES, t[1]);
	return i + 1;
}

/* mov.b64 {x, y}, a: insn->d is the list.  The parts are narrower than a, so they are other registers, and do not overwrite a. */
#define UNPACK(name, T, P, parts, part_bits, part_mask) \
	OP(name) \
	{ \
		const opref *list = OPLIST(w, i->d); \
		OPERAND(T, a); \
		for (unsigned k = 0; k < (parts); k++) \
			MERGE_LANES(P, opptr(w, list[k]), a[l] >> (part_bits) * k & (part_mask)); \
		return i + 1; \
	}
UNPACK(UNPACK_2X8, uint16_t, uint16_t, 2, 8, 0xff)
UNPACK(UNPACK_4X8, uint32_t, uint16_t, 4, 8, 0xff)
UNPACK(UNPACK_2X16, uint32_t, uint16_t, 2, 16, 0xffff)
UNPACK(UNPACK_4X16, uint64_t, uint16_t, 4, 16, 0xffff)
UNPACK(UNPACK_2X32, uint64_t, uint32_t, 2, 32, 0xffffffff)

OP(UNPACK_2X64)
{
	const opref *list = OPLIST(w, i->d);
	OPERAND(uint64_t, a);
	MERGE_LANES(uint64_t, opptr(w, list[0]), a[l]);
	MERGE_LANES(uint64_t, opptr(w, list[1]), a[LANES + l]);
	return i + 1;
}

/* selp d, a, b, p: bit l of predicate p selects a or b for lane l. */
#define SELP(name, T) \
	OP(name) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		_Alignas(64) T t[LANES]; \
		const uint32_t p = *PRED(w, i->c); \
		memcpy(t, b, sizeof(t)); \
		merge_lanes(p, t, a, sizeof(T)); \
		merge_lanes(w->mask, opptr(w, i->d), t, sizeof(T)); \
		return i + 1; \
	}
SELP(SELP_16, uint16_t)
SELP(SELP_32, uint32_t)
SELP(SELP_64, uint64_t)

/* slct d, a, b, c: d = a if c >= 0, else b.  For a float c, -0 is >= 0, NaN is not, and with .ftz a subnormal c counts as 0. */
#define SLCT(bits, T) \
	OP(SLCT_S32_##bits) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		OPERAND(int32_t, c); \
		MERGE_LANES(T, opptr(w, i->d), c[l] >= 0 ? a[l] : b[l]); \
		return i + 1; \
	} \
	OP(SLCT_F32_##bits) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		OPERAND(float, c); \
		const float least = i->flags & 4 ? -0x1p-126f : 0.0f; \
		if (least < 0) \
			MERGE_LANES(T, opptr(w, i->d), c[l] > least ? a[l] : b[l]); \
		else \
			MERGE_LANES(T, opptr(w, i->d), c[l] >= 0.0f ? a[l] : b[l]); \
		return i + 1; \
	}
SLCT(16, uint16_t)
SLCT(32, uint32_t)
SLCT(64, uint64_t)

#define PREDICATE(name, value) \
	OP(name) \
	{ \
		const uint32_t a = *PRED(w, i->a); \
		set_predicate(w, i->d, value); \
		return i + 1; \
	}
#define PREDICATE2(name, value) \
	OP(name) \
	{ \
		const uint32_t a = *PRED(w, i->a), b = *PRED(w, i->b); \
		set_predicate(w, i->d, value); \
		return i + 1; \
	}
PREDICATE(MOV_PRED, a)
PREDICATE(NOT_PRED, ~a)
PREDICATE2(AND_PRED, a &b)
PREDICATE2(OR_PRED, a | b)
PREDICATE2(XOR_PRED, a ^ b)
