/* select_rules.c — the rules that select the operation of an arithmetic instruction by its types and modifiers.
 *
 * Columns: the members of struct rule (operation, types, required modifiers, optional modifiers, operands, flags, n).  The first rule
 * that matches is used, so fast operations, which support few modifiers, come before slow ones, which support all modifiers. */
#include "softcuda/exec/decode/form_internal.h"

#define T(name) GPUL_PTX_MOD_##name
#define ROUNDS  (HAS(RN) | HAS(RZ) | HAS(RM) | HAS(RP))
#define INTS_BY_SIGN(op, need, may, sig16, sig32, sig64) \
	{ OP_##op##_U16, { T(U16) }, need, may, sig16, 0, 0 }, { OP_##op##_S16, { T(S16) }, need, may, sig16, 0, 0 }, \
		{ OP_##op##_U32, { T(U32) }, need, may, sig32, 0, 0 }, { OP_##op##_S32, { T(S32) }, need, may, sig32, 0, 0 }, \
		{ OP_##op##_U64, { T(U64) }, need, may, sig64, 0, 0 }, { OP_##op##_S64, { T(S64) }, need, may, sig64, 0, 0 }
#define INTS(op, need, sig16, sig32, sig64) \
	{ OP_##op##_16, { INT_16 }, need, 0, sig16, 0, 0 }, { OP_##op##_32, { INT_32 }, need, 0, sig32, 0, 0 }, \
		{ OP_##op##_64, { INT_64 }, need, 0, sig64, 0, 0 }
/* Rules of an operation for f16, f16x2, bf16 and bf16x2. */
#define HALVES(op, may, may_bf16, sig_f16, sig_bf16, sig_pair) \
	{ OP_##op##_F16, { T(F16) }, 0, may, sig_f16, 0, 0 }, { OP_##op##_F16X2, { T(F16X2) }, 0, may, sig_pair, 0, 0 }, \
		{ OP_##op##_BF16, { T(BF16) }, 0, may_bf16, sig_bf16, 0, 0 }, \
		{ OP_##op##_BF16X2, { T(BF16X2) }, 0, may_bf16, sig_pair, 0, 0 }
/* Rules of an operation for floats: for rounding to nearest, for rounding to nearest with .ftz, and for all other modifiers (..._ANY). */
#define FLOATS(op, sig32, sig64, sig_pair) \
	{ OP_##op##_F32, { T(F32) }, 0, HAS(RN), sig32, 0, 0 }, { OP_##op##_F32_FTZ, { T(F32) }, HAS(FTZ), HAS(RN), sig32, 0, 0 }, \
		{ OP_##op##_F32_ANY, { T(F32) }, 0, ROUNDS | HAS(FTZ) | HAS(SAT), sig32, 0, 0 }, \
		{ OP_##op##_F64, { T(F64) }, 0, HAS(RN), sig64, 0, 0 }, { OP_##op##_F64_ANY, { T(F64) }, 0, ROUNDS, sig64, 0, 0 }, \
		{ OP_##op##_F32X2, { T(F32X2) }, 0, ROUNDS | HAS(FTZ), sig_pair, 0, 0 }
#define MIXED(op, sig_f16, sig_bf16) \
	{ OP_##op##_MIXED, { T(F32), T(F16) }, 0, ROUNDS | HAS(SAT), sig_f16, 0, 0 }, \
		{ OP_##op##_MIXED, { T(F32), T(BF16) }, 0, ROUNDS | HAS(SAT), sig_bf16, 128, 0 }

static const struct rule add_rules[] = {
	INTS(ADD, 0, "h=hh", "w=ww", "d=dd"),
	{ OP_ADD_SAT_S32, { T(S32) }, HAS(SAT), 0, "w=ww", 0, 0 },
	{ OP_ADD_16X2, { T(U16X2) }, 0, 0, "w=ww", 0, 0 },
	{ OP_ADD_16X2, { T(S16X2) }, 0, 0, "w=ww", 0, 0 },
	{ OP_ADDC_32, { INT_32 }, HAS(CC), 0, "w=ww", CARRY_OUT, 0 },
	{ OP_ADDC_64, { INT_64 }, HAS(CC), 0, "d=dd", CARRY_OUT, 0 },
	FLOATS(ADD, "f=ff", "g=gg", "d=dd"),
	HALVES(ADD, HAS(RN) | HAS(FTZ) | HAS(SAT), HAS(RN), "x=xx", "y=yy", "w=ww"),
	MIXED(ADD, "f=xf", "f=yf"),
};

static const struct rule sub_rules[] = {
	INTS(SUB, 0, "h=hh", "w=ww", "d=dd"),
	{ OP_SUB_SAT_S32, { T(S32) }, HAS(SAT), 0, "w=ww", 0, 0 },
	{ OP_SUBC_32, { INT_32 }, HAS(CC), 0, "w=ww", CARRY_OUT, 0 },
	{ OP_SUBC_64, { INT_64 }, HAS(CC), 0, "d=dd", CARRY_OUT, 0 },
	FLOATS(SUB, "f=ff", "g=gg", "d=dd"),
	HALVES(SUB, HAS(RN) | HAS(FTZ) | HAS(SAT), HAS(RN), "x=xx", "y=yy", "w=ww"),
	MIXED(SUB, "f=xf", "f=yf"),
};

static const struct rule addc_rules[] = {
	{ OP_ADDC_32, { INT_32 }, HAS(CC), 0, "w=ww", CARRY_IN | CARRY_OUT, 0 },
	{ OP_ADDC_64, { INT_64 }, HAS(CC), 0, "d=dd", CARRY_IN | CARRY_OUT, 0 },
	{ OP_ADDC_32, { INT_32 }, 0, 0, "w=ww", CARRY_IN, 0 },
	{ OP_ADDC_64, { INT_64 }, 0, 0, "d=dd", CARRY_IN, 0 },
};

static const struct rule subc_rules[] = {
	{ OP_SUBC_32, { INT_32 }, HAS(CC), 0, "w=ww", CARRY_IN | CARRY_OUT, 0 },
	{ OP_SUBC_64, { INT_64 }, HAS(CC), 0, "d=dd", CARRY_IN | CARRY_OUT, 0 },
	{ OP_SUBC_32, { INT_32 }, 0, 0, "w=ww", CARRY_IN, 0 },
	{ OP_SUBC_64, { INT_64 }, 0, 0, "d=dd", CARRY_IN, 0 },
};

static const struct rule mul_rules[] = {
	INTS(MUL, HAS(LO), "h=hh", "w=ww", "d=dd"),
	INTS_BY_SIGN(MUL_HI, HAS(HI), 0, "h=hh", "w=ww", "d=dd"),
	{ OP_MUL_WIDE_U16, { T(U16) }, HAS(WIDE), 0, "w=hh", 0, 0 },
	{ OP_MUL_WIDE_S16, { T(S16) }, HAS(WIDE), 0, "w=hh", 0, 0 },
	{ OP_MUL_WIDE_U32, { T(U32) }, HAS(WIDE), 0, "d=ww", 0, 0 },
	{ OP_MUL_WIDE_S32, { T(S32) }, HAS(WIDE), 0, "d=ww", 0, 0 },
	FLOATS(MUL, "f=ff", "g=gg", "d=dd"),
	HALVES(MUL, HAS(RN) | HAS(FTZ) | HAS(SAT), HAS(RN), "x=xx", "y=yy", "w=ww"),
};

#define CARRY_MADS(in) \
	{ OP_MADC_LO_32, { INT_32 }, HAS(LO) | HAS(CC), 0, "w=www", (in) | CARRY_OUT, 0 }, \
		{ OP_MADC_LO_64, { INT_64 }, HAS(LO) | HAS(CC), 0, "d=ddd", (in) | CARRY_OUT, 0 }, \
		{ OP_MADC_HI_U32, { T(U32) }, HAS(HI) | HAS(CC), 0, "w=www", (in) | CARRY_OUT, 0 }, \
		{ OP_MADC_HI_S32, { T(S32) }, HAS(HI) | HAS(CC), 0, "w=www", (in) | CARRY_OUT, 0 }, \
		{ OP_MADC_HI_U64, { T(U64) }, HAS(HI) | HAS(CC), 0, "d=ddd", (in) | CARRY_OUT, 0 }, \
		{ OP_MADC_HI_S64, { T(S64) }, HAS(HI) | HAS(CC), 0, "d=ddd", (in) | CARRY_OUT, 0 }

static const struct rule mad_rules[] = {
	INTS(MAD, HAS(LO), "h=hhh", "w=www", "d=ddd"),
	INTS_BY_SIGN(MAD_HI, HAS(HI), 0, "h=hhh", "w=www", "d=ddd"),
	{ OP_MAD_HI_SAT_S32, { T(S32) }, HAS(HI) | HAS(SAT), 0, "w=www", 0, 0 },
	{ OP_MAD_WIDE_U16, { T(U16) }, HAS(WIDE), 0, "w=hhw", 0, 0 },
	{ OP_MAD_WIDE_S16, { T(S16) }, HAS(WIDE), 0, "w=hhw", 0, 0 },
	{ OP_MAD_WIDE_U32, { T(U32) }, HAS(WIDE), 0, "d=wwd", 0, 0 },
	{ OP_MAD_WIDE_S32, { T(S32) }, HAS(WIDE), 0, "d=wwd", 0, 0 },
	CARRY_MADS(0),
	FLOATS(FMA, "f=fff", "g=ggg", "d=ddd"), /* mad.f32 computes the same as fma.f32 since sm_20 */
};

static const struct rule madc_rules[] = {
	CARRY_MADS(CARRY_IN),
	{ OP_MADC_LO_32, { INT_32 }, HAS(LO), 0, "w=www", CARRY_IN, 0 },
	{ OP_MADC_LO_64, { INT_64 }, HAS(LO), 0, "d=ddd", CARRY_IN, 0 },
	{ OP_MADC_HI_U32, { T(U32) }, HAS(HI), 0, "w=www", CARRY_IN, 0 },
	{ OP_MADC_HI_S32, { T(S32) }, HAS(HI), 0, "w=www", CARRY_IN, 0 },
	{ OP_MADC_HI_U64, { T(U64) }, HAS(HI), 0, "d=ddd", CARRY_IN, 0 },
	{ OP_MADC_HI_S64, { T(S64) }, HAS(HI), 0, "d=ddd", CARRY_IN, 0 },
};

static const struct rule fma_rules[] = {
	FLOATS(FMA, "f=fff", "g=ggg", "d=ddd"),
	HALVES(FMA, HAS(RN) | HAS(FTZ) | HAS(SAT) | HAS(RELU), HAS(RN) | HAS(RELU), "x=xxx", "y=yyy", "w=www"),
#define OOB_RULE(type, sig) { OP_FMA_OOB_##type, { T(type) }, HAS(OOB) | HAS(RN), HAS(RELU), sig, 0, 0 }
	OOB_RULE(F16, "x=xxx"),
	OOB_RULE(F16X2, "w=www"),
	OOB_RULE(BF16, "y=yyy"),
	OOB_RULE(BF16X2, "w=www"),
	MIXED(FMA, "f=xxf", "f=yyf"),
};

static const struct rule mul24_rules[] = {
	{ OP_MUL24_LO_U32, { T(U32) }, HAS(LO), 0, "w=ww", 0, 0 },
	{ OP_MUL24_LO_S32, { T(S32) }, HAS(LO), 0, "w=ww", 0, 0 },
	{ OP_MUL24_HI_U32, { T(U32) }, HAS(HI), 0, "w=ww", 0, 0 },
	{ OP_MUL24_HI_S32, { T(S32) }, HAS(HI), 0, "w=ww", 0, 0 },
};

static const struct rule mad24_rules[] = {
	{ OP_MAD24_LO_U32, { T(U32) }, HAS(LO), 0, "w=www", 0, 0 },
	{ OP_MAD24_LO_S32, { T(S32) }, HAS(LO), 0, "w=www", 0, 0 },
	{ OP_MAD24_HI_U32, { T(U32) }, HAS(HI), 0, "w=www", 0, 0 },
	{ OP_MAD24_HI_S32, { T(S32) }, HAS(HI), 0, "w=www", 0, 0 },
	{ OP_MAD24_HI_SAT_S32, { T(S32) }, HAS(HI) | HAS(SAT), 0, "w=www", 0, 0 },
};

static const struct rule sad_rules[] = { INTS_BY_SIGN(SAD, 0, 0, "h=hhh", "w=www", "d=ddd") };

static const struct rule div_rules[] = {
	INTS_BY_SIGN(DIV, 0, 0, "h=hh", "w=ww", "d=dd"),
	{ OP_DIV_F32, { T(F32) }, HAS(RN), 0, "f=ff", 0, 0 },
	{ OP_DIV_APPROX, { T(F32) }, HAS(APPROX), HAS(FTZ), "f=ff", 0, 0 },
	{ OP_DIV_FULL, { T(F32) }, HAS(FULL), HAS(FTZ), "f=ff", 0, 0 },
	{ OP_DIV_F32_ANY, { T(F32) }, 0, ROUNDS | HAS(FTZ), "f=ff", 0, 0 },
	{ OP_DIV_F64, { T(F64) }, HAS(RN), 0, "g=gg", 0, 0 },
	{ OP_DIV_F64_ANY, { T(F64) }, 0, ROUNDS, "g=gg", 0, 0 },
};

static const struct rule rem_rules[] = { INTS_BY_SIGN(REM, 0, 0, "h=hh", "w=ww", "d=dd") };

static const struct rule abs_rules[] = {
	INTS(ABS, 0, "h=h", "w=w", "d=d"),
	{ OP_ABS_F32, { T(F32) }, 0, 0, "f=f", 0, 0 },
	{ OP_ABS_F32_FTZ, { T(F32) }, HAS(FTZ), 0, "f=f", 0, 0 },
	{ OP_ABS_F64, { T(F64) }, 0, 0, "g=g", 0, 0 },
	HALVES(ABS, HAS(FTZ), 0, "x=x", "y=y", "w=w"),
};

static const struct rule neg_rules[] = {
	INTS(NEG, 0, "h=h", "w=w", "d=d"),
	{ OP_NEG_F32, { T(F32) }, 0, 0, "f=f", 0, 0 },
	{ OP_NEG_F32_FTZ, { T(F32) }, HAS(FTZ), 0, "f=f", 0, 0 },
	{ OP_NEG_F64, { T(F64) }, 0, 0, "g=g", 0, 0 },
	HALVES(NEG, HAS(FTZ), 0, "x=x", "y=y", "w=w"),
};

#define CHOICE(op) \
	INTS_BY_SIGN(op, 0, 0, "h=hh", "w=ww", "d=dd"), { OP_##op##_RELU_S32, { T(S32) }, HAS(RELU), 0, "w=ww", 0, 0 }, \
		{ OP_##op##_U16X2, { T(U16X2) }, 0, 0, "w=ww", 0, 0 }, { OP_##op##_S16X2, { T(S16X2) }, 0, 0, "w=ww", 0, 0 }, \
		{ OP_##op##_RELU_S16X2, { T(S16X2) }, HAS(RELU), 0, "w=ww", 0, 0 }, { OP_##op##_F32, { T(F32) }, 0, 0, "f=ff", 0, 0 }, \
		{ OP_##op##_F32_ANY, { T(F32) }, 0, HAS(FTZ) | HAS(NAN) | HAS(XORSIGN) | HAS(ABS), "f=ff", 0, 0 }, \
		{ OP_##op##_F64, { T(F64) }, 0, 0, "g=gg", 0, 0 }, \
		HALVES(op, HAS(FTZ) | HAS(NAN) | HAS(XORSIGN) | HAS(ABS), HAS(NAN) | HAS(XORSIGN) | HAS(ABS), "x=xx", "y=yy", "w=ww")
static const struct rule min_rules[] = { CHOICE(MIN) };
static const struct rule max_rules[] = { CHOICE(MAX) };
/* The instruction min with three sources, which exists from sm_100 on. */
static const struct rule min3_rules[] = {
	{ OP_MIN3_F32, { T(F32) }, 0, HAS(FTZ) | HAS(NAN) | HAS(ABS), "f=fff", 0, 0 },
};
static const struct rule max3_rules[] = {
	{ OP_MAX3_F32, { T(F32) }, 0, HAS(FTZ) | HAS(NAN) | HAS(ABS), "f=fff", 0, 0 },
};

static const struct rule popc_rules[] = { { OP_POPC_32, { T(B32) }, 0, 0, "w=w", 0, 0 }, { OP_POPC_64, { T(B64) }, 0, 0, "w=d", 0, 0 } };
static const struct rule clz_rules[] = { { OP_CLZ_32, { T(B32) }, 0, 0, "w=w", 0, 0 }, { OP_CLZ_64, { T(B64) }, 0, 0, "w=d", 0, 0 } };
static const struct rule brev_rules[] = { { OP_BREV_32, { T(B32) }, 0, 0, "w=w", 0, 0 }, { OP_BREV_64, { T(B64) }, 0, 0, "d=d", 0, 0 } };

static const struct rule bfind_rules[] = {
	{ OP_BFIND_U32, { T(U32) }, HAS(SHIFTAMT), 0, "w=w", BFIND_SHIFTAMT, 0 }, { OP_BFIND_U32, { T(U32) }, 0, 0, "w=w", 0, 0 },
	{ OP_BFIND_S32, { T(S32) }, HAS(SHIFTAMT), 0, "w=w", BFIND_SHIFTAMT, 0 }, { OP_BFIND_S32, { T(S32) }, 0, 0, "w=w", 0, 0 },
	{ OP_BFIND_U64, { T(U64) }, HAS(SHIFTAMT), 0, "w=d", BFIND_SHIFTAMT, 0 }, { OP_BFIND_U64, { T(U64) }, 0, 0, "w=d", 0, 0 },
	{ OP_BFIND_S64, { T(S64) }, HAS(SHIFTAMT), 0, "w=d", BFIND_SHIFTAMT, 0 }, { OP_BFIND_S64, { T(S64) }, 0, 0, "w=d", 0, 0 },
};

static const struct rule fns_rules[] = { { OP_FNS, { T(B32) }, 0, 0, "w=www", 0, 0 } };

static const struct rule bfe_rules[] = {
	{ OP_BFE_U32, { T(U32) }, 0, 0, "w=www", 0, 0 },
	{ OP_BFE_S32, { T(S32) }, 0, 0, "w=www", 0, 0 },
	{ OP_BFE_U64, { T(U64) }, 0, 0, "d=dww", 0, 0 },
	{ OP_BFE_S64, { T(S64) }, 0, 0, "d=dww", 0, 0 },
};
static const struct rule bfi_rules[] = { { OP_BFI_32, { T(B32) }, 0, 0, "w=wwww", 0, 0 }, { OP_BFI_64, { T(B64) }, 0, 0, "d=ddww", 0, 0 } };
static const struct rule bmsk_rules[] = { { OP_BMSK_CLAMP, { T(B32) }, HAS(CLAMP), 0, "w=ww", 0, 0 },
					  { OP_BMSK_WRAP, { T(B32) }, HAS(WRAP), 0, "w=ww", 0, 0 } };
static const struct rule szext_rules[] = {
	{ OP_SZEXT_U32, { T(U32) }, HAS(CLAMP), 0, "w=ww", 0, 0 },
	{ OP_SZEXT_S32, { T(S32) }, HAS(CLAMP), 0, "w=ww", 0, 0 },
	{ OP_SZEXT_U32, { T(U32) }, HAS(WRAP), 0, "w=ww", BMSK_WRAPS, 0 },
	{ OP_SZEXT_S32, { T(S32) }, HAS(WRAP), 0, "w=ww", BMSK_WRAPS, 0 },
};

#define DOTS(op, need, extra) \
	{ op, { T(U32), T(U32) }, need, 0, "w=www", extra, 0 }, { op, { T(S32), T(U32) }, need, 0, "w=www", DP_A_SIGNED | (extra), 0 }, \
		{ op, { T(U32), T(S32) }, need, 0, "w=www", DP_B_SIGNED | (extra), 0 }, \
		{ op, { T(S32), T(S32) }, need, 0, "w=www", DP_A_SIGNED | DP_B_SIGNED | (extra), 0 }
static const struct rule dp4a_rules[] = { DOTS(OP_DP4A, 0, 0) };
static const struct rule dp2a_rules[] = { DOTS(OP_DP2A, HAS(LO), 0), DOTS(OP_DP2A, HAS(HI), DP_HI) };

#define LOGIC(op, sig1, sig16, sig32, sig64) \
	{ OP_##op##_PRED, { T(PRED) }, 0, 0, sig1, 0, 0 }, { OP_##op##_16, { T(B16) }, 0, 0, sig16, 0, 0 }, \
		{ OP_##op##_32, { T(B32) }, 0, 0, sig32, 0, 0 }, { OP_##op##_64, { T(B64) }, 0, 0, sig64, 0, 0 }
static const struct rule and_rules[] = { LOGIC(AND, "p=pp", "h=hh", "w=ww", "d=dd") };
static const struct rule or_rules[] = { LOGIC(OR, "p=pp", "h=hh", "w=ww", "d=dd") };
static const struct rule xor_rules[] = { LOGIC(XOR, "p=pp", "h=hh", "w=ww", "d=dd") };
static const struct rule not_rules[] = { LOGIC(NOT, "p=p", "h=h", "w=w", "d=d") };
static const struct rule cnot_rules[] = {
	{ OP_CNOT_16, { T(B16) }, 0, 0, "h=h", 0, 0 },
	{ OP_CNOT_32, { T(B32) }, 0, 0, "w=w", 0, 0 },
	{ OP_CNOT_64, { T(B64) }, 0, 0, "d=d", 0, 0 },
};
static const struct rule lop3_rules[] = {
	{ OP_LOP3, { T(B32) }, 0, 0, "w=wwwi", 0, 0 },
	{ OP_LOP3_AND, { T(B32) }, HAS(AND), 0, "wp=wwwip", 0, 0 },
	{ OP_LOP3_OR, { T(B32) }, HAS(OR), 0, "wp=wwwip", 0, 0 },
};
static const struct rule shl_rules[] = {
	{ OP_SHL_16, { T(B16) }, 0, 0, "h=hw", 0, 0 },
	{ OP_SHL_32, { T(B32) }, 0, 0, "w=ww", 0, 0 },
	{ OP_SHL_64, { T(B64) }, 0, 0, "d=dw", 0, 0 },
};
static const struct rule shr_rules[] = {
	INTS_BY_SIGN(SHR, 0, 0, "h=hw", "w=ww", "d=dw"),
	{ OP_SHR_U16, { T(B16) }, 0, 0, "h=hw", 0, 0 },
	{ OP_SHR_U32, { T(B32) }, 0, 0, "w=ww", 0, 0 },
	{ OP_SHR_U64, { T(B64) }, 0, 0, "d=dw", 0, 0 },
};
static const struct rule shf_rules[] = {
	{ OP_SHF_L_CLAMP, { T(B32) }, HAS(L) | HAS(CLAMP), 0, "w=www", 0, 0 },
	{ OP_SHF_L_WRAP, { T(B32) }, HAS(L) | HAS(WRAP), 0, "w=www", 0, 0 },
	{ OP_SHF_R_CLAMP, { T(B32) }, HAS(R) | HAS(CLAMP), 0, "w=www", 0, 0 },
	{ OP_SHF_R_WRAP, { T(B32) }, HAS(R) | HAS(WRAP), 0, "w=www", 0, 0 },
};
static const struct rule prmt_rules[] = {
	{ OP_PRMT, { T(B32) }, 0, 0, "w=www", 0, 0 },
	{ OP_PRMT_MODE, { T(B32) }, HAS(F4E), 0, "w=www", 0, PRMT_F4E },
	{ OP_PRMT_MODE, { T(B32) }, HAS(B4E), 0, "w=www", 0, PRMT_B4E },
	{ OP_PRMT_MODE, { T(B32) }, HAS(RC8), 0, "w=www", 0, PRMT_RC8 },
	{ OP_PRMT_MODE, { T(B32) }, HAS(ECL), 0, "w=www", 0, PRMT_ECL },
	{ OP_PRMT_MODE, { T(B32) }, HAS(ECR), 0, "w=www", 0, PRMT_ECR },
	{ OP_PRMT_MODE, { T(B32) }, HAS(RC16), 0, "w=www", 0, PRMT_RC16 },
};

static const struct rule selp_rules[] = {
	{ OP_SELP_16, { ANY_16 }, 0, 0, "h=hhp", 0, 0 }, { OP_SELP_32, { ANY_32 }, 0, 0, "w=wwp", 0, 0 },
	{ OP_SELP_64, { ANY_64 }, 0, 0, "d=ddp", 0, 0 }, { OP_SELP_32, { T(F32) }, 0, 0, "f=ffp", 0, 0 },
	{ OP_SELP_64, { T(F64) }, 0, 0, "g=ggp", 0, 0 },
};
#define SLCTS(selector, letter, may) \
	{ OP_SLCT_##selector##_16, { ANY_16, T(selector) }, 0, may, "h=hh" letter, 0, 0 }, \
		{ OP_SLCT_##selector##_32, { ANY_32, T(selector) }, 0, may, "w=ww" letter, 0, 0 }, \
		{ OP_SLCT_##selector##_64, { ANY_64, T(selector) }, 0, may, "d=dd" letter, 0, 0 }, \
		{ OP_SLCT_##selector##_32, { T(F32), T(selector) }, 0, may, "f=ff" letter, 0, 0 }, \
		{ OP_SLCT_##selector##_64, { T(F64), T(selector) }, 0, may, "g=gg" letter, 0, 0 }
static const struct rule slct_rules[] = { SLCTS(S32, "w", 0), SLCTS(F32, "f", HAS(FTZ)) };

static const struct rule copysign_rules[] = { { OP_COPYSIGN_F32, { T(F32) }, 0, 0, "f=ff", 0, 0 },
					      { OP_COPYSIGN_F64, { T(F64) }, 0, 0, "g=gg", 0, 0 } };
#define TESTPS(type, sig) \
	{ OP_TESTP_##type, { T(type) }, HAS(FINITE), 0, sig, 0, TEST_FINITE }, \
		{ OP_TESTP_##type, { T(type) }, HAS(INFINITE), 0, sig, 0, TEST_INFINITE }, \
		{ OP_TESTP_##type, { T(type) }, HAS(NUMBER), 0, sig, 0, TEST_NUMBER }, \
		{ OP_TESTP_##type, { T(type) }, HAS(NOTANUMBER), 0, sig, 0, TEST_NOTANUMBER }, \
		{ OP_TESTP_##type, { T(type) }, HAS(NORMAL), 0, sig, 0, TEST_NORMAL }, \
	{ \
		OP_TESTP_##type, { T(type) }, HAS(SUBNORMAL), 0, sig, 0, TEST_SUBNORMAL \
	}
static const struct rule testp_rules[] = { TESTPS(F32, "p=f"), TESTPS(F64, "p=g") };

static const struct rule rcp_rules[] = {
	{ OP_RCP_APPROX, { T(F32) }, HAS(APPROX), HAS(FTZ), "f=f", 0, 0 },
	{ OP_RCP_APPROX_F64, { T(F64) }, HAS(APPROX) | HAS(FTZ), 0, "g=g", 0, 0 },
	{ OP_RCP_F32, { T(F32) }, HAS(RN), 0, "f=f", 0, 0 },
	{ OP_RCP_F32_ANY, { T(F32) }, 0, ROUNDS | HAS(FTZ), "f=f", 0, 0 },
	{ OP_RCP_F64, { T(F64) }, HAS(RN), 0, "g=g", 0, 0 },
	{ OP_RCP_F64_ANY, { T(F64) }, 0, ROUNDS, "g=g", 0, 0 },
};
static const struct rule sqrt_rules[] = {
	{ OP_SQRT_APPROX, { T(F32) }, HAS(APPROX), HAS(FTZ), "f=f", 0, 0 },
	{ OP_SQRT_F32, { T(F32) }, HAS(RN), 0, "f=f", 0, 0 },
	{ OP_SQRT_F32_ANY, { T(F32) }, 0, ROUNDS | HAS(FTZ), "f=f", 0, 0 },
	{ OP_SQRT_F64, { T(F64) }, HAS(RN), 0, "g=g", 0, 0 },
	{ OP_SQRT_F64_ANY, { T(F64) }, 0, ROUNDS, "g=g", 0, 0 },
};
static const struct rule rsqrt_rules[] = {
	{ OP_RSQRT_APPROX, { T(F32) }, HAS(APPROX), HAS(FTZ), "f=f", 0, 0 },
	{ OP_RSQRT_APPROX_F64, { T(F64) }, HAS(APPROX) | HAS(FTZ), 0, "g=g", 0, 0 },
	{ OP_RSQRT_F64, { T(F64) }, HAS(APPROX), 0, "g=g", 0, 0 },
};
#define APPROX_RULE(op) { OP_##op, { T(F32) }, HAS(APPROX), HAS(FTZ), "f=f", 0, 0 }
static const struct rule sin_rules[] = { APPROX_RULE(SIN_APPROX) };
static const struct rule cos_rules[] = { APPROX_RULE(COS_APPROX) };
static const struct rule lg2_rules[] = { APPROX_RULE(LG2_APPROX) };
static const struct rule ex2_rules[] = { APPROX_RULE(EX2_APPROX), HALVES(EX2, HAS(APPROX), HAS(APPROX) | HAS(FTZ), "x=x", "y=y", "w=w") };
static const struct rule tanh_rules[] = { APPROX_RULE(TANH_APPROX), HALVES(TANH, HAS(APPROX), HAS(APPROX), "x=x", "y=y", "w=w") };

const struct rule_list gpul_min3_rules = RULE_LIST(min3_rules), gpul_max3_rules = RULE_LIST(max3_rules);

const struct rule_list gpul_alu_rules[GPUL_PTX_N_OPCODES] = {
	[GPUL_PTX_ADD] = RULE_LIST(add_rules),           [GPUL_PTX_SUB] = RULE_LIST(sub_rules),
	[GPUL_PTX_ADDC] = RULE_LIST(addc_rules),         [GPUL_PTX_SUBC] = RULE_LIST(subc_rules),
	[GPUL_PTX_MUL] = RULE_LIST(mul_rules),           [GPUL_PTX_MAD] = RULE_LIST(mad_rules),
	[GPUL_PTX_MADC] = RULE_LIST(madc_rules),         [GPUL_PTX_FMA] = RULE_LIST(fma_rules),
	[GPUL_PTX_MUL24] = RULE_LIST(mul24_rules),       [GPUL_PTX_MAD24] = RULE_LIST(mad24_rules),
	[GPUL_PTX_SAD] = RULE_LIST(sad_rules),           [GPUL_PTX_DIV] = RULE_LIST(div_rules),
	[GPUL_PTX_REM] = RULE_LIST(rem_rules),           [GPUL_PTX_ABS] = RULE_LIST(abs_rules),
	[GPUL_PTX_NEG] = RULE_LIST(neg_rules),           [GPUL_PTX_MIN] = RULE_LIST(min_rules),
	[GPUL_PTX_MAX] = RULE_LIST(max_rules),           [GPUL_PTX_POPC] = RULE_LIST(popc_rules),
	[GPUL_PTX_CLZ] = RULE_LIST(clz_rules),           [GPUL_PTX_BREV] = RULE_LIST(brev_rules),
	[GPUL_PTX_BFIND] = RULE_LIST(bfind_rules),       [GPUL_PTX_FNS] = RULE_LIST(fns_rules),
	[GPUL_PTX_BFE] = RULE_LIST(bfe_rules),           [GPUL_PTX_BFI] = RULE_LIST(bfi_rules),
	[GPUL_PTX_BMSK] = RULE_LIST(bmsk_rules),         [GPUL_PTX_SZEXT] = RULE_LIST(szext_rules),
	[GPUL_PTX_DP4A] = RULE_LIST(dp4a_rules),         [GPUL_PTX_DP2A] = RULE_LIST(dp2a_rules),
	[GPUL_PTX_AND] = RULE_LIST(and_rules),           [GPUL_PTX_OR] = RULE_LIST(or_rules),
	[GPUL_PTX_XOR] = RULE_LIST(xor_rules),           [GPUL_PTX_NOT] = RULE_LIST(not_rules),
	[GPUL_PTX_CNOT] = RULE_LIST(cnot_rules),         [GPUL_PTX_LOP3] = RULE_LIST(lop3_rules),
	[GPUL_PTX_SHL] = RULE_LIST(shl_rules),           [GPUL_PTX_SHR] = RULE_LIST(shr_rules),
	[GPUL_PTX_SHF] = RULE_LIST(shf_rules),           [GPUL_PTX_PRMT] = RULE_LIST(prmt_rules),
	[GPUL_PTX_SELP] = RULE_LIST(selp_rules),         [GPUL_PTX_SLCT] = RULE_LIST(slct_rules),
	[GPUL_PTX_COPYSIGN] = RULE_LIST(copysign_rules), [GPUL_PTX_TESTP] = RULE_LIST(testp_rules),
	[GPUL_PTX_RCP] = RULE_LIST(rcp_rules),           [GPUL_PTX_SQRT] = RULE_LIST(sqrt_rules),
	[GPUL_PTX_RSQRT] = RULE_LIST(rsqrt_rules),       [GPUL_PTX_SIN] = RULE_LIST(sin_rules),
	[GPUL_PTX_COS] = RULE_LIST(cos_rules),           [GPUL_PTX_LG2] = RULE_LIST(lg2_rules),
	[GPUL_PTX_EX2] = RULE_LIST(ex2_rules),           [GPUL_PTX_TANH] = RULE_LIST(tanh_rules),
};
