/* rules.c — the rules: which PTX operations are compiled, and to which machine instructions.
 *
 * The machine code computes what the handlers compute (run/run_*.c), even for inactive lanes. Where the result of a CPU instruction
 * differs from the GPU's in rare cases, the code falls back to the handler:
 *   NaN        f32 results are 0x7fffffff, f64 results have the payload of one operand (with_payload())
 *   integers   a float that is out of range becomes 0x80000000 on CPUs, the nearest integer on GPUs */
#include "softcuda/exec/native/rules_internal.h"

#define RULE(name, how, bytes, ...)    [OP_##name] = { gpul_native_##how, bytes, NO_CHECK, __VA_ARGS__ }
#define PLAIN(name, how, bytes)        [OP_##name] = { gpul_native_##how, bytes, NO_CHECK, .has_immediate = 0 }
#define CHECKED(name, how, bytes, ...) [OP_##name] = { gpul_native_##how, bytes, CHECK_NAN, __VA_ARGS__ }
#define IN_RANGE(name, how, ...)       [OP_##name] = { gpul_native_##how, 4, CHECK_RANGE, __VA_ARGS__ }
#define IMM(byte)                      .has_immediate = 1, .immediate = (byte)
#define OP(...)                        .op = __VA_ARGS__
#define OP2(...)                       .op2 = __VA_ARGS__

