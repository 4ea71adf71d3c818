/* engine_internal.h — the machine inside: decoded instructions, warps, and how a handler is written.
 *
 * A warp's 32 lanes run one decoded instruction at a time.  A register is 32 lanes side by side,
 * so that a handler is one loop that the compiler turns into vector code:
 *
 *     16-bit register   uint16_t[32]    64 bytes      (8-bit types live in 16-bit registers)
 *     32-bit register   uint32_t[32]   128 bytes
 *     64-bit register   uint64_t[32]   256 bytes
 *    128-bit register   uint64_t[2][32] 512 bytes     low words first
 *     predicate         uint32_t: bit n is lane n
 *
 * An operand is a 32-bit reference: the bank in bits 0-1, the byte offset (a multiple of 4) in the rest.
 *
 *     bank 0  the frame's registers        (per warp and call)
 *     bank 1  the program's constants      (immediates, spread over 32 lanes; never written)
 *     bank 2  the warp's special registers (%tid, %laneid ..., spread over 32 lanes)
 *     bank 3  scratch: 4 x 512 bytes whose contents nobody reads; the destination of `_`
 *
 * So no handler asks what kind of operand it has.
 *
 * The handler files (run_*.c) are compiled once for each build of the instruction set (baseline,
 * and on x86-64 also v3 = AVX2+FMA+F16C and v4 = AVX-512); GPUL_BUILD(name) gives each its own
 * symbol, and the table of the best one is chosen when the machine starts.  `ops_*.h` list every
 * operation once (X-macro): the enum, the tables and the trace names come from there. */
#ifndef GPULOAD_SOFTCUDA_EXEC_ENGINE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_ENGINE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ptx/module.h"
#include "softcuda/exec/exec.h"
#include "softcuda/exec/ops_alu.h"
#include "softcuda/exec/ops_core.h"

#define LANES 32
#define ALL_LANES 0xffffffffu

typedef uint32_t opref;
enum { BANK_REGS, BANK_CONSTS, BANK_SPECIALS, BANK_SCRATCH, N_BANKS };
#define OPREF(bank, offset) ((opref)(offset) | (opref)(bank))

struct warp;
struct insn;
/* Runs one instruction for the lanes of w->mask; returns the next instruction (normally i + 1). */
typedef const struct insn *op_fn(struct warp *w, const struct insn *i);

struct insn {
	op_fn *run;
	op_fn *inner;          /* run is the guard's handler: what to run under w->mask & predicate */
	opref d, d2;           /* destinations; d2: the q of p|q, the carry ... */
	opref a, b, c, e;      /* sources */
	union {
		int64_t imm;               /* address offset, bit pattern, lookup table: by op */
		const struct insn *target; /* branches */
		const void *object;        /* switch tables, call descriptions */
	};
	opref guard;           /* predicate of @p */
	uint32_t src;          /* row of func->insts, for messages and the trace */
	uint16_t op;           /* enum op */
	uint8_t n;             /* vector elements, barrier id ...: by op */
	uint8_t flags;         /* by op */
};

/* The part of a warp that handlers see; warp_internal.h has the rest around it. */
struct warp {
	uint32_t mask;           /* lanes that run now; never 0 in a handler */
	uint32_t live;           /* lanes that have not exited */
	uint8_t *bank[N_BANKS];
	uint32_t cc;             /* the carry flag of add.cc and its family, one bit a lane */
	/* -- control, memory and the scheduler's own fields follow in struct warp_state -- */
};

/* Operand access.  GET32(w, i->a)[lane] and so on; references of 64-byte-aligned slots. */
static inline void *opptr(const struct warp *w, opref r)
{
	return w->bank[r & 3] + (r & ~3u);
}
#define U16(w, r) ((uint16_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define U32(w, r) ((uint32_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define U64(w, r) ((uint64_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define S16(w, r) ((int16_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define S32(w, r) ((int32_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define S64(w, r) ((int64_t *)__builtin_assume_aligned(opptr(w, r), 64))
#define F32(w, r) ((float *)__builtin_assume_aligned(opptr(w, r), 64))
#define F64(w, r) ((double *)__builtin_assume_aligned(opptr(w, r), 64))
#define PRED(w, r) ((uint32_t *)opptr(w, r))  /* one word: 32 lanes' bits */

