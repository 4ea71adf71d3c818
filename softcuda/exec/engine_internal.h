/* engine_internal.h — decoded instructions, operands, warps, and how a handler is written.
 *
 * The 32 lanes of a warp execute one decoded instruction at a time.  A register is an array with one element per lane, so that the C
 * function which executes an instruction (its handler) is one loop over the lanes, which the compiler turns into vector code:
 *
 *     16-bit register   uint16_t[32]    64 bytes      (8-bit types use 16-bit registers)
 *     32-bit register   uint32_t[32]   128 bytes
 *     64-bit register   uint64_t[32]   256 bytes
 *    128-bit register   uint64_t[2][32] 512 bytes     low words first
 *     predicate         uint32_t: bit n is lane n
 *
 * An operand is a 32-bit reference: the bank in bits 0-1, the byte offset (a multiple of 4) in the rest.
 *
 *     bank 0  the frame's registers        (per warp and call)
 *     bank 1  the program's constants      (immediates, broadcast to 32 lanes; never written)
 *     bank 2  the warp's special registers (%tid, %laneid ..., one value per lane), and the registers of module scope, which
 *             all functions of a thread share
 *     bank 3  scratch: 4 x 512 bytes that are written and never read: the destination of `_`
 *
 * Because immediates and special registers are arrays, too, a handler reads every kind of operand in the same way.
 *
 * The handlers (run/run_*.c) are compiled once per instruction set (baseline, and on x86-64 also v3 = AVX2+FMA+F16C and v4 =
 * AVX-512); GPUL_BUILD(name) makes the symbols distinct, and decode/tables.c selects the best build that the CPU supports.
 * `ops_*.h` list every operation once (X-macro): the enum and the tables of handlers are generated from these lists. */
#ifndef GPULOAD_SOFTCUDA_EXEC_ENGINE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_ENGINE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ptx/module.h"
#include "softcuda/exec/exec.h"
#include "softcuda/exec/ops_alu.h"
#include "softcuda/exec/ops_core.h"

#define LANES     32
#define ALL_LANES 0xffffffffu

typedef uint32_t opref;
enum { BANK_REGS, BANK_CONSTS, BANK_SPECIALS, BANK_SCRATCH, N_BANKS };
#define OPREF(bank, offset) ((opref)(offset) | (opref)(bank))

struct warp;
struct insn;
/* A handler: executes one instruction for the lanes of w->mask; returns the next instruction (normally i + 1). */
typedef const struct insn *op_fn(struct warp *w, const struct insn *i);

struct insn {
	op_fn *run;
	op_fn *inner; /* if `run` is the handler of OP_GUARD: the handler that it calls for the lanes whose predicate is true */
	opref d, d2;  /* destinations; d2: the second one, as q in p|q */
	opref a, b, c, e;
	union {
		int64_t imm;               /* address offset, bit pattern, lookup table: depends on op */
		const struct insn *target; /* branches: the instruction at the branch target */
		const void *object;        /* data of the instruction that do not fit here, such as a branch table: depends on op */
	};
	opref guard;  /* the predicate of a guard @p */
	uint32_t src; /* index of the PTX instruction in func->insts, for messages and tools */
	uint16_t op;
	uint8_t n;     /* number of vector elements, comparison ...: depends on op */
	uint8_t flags; /* depends on op */
};

/* The members of a warp that arithmetic handlers use.  This struct is the first member of struct warp_state (warp_internal.h). */
struct warp {
	uint32_t mask; /* active mask: lanes that execute this instruction; never 0 in a handler */
	uint32_t live; /* lanes that have not exited */
	uint8_t *bank[N_BANKS];
	uint32_t cc; /* carry flags of add.cc, addc ...: bit n belongs to lane n */
};

/* Return the array of an operand's lanes; macros give it a type: U32(w, i->a)[lane].  Registers are 64-byte aligned. */
static inline void *opptr(const struct warp *w, opref r)
{
	return w->bank[r & 3] + (r & ~3u);
}
#define U16(w, r)  ((uint16_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define U32(w, r)  ((uint32_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define U64(w, r)  ((uint64_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define S16(w, r)  ((int16_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define S32(w, r)  ((int32_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define S64(w, r)  ((int64_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define F32(w, r)  ((float *)__builtin_assume_aligned(opptr(w, r), 64))
#define F64(w, r)  ((double *)__builtin_assume_aligned(opptr(w, r), 64))
#define PRED(w, r) ((uint32_t *)opptr(w, r)) /* a predicate is one 32-bit word: bit n is lane n */

/* Tell the compiler to vectorise the next loop.  Iterations are independent: lane l of the result depends only on lane l of the
 * sources, even if the destination is the register of a source. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* no warning for loops that cannot be vectorised, such as 64-bit division */
