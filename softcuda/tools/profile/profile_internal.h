/* profile_internal.h — defines the profiler's counters, and the data of its report.
 *
 *     decode   profile_plan.c     which instructions are counted, by function: the first of each basic block, those that access memory,
 *                         branches, and those with a guard
 *     run      count.c    each worker thread has its own counters: a tally for each (kernel, function) that it has executed
 *     finish   result.c   adds the tallies of all threads, and gives each PTX instruction the count of its basic block
 *              profile_table.c, json.c, page.c   write the result
 *
 * The profiler counts PTX instructions executed by warps, not the machine instructions that ptxas would generate. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_PROFILE_PROFILE_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_PROFILE_PROFILE_INTERNAL_H

#include <stdint.h>
#include <stdio.h>

#include "core/array.h"
#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/profile/transactions_internal.h"

/* An architecture's limits on the warps and blocks that can be resident on a multiprocessor. */
struct architecture {
	unsigned sm;                    /* compute capability times 10, such as 90 for 9.0 */
	unsigned max_warps, max_blocks; /* limits of a multiprocessor */
	unsigned shared_kib;            /* shared memory per multiprocessor; a block may use 1 KiB less */
};

/* Return an architecture; NULL: unknown.  gpul_architectures() returns a text that lists the known architectures. */
const struct architecture *gpul_architecture(unsigned sm);
const char *gpul_architectures(void);

struct occupancy {
	unsigned warps_per_block;
	unsigned by_warps, by_registers, by_shared,
		by_blocks;      /* resident blocks that each resource allows; by_shared: UINT32_MAX if unlimited */
	unsigned blocks, warps; /* blocks and warps that can be resident at the same time */
	double percent;         /* warps as a percentage of max_warps */
};

/** Compute the theoretical occupancy of a launch.
 *
 * @threads       number of threads of a block
 * @registers     number of registers of a thread, as ptxas allocates them
 * @shared_bytes  static and dynamic shared memory of a block
 * Errors none: the result has 0 blocks if the launch does not fit
 * Source  cuda_occupancy.h of CUDA 13.0, cudaOccMaxActiveBlocksPerMultiprocessor() */
struct occupancy gpul_occupancy(const struct architecture *a, unsigned threads, unsigned registers, uint32_t shared_bytes);

/* ---- profile_plan.c: which instructions of a function are counted ---------------------------------------------------------- */

enum counted {                    /* bits of plan->counted[] */
	       COUNTED_BLOCK = 1, /* the first instruction of a basic block */
	       COUNTED_SYNC = 2,  /* may wait for lanes and is executed again after each wait, so it is counted when it completes */
	       COUNTED_MEMORY = 4,
	       COUNTED_BRANCH = 8, /* a branch in the PTX text, not one that decoding inserted */
	       COUNTED_GUARD = 16, /* the instruction runs only in the lanes whose guard is true */
};

enum space { GLOBAL_MEMORY, LOCAL_MEMORY, SHARED_MEMORY, N_SPACES };
/* BY_COPY: cp.async and cp.async.bulk */
enum access_by { BY_LOAD, BY_STORE, BY_ATOMIC, BY_REDUCTION, BY_COPY, N_ACCESS_BY };

/* How an instruction with a guard predicate (@p) is decoded.  GUARD_MASKS: it runs under a mask of lanes; GUARD_SKIPS: a branch
 * before it skips it. */
enum row_guard { NO_GUARD, GUARD_MASKS, GUARD_SKIPS };

struct row {                          /* a PTX instruction; all data are copied, because the program may be unloaded before the report */
	uint32_t insn;                /* index in func_code->insns of the first interpreter instruction to which it was decoded */
	uint32_t line;                /* line in the PTX text */
	uint32_t source, source_line; /* source: index in plan->sources; source_line 0: unknown */
	uint32_t at_source, at_line;  /* source position of the call, if the code was inlined; at_line 0: not inlined */
	uint16_t opcode;
	uint8_t by;    /* if the instruction accesses memory: a value of enum access_by */
	uint8_t guard; /* a value of enum row_guard */
	bool branch;
	char *text; /* the instruction as text, owned */
};

