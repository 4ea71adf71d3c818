/* form_internal.h — the form of an arithmetic instruction (its types and modifiers) and the rules that select its operation. */
#ifndef GPULOAD_SOFTCUDA_EXEC_DECODE_FORM_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_DECODE_FORM_INTERNAL_H

#include "softcuda/exec/engine_internal.h"
#include "softcuda/exec/exec_select_internal.h"

/* Modifiers that are not types.  Each has a bit in form.set. */
/* clang-format off */
#define FORM_BITS(X) \
	X(RN) X(RZ) X(RM) X(RP) X(RNA) X(RNI) X(RZI) X(RMI) X(RPI) X(FTZ) X(SAT) X(SATFINITE) X(RELU) \
	X(NAN) X(XORSIGN) X(ABS) X(APPROX) X(FULL) X(WIDE) X(LO) X(HI) X(CC) X(SHIFTAMT) X(CLAMP) X(WRAP) \
	X(L) X(R) X(F4E) X(B4E) X(RC8) X(ECL) X(ECR) X(RC16) X(FINITE) X(INFINITE) X(NUMBER) X(NOTANUMBER) \
	X(NORMAL) X(SUBNORMAL) X(AND) X(OR) X(XOR) X(ADD) X(MIN) X(MAX) X(SHR7) X(SHR15) X(PO) X(PACK) \
	X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE) X(LS) X(HS) X(EQU) X(NEU) X(LTU) X(LEU) X(GTU) X(GEU) X(NUM)
enum form_bit {
#define X(name) FORM_BIT_##name,
	FORM_BITS(X)
#undef X
	N_FORM_BITS
};
/* clang-format on */
_Static_assert(N_FORM_BITS <= 64, "form.set has 64 bits");
/* clang-format off */
#define FORM_BIT_OOB FORM_BIT_PO  /* .oob and .po share a bit: .oob is only for fma, .po only for vmad */
/* clang-format on */
#define HAS(name) ((uint64_t)1 << FORM_BIT_##name)

enum { MAX_FORM_TYPES = 3 };
struct form {
	uint64_t set;                  /* modifiers that are not types: HAS(...) | HAS(...) */
	uint16_t type[MAX_FORM_TYPES]; /* type modifiers, in the order of the PTX text */
	uint8_t n_types;
	uint8_t part_bits; /* width in bits of .u4, .s4, .u2, .s2, the narrow types of cvt.pack; 0: no such type */
	bool part_signed;
	const gpul_ptx_module *module;
	const gpul_ptx_func *func;
	const gpul_ptx_inst *inst;
	const gpul_ptx_operand *operands;
	char *why;
	size_t why_bytes;
};

/* Types that occur only in rules: each matches several PTX types of one width. */
enum {
	ANY_16 = 0x4000,
	ANY_32,
	ANY_64, /* .b64, .u64 or .s64 */
	INT_16,
	INT_32,
	INT_64, /* .u64 or .s64 */
};

/* A rule: an instruction with these types and modifiers is executed by operation op.
 *
 * signature  one letter per operand, destinations left of '=': h w d q for 16, 32, 64, 128 bits; x y f g for f16, bf16, f32, f64
 *            (immediates are converted to that type); p for a predicate; i for an integer constant, which is stored in imm.
 *            A second destination is the q of p|q. */
struct rule {
	uint16_t op;
	uint16_t type[MAX_FORM_TYPES];
	uint64_t need, may; /* required modifiers; optional modifiers: HAS(...) | HAS(...) */
	const char *signature;
	uint8_t flags, n; /* flags: ORed into insn->flags, together with the bits for rounding, .ftz, .sat ... */
};
struct rule_list {
	const struct rule *rules;
	unsigned n_rules;
};
#define RULE_LIST(table) { table, sizeof(table) / sizeof(table[0]) }

/* select_rules.c: the rules of an opcode; n_rules 0: the opcode has no rules. */
extern const struct rule_list gpul_alu_rules[GPUL_PTX_N_OPCODES];
extern const struct rule_list gpul_min3_rules, gpul_max3_rules; /* min and max with three sources */

/* form.c.  Store the reason in form->why and return false. */
bool gpul_form_refuse(const struct form *form, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Select the operation of the first rule that matches. */
bool gpul_form_match(const struct form *form, const struct rule_list *list, struct selection *out);
/* Set the operand types in *out from a rule's signature; false: the instruction has a different number of operands. */
bool gpul_form_operands(const struct form *form, const char *signature, struct selection *out);
/* Return the comparison that the modifiers name, CMP_...; -1: none of them is a comparison. */
int gpul_form_compare(const struct form *form, bool is_unsigned);
/* Return the letter of a PTX type in a signature; 0: registers cannot have this type. */
char gpul_form_letter(unsigned type);

bool gpul_select_mov(const struct form *form, struct selection *out); /* select_move.c */
bool gpul_select_compare(const struct form *form, struct selection *out);
bool gpul_select_cvt(const struct form *form, struct selection *out);   /* select_convert.c */
bool gpul_select_video(const struct form *form, struct selection *out); /* select_video.c */

#endif
