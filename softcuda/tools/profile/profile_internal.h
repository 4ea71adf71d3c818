/* profile_internal.h — the counters of the profiler, and what its report is made of.
 *
 *     decode   plan.c     which instructions are counted, by function: the first of each basic block, those that access memory,
 *                         branches, and those with a guard
 *     run      count.c    each worker thread has its own counters: a tally for each (kernel, function) that it has executed
 *     finish   result.c   adds the tallies of all threads up, and gives each PTX instruction the count of its basic block
 *              table.c, json.c, page.c   write the result
 *
 * Counts are of PTX instructions as they were executed by warps, not of the machine instructions that ptxas would make of them. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_PROFILE_PROFILE_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_PROFILE_PROFILE_INTERNAL_H

#include <stdio.h>

#include "core/array.h"
#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/profile/occupancy_internal.h"
#include "softcuda/tools/profile/transactions_internal.h"

/* ---- plan.c: what is counted in a function ------------------------------------------------------------------------- */

enum counted {               /* bits of plan->counted[] */
	COUNTED_BLOCK = 1,       /* the first instruction of a basic block */
	COUNTED_SYNC = 2,        /* may wait for lanes, and be called again: counted when it was executed */
	COUNTED_MEMORY = 4,
	COUNTED_BRANCH = 8,      /* a branch of the PTX text: not one that decoding inserted */
	COUNTED_GUARD = 16,      /* runs for the lanes whose guard is true */
};

enum space { GLOBAL_MEMORY, LOCAL_MEMORY, SHARED_MEMORY, N_SPACES };
enum access_by { BY_LOAD, BY_STORE, BY_ATOMIC, BY_REDUCTION, BY_COPY, N_ACCESS_BY };  /* BY_COPY: cp.async, cp.async.bulk */

enum row_guard { NO_GUARD, GUARD_MASKS, GUARD_SKIPS };  /* SKIPS: decoding put a branch before it */

struct row {                 /* a PTX instruction: what it is; copied, because the program may be unloaded before the report */
	uint32_t insn;               /* its first instruction in func_code->insns */
	uint32_t line;               /* in the PTX text */
	uint32_t source, source_line;    /* source: row of plan->sources; source_line 0: unknown */
	uint32_t at_source, at_line;     /* where it was inlined; at_line 0: it was not */
	uint16_t opcode;
	uint8_t by;                  /* enum access_by, if it accesses memory */
	uint8_t guard;               /* enum row_guard */
	bool branch;
	char *text;                  /* owned */
};

struct launch_shape {        /* launches with the same dimensions */
	uint32_t grid[3], block[3], shared_bytes;
	uint64_t n;
};
enum { MAX_SHAPES = 16 };

struct memory_plan {         /* an instruction that accesses memory; space: enum insn_flags */
	uint8_t bytes, space;
	bool atomic, copies;
};

struct plan {
	struct plan *next, *same_bucket; /* next: of all plans, newest first */
	const struct func_code *code;    /* the function; once it is unloaded, only a number */
	uint32_t n_insns;
	uint8_t *counted;            /* by instruction: bits of enum counted */
	uint32_t *memory_row;        /* by instruction: row of memory and of tally->memory */
	GPUL_ARRAY(struct memory_plan) memory;
	/* Set when the function is first executed: */
	bool described, is_kernel;
	unsigned order;              /* of the first execution */
	char *name, *file;           /* file: of the PTX, as in messages */
	GPUL_ARRAY(struct row) rows;
	GPUL_ARRAY(char *) sources;
	uint32_t *block_of;          /* by row: the instruction that counts for it */
	unsigned registers;          /* of a thread: an estimate (registers.c) */
	struct launch_shape shapes[MAX_SHAPES];
	unsigned n_shapes;
	uint64_t n_launches;
};

/* True: an instruction that may wait for lanes of its warp. */
static inline bool gpul_waits_for_lanes(unsigned op)
{
	return (op >= OP_SHFL_UP && op <= OP_REDUX_F32) || op == OP_BAR_WARP;
}

void gpul_profile_launch_begins(struct observer *o, gpul_exec_launch *l);
bool gpul_profile_wants(struct observer *o, const struct func_code *code, const struct insn *i);
/* The plan of a function; describes it, if `describe`.  The program exists. */
struct plan *gpul_plan_of(const struct func_code *code, bool describe);
struct plan *gpul_plans(void);   /* the newest; the list does not change any more */
unsigned gpul_plan_generation(void);  /* grows when a plan is made */

/* registers.c: the most 32-bit registers that are live at once in a function, and 2 for the ABI; 16 to 255 */
unsigned gpul_registers_estimate(const gpul_ptx_func *f);

/* ---- count.c: the counters of a thread -------------------------------------------------------------------------------- */

