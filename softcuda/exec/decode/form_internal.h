/* form_internal.h — an arithmetic instruction's modifiers, sorted, and the rules that they are matched with. */
#ifndef GPULOAD_SOFTCUDA_EXEC_DECODE_FORM_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_DECODE_FORM_INTERNAL_H

#include "softcuda/exec/engine_internal.h"
#include "softcuda/exec/select_internal.h"

/* Modifiers that are neither a type nor a comparison: each is a bit of form.set. */
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
_Static_assert(N_FORM_BITS <= 64, "form.set is one word");
#define HAS(name) ((uint64_t)1 << FORM_BIT_##name)

enum { MAX_FORM_TYPES = 3 };
struct form {
	uint64_t set;                      /* HAS(...) */
	uint16_t type[MAX_FORM_TYPES];     /* in the order written */
	uint8_t n_types;
	const gpul_ptx_module *module;
	const gpul_ptx_func *func;
	const gpul_ptx_inst *inst;
	const gpul_ptx_operand *operands;  /* of inst */
	char *why;
	size_t why_bytes;
};

/* Types that a rule may name beside the ISA's: any of the width. */
enum {
	ANY_16 = 0x4000, ANY_32, ANY_64,   /* b, u, s */
	INT_16, INT_32, INT_64,            /* u, s */
};

/* One form of a root: when types and modifiers fit, this is the operation.
 *
 * signature  one letter an operand, destinations left of '=': h w d q 16, 32, 64, 128 bits; x y f g f16, bf16,
 *            f32, f64 (an immediate is converted to it); p predicate; a second destination is the q of p|q.
 *            A list {a, b} of n parts is n times its letter in parentheses.  'i': an integer that goes to imm. */
struct rule {
	uint16_t op;
	uint16_t type[MAX_FORM_TYPES];
	uint64_t need, may;
	const char *signature;
	uint8_t flags, n;                  /* flags are added to those of rounding, .ftz, .sat ... */
};
struct rule_list {
	const struct rule *rules;
	unsigned n_rules;
};
#define RULE_LIST(table) { table, sizeof(table) / sizeof(table[0]) }

/* select_rules.c: the rules of a root; n_rules 0: it has none. */
extern const struct rule_list gpul_alu_rules[GPUL_PTX_N_OPCODES];
extern const struct rule_list gpul_min3_rules, gpul_max3_rules;  /* min and max of three */

/* False, with why. */
bool gpul_form_refuse(const struct form *form, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first rule of the list that fits decides. */
bool gpul_form_match(const struct form *form, const struct rule_list *list, struct selection *out);
/* Types of the operands by signature; false: their number does not fit. */
bool gpul_form_operands(const struct form *form, const char *signature, struct selection *out);
/* The comparison that is set, CMP_...; -1: none. */
int gpul_form_compare(const struct form *form, bool is_unsigned);
/* Letter of a signature for a type; 0: not a register type. */
char gpul_form_letter(unsigned type);

bool gpul_select_mov(const struct form *form, struct selection *out);      /* select_move.c */
bool gpul_select_compare(const struct form *form, struct selection *out);
bool gpul_select_cvt(const struct form *form, struct selection *out);      /* select_convert.c */
bool gpul_select_video(const struct form *form, struct selection *out);    /* select_video.c */

#endif
