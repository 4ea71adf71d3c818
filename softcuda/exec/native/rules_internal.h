/* rules_internal.h — the rules for compiling instructions, and the functions that apply them. */
#ifndef GPULOAD_SOFTCUDA_EXEC_NATIVE_RULES_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_NATIVE_RULES_INTERNAL_H

#include "softcuda/exec/native/native_internal.h"
#include "softcuda/exec/exec_select_internal.h"

/* results for which the machine code falls back to the handler: none, NaN, an integer out of range */
enum check { NO_CHECK, CHECK_NAN, CHECK_RANGE };

struct rule;
typedef void compile_fn(struct run_compiler *c, const struct insn *i, const struct rule *r);

struct rule {
	compile_fn *compile; /* generates the code; NULL: the instruction is not compiled */
	uint8_t bytes;       /* size in bytes of an element of the destination, or, for comparisons, of the sources */
	uint8_t check;       /* a value of enum check */
	struct vector_op op, op2;
	uint8_t has_immediate, immediate; /* if has_immediate, the immediate operand of op, which is encoded as its last byte */
	uint64_t bits;                    /* a constant operand of op */
};

/* Encodings of opcodes.  PS, PD: packed floats and doubles; D, Q: 32-bit and 64-bit integers, in the opcode map 0F, 0F38 or 0F3A. */
#define PS(code)       { MAP_0F, NO_PREFIX, 0, code }
#define PD(code)       { MAP_0F, PREFIX_66, 1, code }
#define D0F(code)      { MAP_0F, PREFIX_66, 0, code }
#define D38(code)      { MAP_0F38, PREFIX_66, 0, code }
#define Q38(code)      { MAP_0F38, PREFIX_66, 1, code }
#define D3A(code)      { MAP_0F3A, PREFIX_66, 0, code }
#define Q3A(code)      { MAP_0F3A, PREFIX_66, 1, code }
#define F3(wide, code) { MAP_0F, PREFIX_F3, wide, code }
#define F2(wide, code) { MAP_0F, PREFIX_F2, wide, code }
#define F3_38(code)    { MAP_0F38, PREFIX_F3, 0, code }
#define CUT(code)      F3_38(code) /* vpmovqd and vpmovdw, which encode their destination in ModRM.rm */

/* ---- pieces.c ---- */

void gpul_native_vector(struct run_compiler *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2);
void gpul_native_vector_imm(struct run_compiler *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2, unsigned imm);
/* Emit k |= s, for mask registers. */
void gpul_native_mask_or(struct run_compiler *c, unsigned k, unsigned s);
/* Emit code that sets the zero flag if mask register K_TEMP is 0. */
void gpul_native_test_mask(struct run_compiler *c);
/* Emit code that sets all 32-bit (wide: 64-bit) elements of vector register d to `bits`; it overwrites R9. */
void gpul_native_set_all(struct run_compiler *c, unsigned d, uint64_t bits, bool wide);
/* Return a vector register whose lower half is half h of a value: its own register, or `temp` with a copy of an upper half. */
unsigned gpul_native_half(struct run_compiler *c, const uint8_t *parts, unsigned h, unsigned temp);
/* Emit code that narrows the elements of two vector registers with op, and stores all of them in d. */
void gpul_native_narrow_pair(struct run_compiler *c, struct vector_op op, unsigned d, unsigned low, unsigned high);
/* Emit code that checks the result (r->check), and stores it in the program's register d. */
void gpul_native_finish(struct run_compiler *c, const struct rule *r, opref d, struct value *result);

/* ---- arithmetic.c ---- */

compile_fn gpul_native_one, gpul_native_two, gpul_native_rounded; /* op(a); op(a, b); op(a, b) or a * b + c with a rounding mode */
compile_fn gpul_native_constant, gpul_native_constant_first;      /* op(a, bits); op(bits, a) */
compile_fn gpul_native_fused, gpul_native_multiply_add;           /* a * b + c; op2(op(a, b), c) */
compile_fn gpul_native_lop3, gpul_native_not, gpul_native_shift, gpul_native_funnel_left, gpul_native_funnel_right, gpul_native_saturate;
compile_fn gpul_native_upper_product, gpul_native_wide_product, gpul_native_wide_sum; /* mul.hi, mul.wide, mad.wide */

/* ---- moves.c ---- */

compile_fn gpul_native_widen, gpul_native_narrow; /* conversions to twice and to half the width */
compile_fn gpul_native_copy, gpul_native_choose, gpul_native_pack, gpul_native_unpack, gpul_native_permute, gpul_native_address;
/* ..._logic: operations on predicates */
compile_fn gpul_native_comparison, gpul_native_any_comparison, gpul_native_logic, gpul_native_logic_not;

#endif