struct launch_shape { /* the dimensions of one or more launches; n: number of these launches */
	uint32_t grid[3], block[3], shared_bytes;
	uint64_t n;
};
enum { MAX_SHAPES = 16 };

struct memory_plan { /* describes an instruction that accesses memory; space: enum insn_flags */
	uint8_t bytes, space;
	bool atomic, copies, multimem;
};

struct plan {
	struct plan *next, *same_bucket; /* next: in the list of all plans, newest first */
	const struct func_code *code;    /* the function; only identifies it, because it may have been unloaded */
	uint32_t n_insns;
	uint8_t *counted;     /* for each instruction: bits of enum counted */
	uint32_t *memory_row; /* for instructions that access memory: index in `memory` of the plan and of its tallies */
	GPUL_ARRAY(struct memory_plan) memory;
	/* The following members are set when the function is first executed. */
	bool described, is_kernel;
	unsigned order;    /* number of the function in the order of first execution */
	char *name, *file; /* file: the PTX file, as named in messages */
	GPUL_ARRAY(struct row) rows;
	GPUL_ARRAY(char *) sources;
	uint32_t *block_of; /* for each row: index of the first instruction of its basic block, which has the block's counters */
	unsigned registers; /* estimated number of registers per thread (profile_registers.c) */
	struct launch_shape shapes[MAX_SHAPES];
	unsigned n_shapes;
	uint64_t n_launches;
};

/* True if the instruction may wait for lanes of its warp. */
static inline bool gpul_waits_for_lanes(unsigned op)
{
	return (op >= OP_SHFL_UP && op <= OP_REDUX_F32) || op == OP_BAR_WARP;
}

void gpul_profile_launch_begins(struct observer *o, gpul_exec_launch *l);
bool gpul_profile_wants(struct observer *o, const struct func_code *code, const struct insn *i);
/* Return the plan (the instructions to count) of a function of a loaded program; describe: also fill in plan->rows. */
struct plan *gpul_plan_of(const struct func_code *code, bool describe);
struct plan *gpul_plans(void);       /* returns the list of plans, newest first; must be called when no more plans are added */
unsigned gpul_plan_generation(void); /* increases whenever a plan is made */

/* profile_registers.c: estimate registers per thread: the most 32-bit registers that are live together, plus 2 for the ABI; 16 to 255 */
unsigned gpul_registers_estimate(const gpul_ptx_func *f);

/* ---- count.c: a thread's counters ------------------------------------------------------------------------------------- */

struct insn_count {                  /* counters of one interpreter instruction */
	uint64_t warps, threads;     /* warps and threads that executed the basic block, counted at its first instruction */
	uint64_t guarded;            /* number of threads whose guard was true */
	uint64_t branches, diverged; /* number of executions of a branch, and how many of these diverged */
};

struct memory_count { /* counters of an instruction that accesses memory */
	struct space_count {
		uint64_t requests, actual, ideal, lines;
	} space[N_SPACES];
};

struct memory_counter {
	struct memory_count count;
	struct pattern {               /* distances between the addresses of the most recent access, and its cost (count.c) */
		uint32_t lanes, begin; /* active lanes (0: no pattern yet); offset of the first address in its line or bank */
		struct cost cost;
		uint32_t distance[WARP_LANES];
	} pattern;
};

struct tally {
	struct tally *next; /* next in the list of the thread's tallies */
	struct plan *kernel, *function;
	struct insn_count *insns;
	struct memory_counter *memory;
};

struct counters { /* the counters of a thread; they are kept when the thread ends */
	struct counters *next;
	struct tally *tallies;
};

/* The hook that runs before an instruction.  gpul_profile_before() returns the version for this CPU, with or without AVX2. */
typedef enum observed profile_before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on);
profile_before *gpul_profile_before(void);
void gpul_profile_after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits);
void gpul_profile_block_begins(struct observer *o, struct block *b);
struct counters *gpul_counters(void); /* returns the head of the list of all threads' counters */

