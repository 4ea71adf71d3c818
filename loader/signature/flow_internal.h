/* flow_internal.h — where the values in a kernel come from.
 *
 *     a register ──> one gpul_flow: which parameters it may point into, which it may simply be,
 *                    which enter it with a factor, how it moves with the thread index
 *
 * Each assignment has a description of its own (values_internal.h), so the order of
 * instructions needs no further thought: what may arrive at a value is joined into its
 * description, round after round until nothing changes (a fixpoint), and loops cost nothing.
 *
 * All functions that the kernel can reach are described together.  Values, parameters, return
 * values and variables are numbered through, as nodes; a call joins arguments into
 * parameters. */
#ifndef GPULOAD_LOADER_SIGNATURE_FLOW_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_FLOW_INTERNAL_H

#include "loader/signature/signature.h"
#include "loader/signature/values_internal.h"

#define FLOW_MAX_PARAMS 64         /* one bit each */
#define FLOW_ENDLESS    UINT64_MAX /* grows in a loop */

enum flow_flag {
	FLOW_TID = 1 << 0,      /* moves with %tid.x, or with block index times block size */
	FLOW_OUTER = 1 << 1,    /* moves with %ctaid, or with the y and z of %tid */
	FLOW_NTID = 1 << 2,     /* made of the block's size */
	FLOW_NCTAID = 1 << 3,   /* made of the grid's size */
	FLOW_SQUARE = 1 << 4,   /* thread index times something that grows with the launch */
	FLOW_LOCAL = 1 << 5,    /* address of a .local variable */
	FLOW_SHARED = 1 << 6,   /* address of a .shared variable */
	FLOW_VARIABLE = 1 << 7, /* address of any other variable or function */
	FLOW_MIXED = 1 << 8,   /* two parameters added up, either of which may be the address */
	FLOW_DATA = 1 << 9,    /* loaded from memory */
	FLOW_OPAQUE = 1 << 10, /* computed in a way that is not followed */
	FLOW_OUTSIDE = 1 << 11, /* came from a function outside the module */
	FLOW_FEWER = 1 << 12,   /* was divided or masked: several threads have the same value */
	FLOW_LESS = 1 << 13,    /* a constant was taken off it: a[i - 1] */
};
#define FLOW_INDEX   (FLOW_TID | FLOW_OUTER)
#define FLOW_SIZES   (FLOW_NTID | FLOW_NCTAID)
#define FLOW_LAUNCH  (FLOW_INDEX | FLOW_SIZES)
#define FLOW_ADDRESS (FLOW_LOCAL | FLOW_SHARED | FLOW_VARIABLE)

/* Bit k of a set stands for parameter k of the kernel; ENDLESS for what grows in a loop. */
typedef struct gpul_flow {
	uint64_t base;   /* may be an address based on it */
	uint64_t bound;  /* may be its value, give or take a constant: a bound */
	uint64_t linear; /* its value enters, perhaps with a factor */
	uint64_t from;   /* loaded from the memory it points to, or computed from that */
	uint64_t stride; /* how far it moves when %tid.x moves by one */
	uint64_t start;  /* the same for the block's first thread, %ctaid * %ntid */
	uint64_t outer;  /* the same for the OUTER indices */
	uint64_t reach;  /* the largest sum of constants added */
	uint64_t room; /* bytes of the smallest .shared array that it may point into; 0: none */
	uint32_t flags;  /* enum flow_flag */
	bool seen;       /* false: no definition met yet; everything else is 0 */
	bool constant;   /* it is always the number value */
	uint8_t n_grown; /* how often reach or stride grew: many times means a loop */
	int64_t value;
} gpul_flow;

/* A function of the program, and the first node of each of its tables. */
typedef struct gpul_flow_func {
	const gpul_ptx_func *f;
	gpul_values values; /* of its registers */
	uint32_t regs, params, rets, vars;
} gpul_flow_func;

typedef struct gpul_flow_program {
	const gpul_ptx_module *m;
	gpul_flow_func *funcs; /* [0]: the kernel */
	size_t n_funcs;
	uint32_t n_nodes;
	uint32_t local_cell;  /* node: all that was stored to .local memory, joined */
	uint32_t shared_cell; /* likewise for .shared */
	gpul_flow *flow;      /* by node */
	uint64_t firm;        /* parameters known to be addresses */
	bool changed;         /* something grew in this round */
} gpul_flow_program;

/* The first half of gpul_flow_open(): nodes numbered, nothing known of them yet. */
gpul_status gpul_flow_program_open(const gpul_ptx_module *m, const gpul_ptx_func *kernel,
				   gpul_flow_program *out, const char **why_not,
				   gpul_error *err);

/* Number the functions that kernel reaches and find where their values come from.
 *
 * kernel has a body and at most FLOW_MAX_PARAMS parameters.  *out is released by
 * gpul_flow_close() and zeroed on failure.  A program too big to be followed: *why_not is set
 * to one phrase, *out is empty, and the status is OK.  Otherwise fails with GPUL_ENOMEM only.
 */
gpul_status gpul_flow_open(const gpul_ptx_module *m, const gpul_ptx_func *kernel,
			   gpul_flow_program *out, const char **why_not, gpul_error *err);
void gpul_flow_close(gpul_flow_program *p);

/* What an operand holds, before the instruction. */
gpul_flow gpul_flow_of(const gpul_flow_program *p, const gpul_flow_func *fn,
		       const gpul_ptx_operand *o);

/* The node behind a register or a param, ret or variable symbol; GPUL_PTX_NONE: it has none. */
uint32_t gpul_flow_node(const gpul_flow_func *fn, const gpul_ptx_operand *o);

static inline const gpul_ptx_operand *gpul_flow_operand(const gpul_flow_func *fn,
							const gpul_ptx_inst *in, unsigned i)
{
	return &fn->f->operands[in->first_operand + i];
}

/* The node of a function's i-th parameter or return value. */
uint32_t gpul_flow_param_node(const gpul_flow_func *fn, uint32_t i);
uint32_t gpul_flow_ret_node(const gpul_flow_func *fn, uint32_t i);

/* The program's own row of a called function; NULL: it has no body here. */
const gpul_flow_func *gpul_flow_callee(const gpul_flow_program *p, const gpul_ptx_operand *o);

/* A call taken apart: (rets), target, (args).  Any part may be missing. */
typedef struct gpul_flow_call {
	const gpul_ptx_operand *rets, *args, *target;
} gpul_flow_call;
gpul_flow_call gpul_flow_call_parts(const gpul_flow_func *fn, const gpul_ptx_inst *in);

/* A memory access taken apart; address NULL: the instruction makes none that is followed. */
typedef struct gpul_flow_access {
	const gpul_ptx_operand *address;
	const gpul_ptx_operand *value, *result; /* what is stored; where the loaded goes */
	uint16_t type, space;                   /* gpul_ptx_mod */
	bool loads, stores, atomic;
	bool waits; /* a load that others are meant to write for: ld.acquire, ld.volatile */
	uint8_t vector;
} gpul_flow_access;
gpul_flow_access gpul_flow_access_of(const gpul_flow_func *fn, const gpul_ptx_inst *in);

/* The i-th type of an instruction (cvt.f32.s32: F32, S32); GPUL_PTX_MOD_NONE: no such. */
uint16_t gpul_flow_type(const gpul_ptx_inst *in, unsigned i);

/* True when operand 0 is written. */
bool gpul_flow_writes(const gpul_ptx_inst *in);

#endif
