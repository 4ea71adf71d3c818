/* native_internal.h — runs of arithmetic instructions, compiled to AVX-512 code.
 *
 * A run is a sequence of decoded instructions (rows of insns) without control flow and warp operations, and without branch
 * targets except its start. Its code replaces the handler of its first instruction: it executes all of them and returns the
 * instruction after them.
 *
 *     row   instruction              handler
 *     10    mad.lo.s32 %r5, ...      code of rows 10 to 12  ── returns row 13
 *     11    cvt.rn.f32 %f1, %r5      its own: only if the code gives up at row 11
 *     12    add.f32    %f2, ...      its own
 *     13    ld.global  %f3, ...      its own
 *
 * The code keeps values in vector registers, two for 32 lanes of 32 bits, and stores every result in the frame, as handlers do.
 * So it can leave any row to its handler, always or only in rare cases such as a NaN or an access outside the memory range that
 * was accessed last. */
#ifndef GPULOAD_SOFTCUDA_EXEC_NATIVE_NATIVE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_NATIVE_NATIVE_INTERNAL_H

#include "softcuda/exec/native/code_internal.h"
#include "softcuda/exec/program_internal.h"

enum {
	MAX_PARTS = 4, /* vector registers per value: 2 for 32 bits, 4 for 64 */
	N_POOL = 28,   /* vector registers 0 to 27 hold values */
	TEMP = 28,     /* the other four, TEMP to TEMP + 3, are free for use within a row */
	MAX_VALUES = 16,
	MAX_JUMPS = 12, /* maximum number of jumps from one row to its handler */
};

/* Mask registers with the run's active lanes if not all are active: for 16 lanes LANES_0, LANES_16; for 8 lanes also LANES_8,
 * LANES_24. */
enum { LANES_0 = 1, LANES_16, LANES_8, LANES_24, K_TEMP, K_TEMP2, K_TEMP3 };

/* A value in vector registers: the program's register or constant `ref`, read with this width. */
struct value {
	opref ref;
	uint8_t bytes;   /* bytes of an element: 2, 4 or 8; 0: this table entry is free */
	uint8_t n_parts; /* number of distinct registers: 1 for a constant */
	uint8_t part[MAX_PARTS];
	uint32_t used; /* the last row that used the value */
};

/* A row executed by its handler: always, or if one of its jumps is taken.  Afterwards the values are reloaded into their registers. */
struct slow_row {
	size_t jump[MAX_JUMPS];
	unsigned n_jumps;
	uint32_t row;
	size_t resume; /* position in the code after the row */
	struct value values[MAX_VALUES];
};

struct run_compiler {
	struct code code;
	const struct gpul_exec_program *program;
	const struct insn *rows;
	uint32_t row;          /* the row being compiled */
	bool partial;          /* this code is for runs with inactive lanes */
	bool ends_with_branch; /* the row after the run is a branch, which is called instead of returned */
	struct value values[MAX_VALUES];
	uint32_t free;        /* bit k: vector register k is free */
	struct slow_row slow; /* the row being compiled, if it has jumps to its handler */
	struct slow_row *slow_rows;
	uint32_t n_slow_rows, room;
};

/* ---- values.c: which value is in which register ---- */

void gpul_values_forget(struct run_compiler *c);
/* Return the registers of a source; they stay valid at least until the next row. */
const uint8_t *gpul_values_source(struct run_compiler *c, opref ref, unsigned bytes);
/* Registers for a result. */
struct value gpul_values_result(struct run_compiler *c, unsigned bytes);
/* Free a result that is no longer needed. */
void gpul_values_drop(struct run_compiler *c, struct value *result);
/* Store the result in the program's register ref, and remember its vector registers. */
void gpul_values_store(struct run_compiler *c, opref ref, struct value *result);

/* Return the mask register with the active lanes of part k, of 8 or 16 lanes; NO_MASK if all lanes are active. */
unsigned gpul_native_active(const struct run_compiler *c, bool of_eight, unsigned k);
/* Load predicate ref into R9; or combine R9 with it by an operation. */
void gpul_native_load_predicate(struct run_compiler *c, opref ref);
void gpul_native_combine_predicate(struct run_compiler *c, unsigned op, opref ref);
/* Write R9, a predicate of 32 lanes, to the active lanes of predicate ref; overwrites R9 and R10. */
void gpul_native_store_predicate(struct run_compiler *c, opref ref);
/* Load the values of this table into their registers. */
void gpul_values_reload(struct run_compiler *c, const struct value *values);
/* Return the register of the base of an operand's bank. */
enum gpr gpul_native_bank(opref ref);
/* If the condition holds, let the handler execute this row.  Must come before the row stores anything. */
void gpul_native_give_up(struct run_compiler *c, int condition);

/* ---- rules.c: arithmetic; native_memory.c: loads and stores ---- */

bool gpul_native_computes(const struct insn *i);
void gpul_native_compute(struct run_compiler *c, const struct insn *i);
bool gpul_native_accesses(const struct insn *i);
void gpul_native_access(struct run_compiler *c, const struct insn *i);

/* ---- run.c ---- */

/* How much a run gains from this row; 0 if its handler executes it. */
unsigned gpul_native_weight(const struct insn *i);
/* Append the code of a run of n rows; false: out of memory. */
bool gpul_native_run(struct run_compiler *c, const struct insn *rows, uint32_t n);

/* ---- native.c ---- */

/* Call before n_warps warps execute the kernel: compiles it and the functions that it calls once that is worthwhile.  Any thread. */
void gpul_native_prepare(const struct func_code *kernel, uint64_t n_warps);
/* Free the code of all functions of the program. */
void gpul_native_free(struct gpul_exec_program *p);

#endif
