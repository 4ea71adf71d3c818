/* alu_rig.h — runs one arithmetic handler on 32 lanes, without decoder or parser.
 *
 * check_op() runs the handler of each build that this CPU supports on every combination of the operand lists, with all lanes active and
 * with some inactive, and compares each lane with a reference function.  Inactive lanes must keep their values. */
#ifndef GPULOAD_TESTS_SOFTCUDA_EXEC_ALU_ALU_RIG_H
#define GPULOAD_TESTS_SOFTCUDA_EXEC_ALU_ALU_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "softcuda/exec/engine_internal.h"
#include "softcuda/exec/exec_select_internal.h"

enum { SLOT_BYTES = 512, SLOT_D = 0, SLOT_D2, SLOT_A, SLOT_B, SLOT_C, SLOT_E, N_SLOTS };
#define RIG_REF(slot) OPREF(BANK_REGS, (slot) * SLOT_BYTES)

struct rig {
	struct warp w;
	_Alignas(64) uint8_t slots[N_SLOTS * SLOT_BYTES];
};

struct rig_build {
	const char *name;
	op_fn *const *table;
};

/* Return the builds of the interpreter that this CPU can run, terminated by { NULL }. */
static inline const struct rig_build *rig_builds(void)
{
	static struct rig_build builds[4];
	unsigned n = 0;
	builds[n++] = (struct rig_build){ "base", gpul_alu_table_base };
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		builds[n++] = (struct rig_build){ "v3", gpul_alu_table_v3 };
	if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
		builds[n++] = (struct rig_build){ "v4", gpul_alu_table_v4 };
#endif
	builds[n] = (struct rig_build){ NULL, NULL };
	return builds;
}

static inline const char *rig_op_name(unsigned op)
{
	static const char *const names[] = {
#define X(name) [OP_##name] = #name,
		GPUL_ALU_OPS(X)
#undef X
	};
	return names[op];
}

/* Return the value of one lane of a register slot; bits: width of the register, 1: a predicate, 0: no operand. */
static inline uint64_t rig_get(struct rig *r, unsigned slot, unsigned lane, unsigned bits)
{
	const void *p = r->slots + slot * SLOT_BYTES;
	switch (bits) {
	case 0:
		return 0;
	case 1:
		return *(const uint32_t *)p >> lane & 1;
	case 16:
		return ((const uint16_t *)p)[lane];
	case 32:
		return ((const uint32_t *)p)[lane];
	default:
		return ((const uint64_t *)p)[lane];
	}
}

static inline void rig_set(struct rig *r, unsigned slot, unsigned lane, unsigned bits, uint64_t value)
{
	void *p = r->slots + slot * SLOT_BYTES;
	switch (bits) {
	case 0:
		break;
	case 1:
		*(uint32_t *)p = (*(uint32_t *)p & ~(1u << lane)) | (uint32_t)(value & 1) << lane;
		break;
	case 16:
		((uint16_t *)p)[lane] = (uint16_t)value;
		break;
	case 32:
		((uint32_t *)p)[lane] = (uint32_t)value;
		break;
	default:
		((uint64_t *)p)[lane] = value;
		break;
	}
}

static inline struct rig *rig_reset(uint32_t mask)
{
	static struct rig r;
	memset(&r, 0x5a, sizeof(r));
	r.w.mask = mask;
	r.w.live = ALL_LANES;
	r.w.bank[BANK_REGS] = r.slots;
	return &r;
}

static inline void rig_run(struct rig *r, const struct rig_build *build, unsigned op, unsigned flags, unsigned n, int64_t imm)
{
	const struct insn i = { .d = RIG_REF(SLOT_D),
				.d2 = RIG_REF(SLOT_D2),
				.a = RIG_REF(SLOT_A),
				.b = RIG_REF(SLOT_B),
				.c = RIG_REF(SLOT_C),
				.e = RIG_REF(SLOT_E),
				.imm = imm,
				.op = (uint16_t)op,
				.n = (uint8_t)n,
				.flags = (uint8_t)flags };
	const struct insn *next = build->table[op - OP_ALU_FIRST](&r->w, &i);
	assert_true(next == &i + 1);
}

/* ---- operand lists ----------------------------------------------------------------------------- */

struct operands {
	const uint64_t *values;
	unsigned n;
};

static const uint64_t int_values[] = {
	0,
	1,
	2,
	3,
	7,
	15,
	16,
	17,
	31,
	32,
	33,
	63,
	64,
	65,
	127,
	128,
	129,
	255,
	256,
	0x7fff,
	0x8000,
	0x8001,
	0xffff,
	0x10000,
	0x7fffff,
	0x800000,
	0xffffff,
	0x1234567,
	0x7fffffff,
	0x80000000,
	0x80000001,
	0xdeadbeef,
	0xfffffffe,
	0xffffffff,
	0x100000000,
	0x123456789abcdef0,
	0x7fffffffffffffff,
	0x8000000000000000,
	0xfedcba9876543210,
	0xffffffff00000000,
	0xfffffffffffffffe,
	0xffffffffffffffff,
};

static const uint64_t f32_values[] = {
	0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x00800001, 0x3f800000,
	0xbf800000, 0x3f800001, 0x3f7fffff, 0x3f000000, 0x3effffff, 0x3fc00000, 0xc0200000, 0x40490fdb, 0x4b000000, 0x4b7fffff,
	0x4b800000, 0x4b800001, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000, 0x5f800000,
	0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x7e800000, 0x34000000, 0x33800000,
	0x33800001, 0x38800000, 0x387fc000, 0x33000000, 0x477fe000, 0x477ff000, 0x477fefff, 0x3dcccccd,
};