struct insn_count {          /* of an instruction of the interpreter */
	uint64_t warps, threads;     /* of a basic block, at its first instruction */
	uint64_t guarded;            /* threads whose guard was true */
	uint64_t branches, diverged; /* times that a branch was executed, and that its lanes went to several targets */
};

struct memory_count {        /* of an instruction that accesses memory */
	struct space_count { uint64_t requests, actual, ideal, lines; } space[N_SPACES];
};

struct memory_counter {
	struct memory_count count;
	struct pattern {             /* of its last access: count.c */
		uint32_t lanes, begin;       /* lanes 0: there is none */
		struct cost cost;
		uint32_t distance[WARP_LANES];
	} pattern;
};

struct tally {
	struct tally *next;          /* of the same thread */
	struct plan *kernel, *function;
	struct insn_count *insns;
	struct memory_counter *memory;
};

struct counters {            /* of a thread; kept when it ends */
	struct counters *next;
	struct tally *tallies;
};

/* The hook, compiled for the CPU of the process. */
typedef enum observed profile_before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on);
profile_before *gpul_profile_before(void);
void gpul_profile_after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits);
void gpul_profile_block_begins(struct observer *o, struct block *b);
struct counters *gpul_counters(void);  /* the first of the list */

/* ---- result.c ------------------------------------------------------------------------------------------------------------ */

struct row_count {
	uint64_t warps, threads, guarded;    /* guarded: threads that were not predicated off */
	uint64_t branches, diverged;
	struct memory_count memory;
};

struct function_result {
	const struct plan *function;
	struct row_count *rows;      /* by row of the plan */
};

struct kernel_result {
	const struct plan *kernel;
	GPUL_ARRAY(struct function_result) functions;  /* the kernel, and those that it called */
	struct row_count sum;
	struct memory_count by[N_ACCESS_BY];
	unsigned registers;
	struct occupancy occupancy;  /* of its first shape */
};

struct profile {
	GPUL_ARRAY(struct kernel_result) kernels;  /* in the order of their first execution */
	const struct architecture *architecture;
	bool registers_given;        /* else estimated */
};

/* Fill in p->kernels; registers: of a thread, 0: estimated.  Errors: GPUL_ENOMEM. */
gpul_status gpul_profile_collect(struct profile *p, unsigned registers, gpul_error *err);
void gpul_profile_free(struct profile *p);
void gpul_add_counts(struct row_count *to, const struct row_count *from);
double gpul_ratio(uint64_t a, uint64_t b);  /* 0 if b is 0 */

/* The counters of a kernel under Nsight Compute's names; returns the number of them. */
struct metric { const char *name; double value; bool whole; };
enum { MAX_METRICS = 96 };
unsigned gpul_profile_metrics(const struct kernel_result *k, struct metric out[MAX_METRICS]);

/* ---- limits.c: what a kernel may cost ---------------------------------------------------------------------------------------- */

/** Check the syntax of limits, "COUNTER=N,COUNTER=N".  NULL: there are none.
 *
 * Errors  GPUL_EINVAL an unknown counter, or something else than a number */
gpul_status gpul_profile_check_limits(const char *limits, gpul_error *err);
/* Report each kernel that exceeds one, with the lines that cost the most. */
void gpul_profile_limit(const struct profile *p, const char *limits);

/* ---- lines.c: the counts of a kernel by source line ------------------------------------------------------------------------ */

struct line_count {
	const char *file;            /* borrowed from a plan */
	uint32_t line;
	const char *text;            /* the line; NULL: the file cannot be read */
	struct row_count count;
};
struct line_counts { GPUL_ARRAY(struct line_count) of; };

/* By line of CUDA C++, or of PTX where that is not known; by file and line.  False: no memory. */
bool gpul_profile_lines(const struct kernel_result *k, struct line_counts *out);
void gpul_profile_free_lines(struct line_counts *l);
/* Sectors of global and local memory, and wavefronts of shared memory, beyond the ideal. */
uint64_t gpul_excess_sectors(const struct memory_count *m);
uint64_t gpul_bank_conflicts(const struct memory_count *m);

/* source.c: the text of a line; NULL: the file or the line cannot be read.  Valid until the process ends. */
const char *gpul_source_line(const char *path, uint32_t line);
uint32_t gpul_source_n_lines(const char *path);

/* Counts by opcode, the most frequent first. */
struct opcode_count { uint16_t opcode; uint64_t warps, threads; };
unsigned gpul_profile_opcodes(const struct kernel_result *k, struct opcode_count out[GPUL_PTX_N_OPCODES]);

/* ---- writers ---------------------------------------------------------------------------------------------------------------- */

void gpul_profile_write_table(const struct profile *p, FILE *to);
void gpul_profile_write_json(const struct profile *p, FILE *to);
void gpul_profile_json_text(FILE *to, const char *text);
void gpul_profile_write_page(const struct profile *p, FILE *to);

#endif