#define VECTORISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define VECTORISE _Pragma("GCC ivdep")
#endif

/* dst[l] = value for the active lanes l; inactive lanes keep their value.  `value` may use l, and may read dst[l].  Sources must be
 * pointer variables of the caller: opptr() in `value` would be evaluated for each lane, because stores to dst may change *w. */
#define SET_LANES(w, dst, value) \
	do { \
		__typeof__(&(dst)[0]) const to_ = (dst); \
		if ((w)->mask == ALL_LANES) { \
			VECTORISE \
			for (unsigned l = 0; l < LANES; l++) \
				to_[l] = (value); \
		} else { \
			const uint32_t mask_ = (w)->mask; \
			VECTORISE \
			for (unsigned l = 0; l < LANES; l++) \
				to_[l] = (mask_ & (1u << l)) ? (value) : to_[l]; \
		} \
	} while (0)

/* Set the bits of the active lanes in predicate d to those of `bits`; the bits of inactive lanes do not change. */
static inline void set_predicate(const struct warp *w, opref d, uint32_t bits)
{
	uint32_t *p = PRED(w, d);
	*p = (*p & ~w->mask) | (bits & w->mask);
}

/* A vector operand such as {a, b} in `mov.b64 {a, b}, x` is one reference to an array of references. */
#define OPLIST(w, r) ((const opref *)opptr(w, r))

/* Every operation: first control flow, memory and warp operations (ops_core.h), then arithmetic (ops_alu.h). */
enum op {
#define X(name) OP_##name,
	GPUL_CORE_OPS(X) OP_N_CORE,
	OP_ALU_FIRST = OP_N_CORE,
	OP_ALU_BEFORE_FIRST_ = OP_ALU_FIRST - 1,
	GPUL_ALU_OPS(X)
#undef X
		N_OPS
};

/* The operation of an arithmetic instruction and the types of its operands: the result of gpul_select_alu(), from which
 * decode/decode.c turns the operands into references.
 *
 * Operands are in the order of the PTX instruction: the destination (unless d_type is 0; in a pair p|q, q becomes d2), then n_sources
 * sources, which become a, b, c, e.  gpul_select_alu() encodes the other operands, and the sources whose bit in `skip` is set (such as the
 * table of lop3), in imm, n or flags.  A handler can rely on the following, because decode.c inserts copies where they are needed:
 *   - each operand has the width of its type: where narrow_ok allows a wider register, a source is
 *     truncated to the type before the operation, and a destination is sign- or zero-extended (by d_type) after it;
 *   - a negated predicate source (!p) is already negated; an immediate is broadcast to 32 lanes and
 *     converted to the type (0 or 1 for PRED); a special register has the width of the type;
 *   - an operand in braces is an OPLIST of references to registers of the type, and the instruction's n is its length. */
enum { MAX_SOURCES = 4 };
struct selection {
	uint16_t op; /* a value of enum op */
	uint8_t n_sources;
	/* types of the destinations: gpul_ptx_mod; PRED for predicates; 0: no such destination */
	uint16_t d_type, d2_type;
	uint16_t source_type[MAX_SOURCES]; /* the type of each source; immediates are converted to it */
	int64_t imm;                       /* copied to struct insn */
	uint8_t n, flags;                  /* copied to struct insn */
	uint8_t skip;                      /* bit k: source k of the instruction is not an operand of the handler */
	bool narrow_ok;                    /* a register operand may be wider than its type (cvt, ld, st) */
};

/* decode/decode_select.c: select the operation of an arithmetic instruction.  Returns false if no operation has these types and
 * modifiers; `why` receives the reason.  The caller zeroes *out. */
bool gpul_select_alu(const gpul_ptx_module *m, const gpul_ptx_func *f, const gpul_ptx_inst *in, struct selection *out, char *why,
		     size_t why_bytes);

/* The handlers for one instruction set: core[op] for op < OP_N_CORE, alu[op - OP_ALU_FIRST] for arithmetic. */
#define GPUL_TABLES(build) \
	extern op_fn *const gpul_core_table_##build[OP_N_CORE]; \
	extern op_fn *const gpul_alu_table_##build[N_OPS - OP_ALU_FIRST];
GPUL_TABLES(base)
#if defined(__x86_64__)
GPUL_TABLES(v3)
GPUL_TABLES(v4)
#endif

#ifndef GPUL_BUILD_SUFFIX
#define GPUL_BUILD_SUFFIX base
#endif
#define GPUL_CAT2_(a, b) a##_##b
#define GPUL_CAT_(a, b)  GPUL_CAT2_(a, b)
#define GPUL_BUILD(name) GPUL_CAT_(name, GPUL_BUILD_SUFFIX)

#endif
