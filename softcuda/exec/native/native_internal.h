/* native_internal.h — runs of arithmetic instructions, compiled to AVX-512 code.
 *
 * A run is a sequence of decoded instructions (called rows, because they are elements of an array) without control flow and warp
 * operations, and without branch targets except its first instruction. The machine code of a run replaces the handler of its first
 * instruction: it executes all instructions of the run, and returns the instruction after the run.
 *
 *     row   instruction              insn->run
 *     10    mad.lo.s32 %r5, ...      machine code of rows 10 to 12  ── returns row 13
 *     11    cvt.rn.f32 %f1, %r5      its handler: called only if the machine code falls back to it
 *     12    add.f32    %f2, ...      its handler
 *     13    bra ...                  its handler
 *
 * The code keeps values in vector registers, two for 32 lanes of 32 bits, and stores every result in the frame, as handlers do. So
 * for any row it can call the handler instead: always, or only in rare cases, such as a NaN or an access outside the memory range
 * that was accessed last. */
#ifndef GPULOAD_SOFTCUDA_EXEC_NATIVE_NATIVE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_NATIVE_NATIVE_INTERNAL_H

#include "softcuda/exec/native/code_internal.h"
#include "softcuda/exec/program_internal.h"

enum {
	MAX_PARTS = 4, /* maximum number of vector registers per value: 2 for 32-bit elements, 4 for 64-bit */
	N_POOL = 28,   /* vector registers 0 to 27 hold values between instructions */
	TEMP = 28,     /* TEMP to TEMP + 3 are temporary, for the code of one instruction */
	MAX_VALUES = 16,
	MAX_JUMPS = 12, /* maximum number of jumps to the handler in the code of one instruction */
};

/* Mask registers.  If not all lanes are active, LANES_n holds the active mask, shifted so that lane n is bit 0.  Vectors of 16 lanes
 * need LANES_0 and LANES_16; vectors of 8 lanes need all four.  K_TEMP... are temporary. */
enum { LANES_0 = 1, LANES_16, LANES_8, LANES_24, K_TEMP, K_TEMP2, K_TEMP3 };

/* A value in vector registers: the contents of the program's register or constant `ref`, read as elements of `bytes` bytes. */
struct value {
	opref ref;
	uint8_t bytes;   /* 2, 4 or 8; 0: this entry of the table is free */
	uint8_t n_parts; /* number of vector registers in part[]: 1 for a constant */
	uint8_t part[MAX_PARTS];
	uint32_t used; /* index of the last instruction that used the value */
};

/* An instruction whose handler the machine code calls, always or if a jump is taken.  `values` are reloaded after the call. */
struct slow_row {
	size_t jump[MAX_JUMPS];
	unsigned n_jumps;
	uint32_t row;
	size_t resume; /* offset in the code at which execution continues after the handler */
	struct value values[MAX_VALUES];
};

struct run_compiler {
	struct code code;
	const struct gpul_exec_program *program;
	const struct insn *rows;
	uint32_t row;          /* index of the instruction being compiled */
	bool partial;          /* this version of the code is for warps with inactive lanes */
	bool ends_with_branch; /* a branch follows the run, so that the code ends with a jump to its handler */
	struct value values[MAX_VALUES];
	uint32_t free;        /* bit k: vector register k is free */
	struct slow_row slow; /* for the instruction being compiled: jumps to the code that calls its handler */
	struct slow_row *slow_rows;
	uint32_t n_slow_rows, room;
};

/* ---- values.c: which value is in which register ---- */

void gpul_values_forget(struct run_compiler *c);
/* Return the vector registers of a source; they are valid at least until the next instruction. */
const uint8_t *gpul_values_source(struct run_compiler *c, opref ref, unsigned bytes);
/* Allocate vector registers for a result. */
struct value gpul_values_result(struct run_compiler *c, unsigned bytes);
/* Free the vector registers of a result without storing it. */
void gpul_values_drop(struct run_compiler *c, struct value *result);
/* Emit code that stores the result in the program's register `ref`.  Later instructions find it in its vector registers. */
void gpul_values_store(struct run_compiler *c, opref ref, struct value *result);

/* Return the mask register of the active lanes in vector register k of a value (8 or 16 lanes); NO_MASK if all lanes are active. */
unsigned gpul_native_active(const struct run_compiler *c, bool of_eight, unsigned k);
/* The first emits code that loads predicate `ref` into R9; the second, code that combines R9 with the predicate by opcode `op`. */
void gpul_native_load_predicate(struct run_compiler *c, opref ref);
void gpul_native_combine_predicate(struct run_compiler *c, unsigned op, opref ref);
/* Emit code that stores the bits of R9 in the active lanes of predicate `ref`.  The code overwrites R9 and R10. */
void gpul_native_store_predicate(struct run_compiler *c, opref ref);
/* Emit code that loads the values of this table from the frame into their vector registers. */
void gpul_values_reload(struct run_compiler *c, const struct value *values);
/* Return the general register that holds the address of an operand's bank. */
enum gpr gpul_native_bank(opref ref);
/* Emit a conditional jump to a call of the instruction's handler.  The jump must precede all stores of the instruction. */
void gpul_native_give_up(struct run_compiler *c, int condition);

/* ---- rules.c: arithmetic; native_memory.c: loads and stores ---- */

bool gpul_native_computes(const struct insn *i);
void gpul_native_compute(struct run_compiler *c, const struct insn *i);
bool gpul_native_accesses(const struct insn *i);
void gpul_native_access(struct run_compiler *c, const struct insn *i);

/* ---- run.c ---- */

/* Return how much time compiling this instruction saves, in arbitrary units; 0: it is not compiled, and its handler executes it. */
unsigned gpul_native_weight(const struct insn *i);
/* Append the code of a run of n instructions; false: out of memory. */
bool gpul_native_run(struct run_compiler *c, const struct insn *rows, uint32_t n);

/* ---- native.c ---- */

/* Compile the kernel and the functions that it calls, if that is worthwhile.  Any thread may call it, before n_warps more warps run. */
void gpul_native_prepare(const struct func_code *kernel, uint64_t n_warps);
/* Free the code of all functions of the program. */
void gpul_native_free(struct gpul_exec_program *p);

#endif
