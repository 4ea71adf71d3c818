/* run_carry.c — handlers of add.cc, addc, sub.cc, subc, mad.cc, madc: PTX ISA 9.7.2.
 *
 * Bit n of w->cc is the carry of lane n.  It is read if insn->flags has CARRY_IN, and written for the active lanes if it
 * has CARRY_OUT.  A subtraction adds the complement, as a GPU does: a - b is a + ~b + 1, so its carry is 1 if there is
 * no borrow.  Programs can see this if they use addc after sub.cc, or subc after add.cc (observed on an H200). */
#include "softcuda/exec/run/lanes_internal.h"

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Define a handler.  T: type of the registers; W: a type of twice the width, in which `total` does not overflow; no_carry: the
 * carry-in bits to use if the instruction does not read w->cc. */
#define CARRY(name, T, W, bits, no_carry, total) \
	OP(name) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		const uint32_t in = (i->flags & CARRY_IN) ? w->cc : (no_carry); \
		_Alignas(64) T t[LANES]; \
		uint32_t out = 0; \
		for (unsigned l = 0; l < LANES; l++) { \
			const W sum = (total); \
			t[l] = (T)sum; \
			out |= (uint32_t)(sum >> (bits) & 1) << l; \
		} \
		if (i->flags & CARRY_OUT) \
			w->cc = (w->cc & ~w->mask) | (out & w->mask); \
		merge_lanes(w->mask, opptr(w, i->d), t, sizeof(T)); \
		return i + 1; \
	}
#define CARRY_L (in >> l & 1)
CARRY(ADDC_32, uint32_t, uint64_t, 32, 0, (uint64_t)a[l] + b[l] + CARRY_L)
CARRY(ADDC_64, uint64_t, uint128, 64, 0, (uint128)a[l] + b[l] + CARRY_L)
CARRY(SUBC_32, uint32_t, uint64_t, 32, ALL_LANES, (uint64_t)a[l] + (uint32_t)~b[l] + CARRY_L)
CARRY(SUBC_64, uint64_t, uint128, 64, ALL_LANES, (uint128)a[l] + (uint64_t)~b[l] + CARRY_L)

/* Define mad with carry: d = the low or high half of the product, plus c, plus the carry. */
#define MADC(name, T, W, bits, half) \
	OP(name) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		OPERAND(T, c); \
		const uint32_t in = (i->flags & CARRY_IN) ? w->cc : 0; \
		_Alignas(64) T t[LANES]; \
		uint32_t out = 0; \
		for (unsigned l = 0; l < LANES; l++) { \
			const W sum = (W)(T)(half) + c[l] + CARRY_L; \
			t[l] = (T)sum; \
			out |= (uint32_t)(sum >> (bits) & 1) << l; \
		} \
		if (i->flags & CARRY_OUT) \
			w->cc = (w->cc & ~w->mask) | (out & w->mask); \
		merge_lanes(w->mask, opptr(w, i->d), t, sizeof(T)); \
		return i + 1; \
	}
MADC(MADC_LO_32, uint32_t, uint64_t, 32, a[l] * b[l])
MADC(MADC_LO_64, uint64_t, uint128, 64, a[l] * b[l])
MADC(MADC_HI_U32, uint32_t, uint64_t, 32, (uint64_t)a[l] * b[l] >> 32)
MADC(MADC_HI_S32, uint32_t, uint64_t, 32, (int64_t)(int32_t)a[l] * (int32_t)b[l] >> 32)
MADC(MADC_HI_U64, uint64_t, uint128, 64, (uint128)a[l] * b[l] >> 64)
MADC(MADC_HI_S64, uint64_t, uint128, 64, (int128)(int64_t)a[l] * (int64_t)b[l] >> 64)
