/* exec_select_internal.h — the values of insn->flags, n and imm that decoding (decode/select) sets for arithmetic handlers. */
#ifndef GPULOAD_SOFTCUDA_EXEC_EXEC_SELECT_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_EXEC_SELECT_INTERNAL_H

#include "softcuda/exec/engine_internal.h"

/* insn->flags of floating-point operations: the instruction's modifiers. */
enum {
	ROUND_MASK = 3,
	ROUND_RN = 0,
	ROUND_RZ,
	ROUND_RM,
	ROUND_RP,
	FLAG_FTZ = 4,
	FLAG_SAT = 8,
	FLAG_RELU = 16,
	FLAG_NAN = 32,     /* min.NaN, max.NaN: the result is NaN if an operand is NaN */
	FLAG_XORSIGN = 64, /* min, max: .xorsign.abs */
};
/* insn->flags of integer operations. */
enum { CARRY_IN = 1, CARRY_OUT = 2 };
enum { BFIND_SHIFTAMT = 1 };
enum { BMSK_WRAPS = 1 };
enum { DP_A_SIGNED = 1, DP_B_SIGNED = 2, DP_HI = 4 };

/* Comparisons: insn->n of setp and set.  A U at the end means "or unordered".  lo, ls, hi, hs become LT, LE, GT, GE of an unsigned type. */
/* clang-format off */
enum compare {
	CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE,
	CMP_EQU, CMP_NEU, CMP_LTU, CMP_LEU, CMP_GTU, CMP_GEU, CMP_NUM, CMP_NAN,
};
/* clang-format on */

/* insn->flags of the comparisons: how the result is combined with predicate c, and the type that is compared. */
enum {
	COMBINE_MASK = 3,
	COMBINE_NONE = 0,
	COMBINE_AND,
	COMBINE_OR,
	COMBINE_XOR,
	/* 4 is FLAG_FTZ, which is in the same flags */
	COMPARE_SIGNED = 8,
	COMPARE_FLOAT = 16,
	SET_FLOAT = 32,     /* set: the value for true is 1.0 instead of all ones */
	COMPARE_HAS_Q = 64, /* setp p|q: d2 is the second destination */
	SET_BF16 = 128,     /* set.bf16: 1.0 is 0x3f80, not 0x3f800000 or 0x3c00 */
};

/* Values of insn->n for prmt. */
/* clang-format off */
enum prmt_mode { PRMT_F4E = 1, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16 };
/* Values of insn->n for testp. */
enum test_property {
	TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NOTANUMBER, TEST_NORMAL, TEST_SUBNORMAL,
};
/* clang-format on */

/* ---- cvt: insn->imm holds this struct ------------------------------------------------------ */

/* clang-format off */
enum convert_kind {
	KIND_U8, KIND_S8, KIND_U16, KIND_S16, KIND_U32, KIND_S32, KIND_U64, KIND_S64,
	KIND_F16, KIND_BF16, KIND_TF32, KIND_F32, KIND_F64, KIND_E4M3, KIND_E5M2,
};
enum convert_round {
	CONVERT_RN, CONVERT_RZ, CONVERT_RM, CONVERT_RP, CONVERT_RNA,
	CONVERT_RNI, CONVERT_RZI, CONVERT_RMI, CONVERT_RPI,
};
/* clang-format on */
struct conversion {
	uint8_t to, from; /* values of enum convert_kind */
	uint8_t round;    /* a value of enum convert_round */
	bool sat, ftz, relu, satfinite;
	uint8_t spare;
};
_Static_assert(sizeof(struct conversion) == sizeof(int64_t), "must fit in insn->imm");

/* ---- video: insn->imm holds this struct ---------------------------------------------------- */

/* clang-format off */
enum video_op { VIDEO_ADD, VIDEO_SUB, VIDEO_ABSDIFF, VIDEO_MIN, VIDEO_MAX, VIDEO_SHL, VIDEO_SHR,
		VIDEO_MAD, VIDEO_SET, VIDEO_AVRG };
enum video_second { VIDEO_PLAIN, VIDEO_2ND_ADD, VIDEO_2ND_MIN, VIDEO_2ND_MAX, VIDEO_MERGE };
struct video {                         /* data of VIDEO, which has one result */
	uint8_t op, second;
	uint8_t a_selector, b_selector, d_selector;
	uint8_t compare;               /* vset: a value of enum compare */
	uint8_t shift;                 /* vmad: 7 for .shr7, 15 for .shr15 */
	uint8_t flags;
};
struct video_simd {                    /* data of VIDEO_SIMD, which computes insn->n results: 2 or 4 */
	uint8_t op, second;            /* VIDEO_2ND_ADD or VIDEO_MERGE */
	uint8_t parts;                 /* bit k: part k of d is written */
	uint8_t compare, flags;
	uint8_t picks[3]; /* 24 bits, 3 for each part of a, then of b: 0-3 select a part of a, 4-7 one of b */
};
enum {
	VIDEO_D_SIGNED = 1, VIDEO_A_SIGNED = 2, VIDEO_B_SIGNED = 4, VIDEO_SAT = 8,
	VIDEO_WRAP = 16,               /* vshl vshr: the amount is taken modulo 32 */
	VIDEO_NEG_PRODUCT = 16, VIDEO_NEG_C = 32, VIDEO_PLUS_ONE = 64,  /* flags of vmad */
};
/* clang-format on */
_Static_assert(sizeof(struct video) == sizeof(int64_t), "must fit in insn->imm");
_Static_assert(sizeof(struct video_simd) == sizeof(int64_t), "must fit in insn->imm");

#endif