#define FLOATS(name, how, code) CHECKED(name##_F32, how, 4, OP(PS(code))), CHECKED(name##_F64, how, 8, OP(PD(code)))
#define INTEGRAL(name, imm) \
	CHECKED(CVT_##name##_F32_F32, one, 4, OP(D3A(0x08)), IMM(imm)), CHECKED(CVT_##name##_F64_F64, one, 8, OP(Q3A(0x09)), IMM(imm))
#define COMPARE_INTS(cmp, imm) \
	RULE(SETP_##cmp##_S16, comparison, 2, OP(Q3A(0x3f)), IMM(imm)), RULE(SETP_##cmp##_U16, comparison, 2, OP(Q3A(0x3e)), IMM(imm)), \
		RULE(SETP_##cmp##_S32, comparison, 4, OP(D3A(0x1f)), IMM(imm)), \
		RULE(SETP_##cmp##_U32, comparison, 4, OP(D3A(0x1e)), IMM(imm)), \
		RULE(SETP_##cmp##_S64, comparison, 8, OP(Q3A(0x1f)), IMM(imm)), \
		RULE(SETP_##cmp##_U64, comparison, 8, OP(Q3A(0x1e)), IMM(imm))
#define COMPARE_FLOATS(cmp, imm) \
	RULE(SETP_##cmp##_F32, comparison, 4, OP(PS(0xc2)), IMM(imm)), RULE(SETP_##cmp##_F64, comparison, 8, OP(PD(0xc2)), IMM(imm))

/* clang-format off */
static const struct rule rules[N_OPS] = {
	/* rules for integers */
	RULE(ADD_16, two, 2, OP(D0F(0xfd))), RULE(ADD_32, two, 4, OP(D0F(0xfe))), RULE(ADD_64, two, 8, OP(PD(0xd4))),
	RULE(SUB_16, two, 2, OP(D0F(0xf9))), RULE(SUB_32, two, 4, OP(D0F(0xfa))), RULE(SUB_64, two, 8, OP(PD(0xfb))),
	RULE(MUL_16, two, 2, OP(D0F(0xd5))), RULE(MUL_32, two, 4, OP(D38(0x40))), RULE(MUL_64, two, 8, OP(Q38(0x40))),
	RULE(MAD_32, multiply_add, 4, OP(D38(0x40)), OP2(D0F(0xfe))), RULE(MAD_64, multiply_add, 8, OP(Q38(0x40)), OP2(PD(0xd4))),
	RULE(MUL_HI_S32, upper_product, 4, OP(Q38(0x28))), RULE(MUL_HI_U32, upper_product, 4, OP(PD(0xf4))),
	RULE(MUL_WIDE_S32, wide_product, 8, OP(D38(0x25)), OP2(Q38(0x28))), RULE(MUL_WIDE_U32, wide_product, 8, OP(D38(0x35)), OP2(PD(0xf4))),
	RULE(MAD_WIDE_S32, wide_sum, 8, OP(D38(0x25)), OP2(Q38(0x28))), RULE(MAD_WIDE_U32, wide_sum, 8, OP(D38(0x35)), OP2(PD(0xf4))),
	RULE(NEG_32, constant_first, 4, OP(D0F(0xfa))), RULE(NEG_64, constant_first, 8, OP(PD(0xfb))),
	RULE(ABS_32, one, 4, OP(D38(0x1e))), RULE(ABS_64, one, 8, OP(Q38(0x1f))),
	RULE(MIN_S32, two, 4, OP(D38(0x39))), RULE(MIN_S64, two, 8, OP(Q38(0x39))), RULE(MIN_U32, two, 4, OP(D38(0x3b))), RULE(MIN_U64, two, 8, OP(Q38(0x3b))),
	RULE(MAX_S32, two, 4, OP(D38(0x3d))), RULE(MAX_S64, two, 8, OP(Q38(0x3d))), RULE(MAX_U32, two, 4, OP(D38(0x3f))), RULE(MAX_U64, two, 8, OP(Q38(0x3f))),

	/* rules for bitwise operations */
	RULE(AND_16, two, 2, OP(D0F(0xdb))), RULE(AND_32, two, 4, OP(D0F(0xdb))), RULE(AND_64, two, 8, OP(PD(0xdb))),
	RULE(OR_16, two, 2, OP(D0F(0xeb))), RULE(OR_32, two, 4, OP(D0F(0xeb))), RULE(OR_64, two, 8, OP(PD(0xeb))),
	RULE(XOR_16, two, 2, OP(D0F(0xef))), RULE(XOR_32, two, 4, OP(D0F(0xef))), RULE(XOR_64, two, 8, OP(PD(0xef))),
	RULE(NOT_32, not, 4, OP(D3A(0x25))), RULE(NOT_64, not, 8, OP(Q3A(0x25))), RULE(LOP3, lop3, 4, OP(D3A(0x25))),
	RULE(SHL_32, shift, 4, OP(D38(0x47))), RULE(SHL_64, shift, 8, OP(Q38(0x47))), RULE(SHR_U32, shift, 4, OP(D38(0x45))), RULE(SHR_U64, shift, 8, OP(Q38(0x45))),
	RULE(SHR_S32, shift, 4, OP(D38(0x46))), RULE(SHR_S64, shift, 8, OP(Q38(0x46))), PLAIN(SHF_L_WRAP, funnel_left, 4), PLAIN(SHF_R_WRAP, funnel_right, 4),

	/* rules for floats; vrangeps and vrangepd with the immediates 4 and 5 compute minimum and maximum */
	FLOATS(ADD, two, 0x58), FLOATS(MUL, two, 0x59), FLOATS(SUB, two, 0x5c), FLOATS(DIV, two, 0x5e), FLOATS(SQRT, one, 0x51),
	CHECKED(FMA_F32, fused, 4, OP(D38(0xa8))), CHECKED(FMA_F64, fused, 8, OP(Q38(0xa8))), CHECKED(FMA_F32_ANY, rounded, 4, OP(D38(0xa8))),
	CHECKED(ADD_F32_ANY, rounded, 4, OP(PS(0x58))), CHECKED(SUB_F32_ANY, rounded, 4, OP(PS(0x5c))), CHECKED(MUL_F32_ANY, rounded, 4, OP(PS(0x59))),
	CHECKED(MIN_F32, two, 4, OP(D3A(0x50)), IMM(4)), CHECKED(MIN_F64, two, 8, OP(Q3A(0x50)), IMM(4)),
	CHECKED(MAX_F32, two, 4, OP(D3A(0x50)), IMM(5)), CHECKED(MAX_F64, two, 8, OP(Q3A(0x50)), IMM(5)),
	CHECKED(RCP_F32, constant_first, 4, OP(PS(0x5e)), .bits = 0x3f800000), CHECKED(RCP_APPROX, constant_first, 4, OP(PS(0x5e)), .bits = 0x3f800000),
	CHECKED(RCP_F64, constant_first, 8, OP(PD(0x5e)), .bits = 0x3ff0000000000000), CHECKED(SQRT_APPROX, one, 4, OP(PS(0x51))),
	CHECKED(NEG_F32, constant, 4, OP(D0F(0xef)), .bits = 0x80000000), CHECKED(NEG_F64, constant, 8, OP(PD(0xef)), .bits = (uint64_t)1 << 63),
	CHECKED(ABS_F32, constant, 4, OP(D0F(0xdb)), .bits = 0x7fffffff), CHECKED(ABS_F64, constant, 8, OP(PD(0xdb)), .bits = INT64_MAX),

	/* rules for conversions; vrndscaleps and vrndscalepd with the immediates 8 to 11 round to nearest, down, up, to zero */
	RULE(CVT_U32_U16, widen, 4, OP(D38(0x33))), RULE(CVT_S32_S16, widen, 4, OP(D38(0x23))), RULE(EXT_U16_32, widen, 4, OP(D38(0x33))),
	RULE(EXT_S16_32, widen, 4, OP(D38(0x23))), RULE(CVT_16_32, narrow, 2, OP(CUT(0x33))), RULE(CUT_32_16, narrow, 2, OP(CUT(0x33))),
	RULE(CVT_S64_S32, widen, 8, OP(D38(0x25))), RULE(EXT_S32_64, widen, 8, OP(D38(0x25))), RULE(CVT_U64_U32, widen, 8, OP(D38(0x35))),
	RULE(EXT_U32_64, widen, 8, OP(D38(0x35))), RULE(CVT_32_64, narrow, 4, OP(CUT(0x35))), RULE(CUT_64_32, narrow, 4, OP(CUT(0x35))),
	RULE(CVT_F64_F32, widen, 8, OP(PS(0x5a))), RULE(CVT_F64_S32, widen, 8, OP(F3(0, 0xe6))), RULE(CVT_F64_U32, widen, 8, OP(F3(0, 0x7a))),
	RULE(CVT_F32_F64, narrow, 4, OP(PD(0x5a))), RULE(CVT_F32_S64, narrow, 4, OP({ MAP_0F, NO_PREFIX, 1, 0x5b })),
	RULE(CVT_F32_S32, one, 4, OP(PS(0x5b))), RULE(CVT_F32_U32, one, 4, OP(F2(0, 0x7a))), RULE(CVT_F64_S64, one, 8, OP(F3(1, 0xe6))),
	RULE(CVT_F64_U64, one, 8, OP(F3(1, 0x7a))), IN_RANGE(CVT_RZI_S32_F64, narrow, OP(PD(0xe6))), IN_RANGE(CVT_RZI_S32_F32, one, OP(F3(0, 0x5b))),
	IN_RANGE(CVT_RNI_S32_F32, one, OP(D0F(0x5b))), INTEGRAL(RNI, 8), INTEGRAL(RMI, 9), INTEGRAL(RPI, 10), INTEGRAL(RZI, 11),
	RULE(CVT_SAT_F32_F32, saturate, 4, OP(PS(0x5f)), OP2(PS(0x5d))),

	/* rules for moves */
	PLAIN(MOV_16, copy, 2), PLAIN(MOV_32, copy, 4), PLAIN(MOV_64, copy, 8), PLAIN(SELP_16, choose, 2), PLAIN(SELP_32, choose, 4), PLAIN(SELP_64, choose, 8),
	RULE(PRMT, permute, 4, OP(D38(0x00)), OP2(D3A(0x25))), PLAIN(PACK_2X32, pack, 8), PLAIN(UNPACK_2X32, unpack, 4), PLAIN(ADDR_32, address, 4), PLAIN(ADDR_64, address, 8),

	/* rules for predicates */
	COMPARE_INTS(EQ, 0), COMPARE_INTS(NE, 4), COMPARE_INTS(LT, 1), COMPARE_INTS(LE, 2), COMPARE_INTS(GT, 6), COMPARE_INTS(GE, 5),
	COMPARE_FLOATS(EQ, 0x00), COMPARE_FLOATS(NE, 0x0c), COMPARE_FLOATS(LT, 0x11), COMPARE_FLOATS(LE, 0x12), COMPARE_FLOATS(GT, 0x1e), COMPARE_FLOATS(GE, 0x1d),
	PLAIN(SETP_ANY_32, any_comparison, 4), PLAIN(SETP_ANY_64, any_comparison, 8), PLAIN(MOV_PRED, logic, 4), PLAIN(NOT_PRED, logic_not, 4),
	RULE(AND_PRED, logic, 4, IMM(ALU_AND)), RULE(OR_PRED, logic, 4, IMM(ALU_OR)), RULE(XOR_PRED, logic, 4, IMM(ALU_XOR)),
};
/* clang-format on */

bool gpul_native_computes(const struct insn *i)
{
	switch (i->op) {
	case OP_SETP_ANY_32:
	case OP_SETP_ANY_64:
		return !(i->flags & (FLAG_FTZ | COMPARE_HAS_Q));
	case OP_ADD_F32_ANY:
	case OP_SUB_F32_ANY:
	case OP_MUL_F32_ANY:
	case OP_FMA_F32_ANY:
		return !(i->flags & ~(unsigned)ROUND_MASK);
	case OP_PRMT:
		return (i->c & 3) == BANK_CONSTS;
	case OP_RCP_APPROX:
	case OP_SQRT_APPROX:
		return !(i->flags & FLAG_FTZ);
	default:
		return rules[i->op].compile;
	}
}

void gpul_native_compute(struct run_compiler *c, const struct insn *i)
{
	rules[i->op].compile(c, i, &rules[i->op]);
}