static const uint64_t f64_values[] = {
	0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x3ff0000000000000,
	0xbff0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff, 0x3fe0000000000000, 0xc004000000000000, 0x400921fb54442d18,
	0x3ca0000000000000, 0x3cb0000000000000, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000200000, 0x43e0000000000000,
	0xc3e0000000000000, 0x43f0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
	0x47efffffe0000000, 0x47efffffefffffff, 0x47efffffF0000000, 0x3690000000000000, 0x3680000000000000, 0x3680000000000001,
	0x3810000000000000, 0x380fffffffffffff, 0x36a8000000000000, 0x3ff0000010000000, 0x3ff0000030000000, 0x3ff0000010000001,
	0x3f50624dd2f1a9fc,
};

static const uint64_t half_values[] = {
	/* operands for f16 and for bf16: each pattern is valid in both formats */
	0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x4000, 0x4248, 0x7bff, 0xfbff, 0x7c00,
	0xfc00, 0x7e00, 0x7c01, 0x3f80, 0xbf80, 0x3f81, 0x4049, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x007f, 0x1400, 0x6400, 0x5555,
};

static const uint64_t bool_values[] = { 0, 1, 1, 0, 0, 0, 1 };

#define LIST(values) ((struct operands){ values, sizeof(values) / sizeof(values[0]) })
static const struct operands no_operand = { NULL, 0 };

/* ---- checking an operation ----------------------------------------------------------------------- */

/* The reference: computes the destination's bits from the operands' bits (each truncated to its width). */
typedef uint64_t reference_fn(uint64_t a, uint64_t b, uint64_t c, uint64_t e);

struct op_case {
	unsigned op, flags, n;
	int64_t imm;
	unsigned d_bits, bits[4]; /* widths of the destination and of operands a, b, c, e; 0: not used */
	struct operands values[4];
	reference_fn *reference;
	/* Decides whether a result is acceptable; NULL: all bits must be equal to the reference's result. */
	int (*accept)(uint64_t got, uint64_t expected);
};

static inline float f32_of(uint64_t x)
{
	const uint32_t u = (uint32_t)x;
	float f;
	memcpy(&f, &u, sizeof(f));
	return f;
}

static inline uint64_t bits32(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof(u));
	return u;
}

static inline double f64_of(uint64_t x)
{
	double d;
	memcpy(&d, &x, sizeof(d));
	return d;
}

static inline uint64_t bits64(double d)
{
	uint64_t u;
	memcpy(&u, &d, sizeof(u));
	return u;
}

static inline uint64_t cut(uint64_t x, unsigned bits)
{
	return bits >= 64 ? x : x & (((uint64_t)1 << bits) - 1);
}

static inline void fill_lane(struct rig *r, const struct op_case *t, unsigned lane, uint64_t row, uint64_t x[4])
{
	for (unsigned k = 0; k < 4; k++) {
		x[k] = 0;
		if (!t->bits[k])
			continue;
		x[k] = cut(t->values[k].values[row % t->values[k].n], t->bits[k]);
		row /= t->values[k].n;
		rig_set(r, SLOT_A + k, lane, t->bits[k], x[k]);
	}
}

static inline void check_warp(const struct op_case *t, const struct rig_build *build, uint32_t mask, uint64_t row, uint64_t rows)
{
	struct rig *r = rig_reset(mask);
	uint64_t x[LANES][4], before[LANES];
	for (unsigned l = 0; l < LANES; l++) {
		fill_lane(r, t, l, (row + l) % rows, x[l]);
		before[l] = rig_get(r, SLOT_D, l, t->d_bits);
	}
	rig_run(r, build, t->op, t->flags, t->n, t->imm);
	for (unsigned l = 0; l < LANES; l++) {
		const uint64_t got = rig_get(r, SLOT_D, l, t->d_bits);
		const bool on = mask >> l & 1;
		const uint64_t want = on ? cut(t->reference(x[l][0], x[l][1], x[l][2], x[l][3]), t->d_bits) : before[l];
		if (got == want || (on && t->accept && t->accept(got, want)))
			continue;
		fail_msg("%s.%s flags %#x n %u imm %#llx lane %u (%s): a %#llx b %#llx c %#llx "
			 "e %#llx gives %#llx, not %#llx",
			 rig_op_name(t->op), build->name, t->flags, t->n, (unsigned long long)t->imm, l, on ? "on" : "off",
			 (unsigned long long)x[l][0], (unsigned long long)x[l][1], (unsigned long long)x[l][2], (unsigned long long)x[l][3],
			 (unsigned long long)got, (unsigned long long)want);
	}
}

static inline void check_op(const struct op_case *t)
{
	uint64_t rows = 1;
	for (unsigned k = 0; k < 4; k++)
		if (t->bits[k])
			rows *= t->values[k].n;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		for (uint64_t row = 0; row < rows; row += LANES)
			check_warp(t, b, ALL_LANES, row, rows);
		for (uint64_t row = 0; row < rows; row += 7 * LANES + 3) {
			check_warp(t, b, 0x6b2a91c5, row, rows);
			check_warp(t, b, 0x80000000, row, rows);
		}
	}
}

#endif