/* One lane loop, twice: without a test when every lane runs, else keeping the lanes that do not.
 * `l` is the lane; value may use it.  Sources may alias the destination (same lane only). */
#define SET_LANES(w, dst, value)                                                    \
	do {                                                                        \
		if ((w)->mask == ALL_LANES) {                                       \
			for (unsigned l = 0; l < LANES; l++)                        \
				(dst)[l] = (value);                                 \
		} else {                                                            \
			const uint32_t mask_ = (w)->mask;                           \
			for (unsigned l = 0; l < LANES; l++)                        \
				(dst)[l] = (mask_ & (1u << l)) ? (value) : (dst)[l]; \
		}                                                                   \
	} while (0)

/* The predicate d takes bits for the lanes that run. */
static inline void set_predicate(const struct warp *w, opref d, uint32_t bits)
{
	uint32_t *p = PRED(w, d);
	*p = (*p & ~w->mask) | (bits & w->mask);
}

/* A vector operand {a, b ...} is one reference to a row of references: d of `mov.b64 {a, b}, x`. */
#define OPLIST(w, r) ((const opref *)opptr(w, r))

/* Every operation: first those of control, memory and the warp (ops_core.h), then arithmetic. */
enum op {
#define X(name) OP_##name,
	GPUL_CORE_OPS(X)
	OP_N_CORE,
	OP_ALU_FIRST = OP_N_CORE,
	OP_ALU_BEFORE_FIRST_ = OP_ALU_FIRST - 1,
	GPUL_ALU_OPS(X)
#undef X
	N_OPS
};

/* What selection says of an instruction; decode.c turns the operands into references by it.
 *
 * Operands are taken from the instruction in order: the destination (when d_type is not 0; of a
 * PAIR p|q the second is d2), then n_sources sources, which become a, b, c, e; operands after those, and
 * sources whose bit of skip is set (a lookup table), are selection's own: their value is in imm, n or flags.
 * What a handler may rely on, since decode.c inserts the copies that it takes:
 *   - each operand has the width of its type: where narrow_ok lets a register be wider, a source is
 *     cut to the type before, and a destination is sign- or zero-extended (by d_type) after;
 *   - a negated predicate source (!p) arrives negated; an immediate arrives spread over 32 lanes,
 *     converted to the type (0/1 for PRED); a special register has the width of the type;
 *   - an operand in braces is an OPLIST of references, each of the type (scalar sources read
 *     beside them are as usual); its length goes to insn->n, over what selection put there;
 *   - a selector (.b0 .h1 ... of video instructions) is left to selection: imm, n, flags. */
enum { MAX_SOURCES = 4 };
struct selection {
	uint16_t op;                       /* enum op */
	uint8_t n_sources;
	uint16_t d_type, d2_type;          /* gpul_ptx_mod; PRED for predicates; 0: no such destination */
	uint16_t source_type[MAX_SOURCES]; /* type each source is read as; an immediate is converted to it */
	int64_t imm;                       /* for struct insn */
	uint8_t n, flags;                  /* for struct insn */
	uint8_t skip;                      /* bit k: source k of the instruction is selection's own (lop3's table) */
	bool narrow_ok;                    /* a register operand may be wider than its type (cvt, ld, st) */
};

/* select_alu.c: which operation an arithmetic instruction is.  False: no such form, and why says so,
 * as in ".ftz is for f32 only".  *out arrives zeroed. */
bool gpul_select_alu(const gpul_ptx_module *m, const gpul_ptx_func *f, const gpul_ptx_inst *in,
		     struct selection *out, char *why, size_t why_bytes);

/* The handlers of one build: core[op] for op < OP_N_CORE, alu[op - OP_ALU_FIRST] for the others. */
#define GPUL_TABLES(build)                                                             \
	extern op_fn *const gpul_core_table_##build[OP_N_CORE];                        \
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
#define GPUL_CAT_(a, b) GPUL_CAT2_(a, b)
#define GPUL_BUILD(name) GPUL_CAT_(name, GPUL_BUILD_SUFFIX)

#endif
