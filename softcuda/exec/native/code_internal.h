/* code_internal.h — an assembler for the few x86-64 instructions that compiled runs need.
 *
 * Vector instructions work on 512 bits and use the EVEX prefix; instructions on mask registers use VEX. Memory operands are a
 * base register plus a 32-bit displacement. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, 2.3
 * (VEX), 2.7 (EVEX), and the pages of the instructions. */
#ifndef GPULOAD_SOFTCUDA_EXEC_NATIVE_CODE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_NATIVE_CODE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The registers that a function may overwrite (System V ABI).  In the code of a run, RDI points to the warp, RSI to the run's first
 * instruction, and RAX, RCX and RDX to operand banks; the others are temporary. */
/* clang-format off */
enum gpr { RAX = 0, RCX = 1, RDX = 2, RSI = 6, RDI = 7, R8 = 8, R9 = 9, R10 = 10, R11 = 11 };
/* opcodes of the form `register op= register or memory` */
enum { ALU_ADD = 0x03, ALU_OR = 0x0b, ALU_AND = 0x23, ALU_SUB = 0x2b, ALU_XOR = 0x33, ALU_CMP = 0x3b };
enum { MAP_0F = 1, MAP_0F38 = 2, MAP_0F3A = 3 };
enum { NO_PREFIX, PREFIX_66, PREFIX_F3, PREFIX_F2 };
enum { NO_MASK = 0 };
enum { JUMP_IF_BELOW = 2, JUMP_IF_ABOVE = 7, JUMP_IF_NOT_ZERO = 5, JUMP_IF_ZERO = 4, JUMP = -1 };
/* clang-format on */

struct code {
	uint8_t *bytes;
	size_t n, room;
};

/* Make room for n more bytes of code; false: out of memory.  The functions below do not check that there is room. */
bool gpul_code_reserve(struct code *c, size_t n);

/* The encoding of a vector instruction.  wide is the bit EVEX.W, which usually means 64-bit elements. */
struct vector_op {
	uint8_t map, prefix, wide, opcode;
};

static inline void gpul_code_byte(struct code *c, unsigned byte)
{
	c->bytes[c->n++] = (uint8_t)byte;
}

/* Emit d = op(s1, s2) for the elements that mask register k selects (NO_MASK: all).  s1 is 0 if the instruction has one source.  Some
 * instructions encode their destination where others encode s2. */
void gpul_code_vector(struct code *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2, unsigned k);
/* Like gpul_code_vector(), with rounding `round` (0 nearest, 1 down, 2 up, 3 to zero) instead of the current mode. */
void gpul_code_rounded(struct code *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2, unsigned round);
/* Emit d = op(s1, memory at base + disp), or, if op is a store, a store of d at base + disp. */
void gpul_code_vector_memory(struct code *c, struct vector_op op, unsigned d, unsigned s1, enum gpr base, uint32_t disp, unsigned k);
/* Emit a gather: d[e] = memory at base + disp + index[e], for the elements e that mask register k selects; k becomes 0. */
void gpul_code_gather(struct code *c, struct vector_op op, unsigned d, enum gpr base, uint32_t disp, unsigned index, unsigned k);
/* Emit d = the first element of vector register s, which has 32 bits (wide: 64 bits). */
void gpul_code_first(struct code *c, enum gpr d, unsigned s, bool wide);
/* Emit code that sets all elements of vector register d to the 32-bit (wide: 64-bit) general register s. */
void gpul_code_broadcast(struct code *c, unsigned d, enum gpr s, bool wide);

/* Emit an instruction on mask registers, which Intel's manual writes as VEX.L[length].[prefix].[map].W0 [opcode]. */
void gpul_code_mask(struct code *c, unsigned map, unsigned prefix, unsigned length, unsigned opcode, unsigned reg, unsigned v, unsigned rm);

/* On 32 bits: emit k = s for a mask register k and a general register s; d = k for a general register d and a mask register k; and
 * k = s >> by for mask registers k and s. */
void gpul_code_mask_from(struct code *c, unsigned k, enum gpr s);
void gpul_code_mask_to(struct code *c, enum gpr d, unsigned k);
void gpul_code_mask_shift(struct code *c, unsigned k, unsigned s, unsigned by);

void gpul_code_load32(struct code *c, enum gpr d, enum gpr base, uint32_t disp);
void gpul_code_load64(struct code *c, enum gpr d, enum gpr base, uint32_t disp);
void gpul_code_store32(struct code *c, enum gpr s, enum gpr base, uint32_t disp);
void gpul_code_alu(struct code *c, unsigned op, enum gpr d, enum gpr s);
void gpul_code_alu64(struct code *c, unsigned op, enum gpr d, enum gpr s);
void gpul_code_alu_memory(struct code *c, unsigned op, enum gpr d, enum gpr base, uint32_t disp);
void gpul_code_alu64_memory(struct code *c, unsigned op, enum gpr d, enum gpr base, uint32_t disp);
void gpul_code_push(struct code *c, enum gpr s);
void gpul_code_pop(struct code *c, enum gpr d);
void gpul_code_not(struct code *c, enum gpr d);
/* Emit an instruction that sets the zero flag if the low byte of d & bits is 0. */
void gpul_code_test_byte(struct code *c, enum gpr d, unsigned bits);
void gpul_code_store_byte(struct code *c, enum gpr base, uint32_t disp, unsigned byte);
void gpul_code_compare_byte(struct code *c, enum gpr base, uint32_t disp, unsigned byte);
void gpul_code_set64(struct code *c, enum gpr d, uint64_t value);
void gpul_code_lea(struct code *c, enum gpr d, enum gpr base, uint32_t disp);

/* Emit an instruction that sets the zero flag if 32 bits of memory are all ones. */
void gpul_code_compare_all_ones(struct code *c, enum gpr base, uint32_t disp);
void gpul_code_vzeroupper(struct code *c);
void gpul_code_call(struct code *c, enum gpr function);
void gpul_code_go_to(struct code *c, enum gpr place);
void gpul_code_return(struct code *c);

/* Emit a forward jump, and return its position; gpul_code_jump_here() sets its target to the end of the code. */
size_t gpul_code_jump(struct code *c, int condition);
void gpul_code_jump_here(struct code *c, size_t jump);
/* Emit a jump back to a position in the code. */
void gpul_code_jump_to(struct code *c, int condition, size_t place);

#endif