/* ---- result.c ------------------------------------------------------------------------------------------------------------ */

struct row_count {
	uint64_t warps, threads, guarded; /* guarded: number of threads whose guard was true */
	uint64_t branches, diverged;
	struct memory_count memory;
};

struct function_result {
	const struct plan *function;
	struct row_count *rows; /* one element for each row of the plan, in the same order */
};

struct kernel_result {
	const struct plan *kernel;
	GPUL_ARRAY(struct function_result) functions; /* the kernel and the functions that it called */
	struct row_count sum;
	struct memory_count by[N_ACCESS_BY];
	unsigned registers;
	struct occupancy occupancy; /* occupancy for the shape of the kernel's first launch */
};

struct profile {
	GPUL_ARRAY(struct kernel_result) kernels; /* in the order of their first execution */
	const struct architecture *architecture;
	bool registers_given; /* true if the user has given the number of registers, false if it is estimated */
};

/* Fill in p->kernels.  registers: number per thread; 0: estimate it.  Errors: GPUL_ENOMEM. */
gpul_status gpul_profile_collect(struct profile *p, unsigned registers, gpul_error *err);
void gpul_profile_free(struct profile *p);
void gpul_add_counts(struct row_count *to, const struct row_count *from);
double gpul_ratio(uint64_t a, uint64_t b); /* returns 0 if b is 0 */

/* A metric of a kernel, with its name in Nsight Compute.  gpul_profile_metrics() returns the number of metrics. */
struct metric {
	const char *name;
	double value;
	bool whole;
};
enum { MAX_METRICS = 96 };
unsigned gpul_profile_metrics(const struct kernel_result *k, struct metric out[MAX_METRICS]);

/* ---- profile_limits.c: limits on a kernel's counters --------------------------------------------------------------------------------- */

/** Check the syntax of limits, "COUNTER=N,COUNTER=N".  NULL: there are none.
 *
 * Errors GPUL_EINVAL an unknown counter, or a limit that is not a number */
gpul_status gpul_profile_check_limits(const char *limits, gpul_error *err);
/* Report each kernel that exceeds a limit, and the lines with the highest counts. */
void gpul_profile_limit(const struct profile *p, const char *limits);

/* ---- lines.c: the counts of a kernel by source line ------------------------------------------------------------------------ */

struct line_count {
	const char *file; /* file name, borrowed from a plan */
	uint32_t line;
	const char *text; /* text of the line; NULL: the file cannot be read */
	struct row_count count;
};
struct line_counts {
	GPUL_ARRAY(struct line_count) of;
};

/* Sum up counts by line of CUDA C++ (of PTX if there is no line information), sorted by file and line.  Returns false if out of memory. */
bool gpul_profile_lines(const struct kernel_result *k, struct line_counts *out);
void gpul_profile_free_lines(struct line_counts *l);
/* Return how many sectors of global and local memory, or wavefronts of shared memory, exceed the ideal number (struct cost). */
uint64_t gpul_excess_sectors(const struct memory_count *m);
uint64_t gpul_bank_conflicts(const struct memory_count *m);

/* profile_source.c: return the text of a line, which is valid until the process ends; NULL: the file or the line cannot be read. */
const char *gpul_source_line(const char *path, uint32_t line);
uint32_t gpul_source_n_lines(const char *path);

/* The counts of an opcode.  gpul_profile_opcodes() sorts them, the most frequent first, and returns the number of opcodes. */
struct opcode_count {
	uint16_t opcode;
	uint64_t warps, threads;
};
unsigned gpul_profile_opcodes(const struct kernel_result *k, struct opcode_count out[GPUL_PTX_N_OPCODES]);

/* ---- writers ---------------------------------------------------------------------------------------------------------------- */

void gpul_profile_write_table(const struct profile *p, FILE *to);
void gpul_profile_write_json(const struct profile *p, FILE *to);
void gpul_profile_json_text(FILE *to, const char *text);
void gpul_profile_write_page(const struct profile *p, FILE *to);

#endif
