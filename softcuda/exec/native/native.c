/* native.c — finds the runs of a function, compiles them, and makes their code the handler of their first instruction. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softcuda/exec/native/native_internal.h"

enum {
	LEAST_WEIGHT = 2,        /* of a run: a load or two additions */
	ROWS_PER_WARP = 16,      /* a function is compiled when it has been executed by a warp for each 16 rows: that costs more than compiling it */
	FEW_ROWS = 4096,         /* are compiled in some milliseconds */
};

/* A run, and where its code begins. */
struct run { uint32_t row; size_t at; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#if defined(__x86_64__)

static bool is_branch(const struct insn *i)
{
	return i->op == OP_BRA || i->op == OP_BRA_IF || i->op == OP_BRA_IFNOT;
}

/* Mark the rows to which something jumps. */
static void mark_targets(const struct func_code *code, bool *target)
{
	for (uint32_t k = 0; k < code->n_insns; k++) {
		const struct insn *i = &code->insns[k];

		if (i->op == OP_BRX) {
			const struct branch_table *t = i->object;

			for (uint32_t n = 0; n < t->n_targets; n++)
				target[t->targets[n] - code->insns] = true;
		} else if (is_branch(i)) {
			target[i->target - code->insns] = true;
		}
	}
}

/* True: the row can be part of a run, if only by its handler: it returns the next row, or stops the warp. */
static bool goes_straight_on(const struct insn *i)
{
	return i->op >= OP_ALU_FIRST || (i->op >= OP_LD_U8_16 && i->op <= OP_LD_U64_64) || i->op == OP_LDV || i->op == OP_LD_PARAM ||
	       (i->op >= OP_ST_8_16 && i->op <= OP_STV) || (i->op >= OP_CUT_32_16 && i->op <= OP_LOCAL_ADDR_64);
}

/* Compile all runs; their number, with their places in runs[]. */
static uint32_t compile_runs(struct run_compiler *c, const struct func_code *code, const bool *target, struct run *runs)
{
	uint32_t n_runs = 0, end;

	for (uint32_t k = 0; k < code->n_insns; k = end) {
		uint32_t weight = 0;

		for (end = k; end < code->n_insns && (end == k || !target[end]) && goes_straight_on(&code->insns[end]); end++)
			weight += gpul_native_weight(&code->insns[end]);
		if (weight >= LEAST_WEIGHT) {
			c->ends_with_branch = end < code->n_insns && !target[end] && is_branch(&code->insns[end]);
			runs[n_runs++] = (struct run){ k, c->code.n };
			if (!gpul_native_run(c, &code->insns[k], end - k))
				return 0;
		}
		end += end == k;
	}
	return n_runs;
}

/* Make the code executable, and the runs call it; other threads may execute the function. */
static void install(struct func_code *code, const struct code *c, const struct run *runs, uint32_t n_runs)
{
	uint8_t *memory = mmap(NULL, c->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	memcpy(memory, c->bytes, c->n);
	if (mprotect(memory, c->n, PROT_READ | PROT_EXEC)) {
		munmap(memory, c->n);
		return;
	}
	code->native = memory;
	code->native_bytes = c->n;
	for (uint32_t k = 0; k < n_runs; k++) {
		uint8_t *const at = memory + runs[k].at;
		op_fn *run;

		memcpy(&run, &at, sizeof run);
		__atomic_store_n(&code->insns[runs[k].row].run, run, __ATOMIC_RELEASE);
	}
}

static void compile_function(struct func_code *code)
{
	struct run_compiler c = { .program = code->program };
	bool *target = calloc(code->n_insns + 1, sizeof *target);
	struct run *runs = malloc((code->n_insns + 1) * sizeof *runs);

	if (target && runs) {
		mark_targets(code, target);
		const uint32_t n = compile_runs(&c, code, target, runs);

		if (n)
			install(code, &c.code, runs, n);
	}
	free(target);
	free(runs);
	free(c.code.bytes);
	free(c.slow_rows);
}

static bool is_enabled(const struct gpul_exec_program *p)
{
	const char *wish = secure_getenv("GPULOAD_SOFT_NATIVE");

	return p->avx512 && !(wish && !strcmp(wish, "0"));
}

/* One warp may execute a row many times: only functions that are large for the number of warps wait. */
static bool is_worth_it(struct func_code *code, uint64_t n_warps)
{
	code->n_warps += n_warps;
	return code->n_insns <= FEW_ROWS || code->n_warps * ROWS_PER_WARP >= code->n_insns;
}

static void prepare(struct func_code *code, uint64_t n_warps)
{
	if (!code->insns || code->observed || code->compiled || !is_worth_it(code, n_warps))
		return;
	code->compiled = true;
	compile_function(code);
	for (uint32_t k = 0; k < code->n_insns; k++) {
		const struct insn *i = &code->insns[k];
		const struct call_site *site = i->op == OP_CALL ? i->object : NULL;

		if (site && site->callee)
			prepare(&code->program->code[site->callee - code->program->code], n_warps);
	}
}

void gpul_native_prepare(const struct func_code *code, uint64_t n_warps)
{
	if (!is_enabled(code->program))
		return;
	pthread_mutex_lock(&lock);
	prepare(&code->program->code[code - code->program->code], n_warps);
	pthread_mutex_unlock(&lock);
}

#else

void gpul_native_prepare(const struct func_code *code, uint64_t n_warps)
{
	(void)code, (void)n_warps;
}

#endif

void gpul_native_free(struct func_code *code)
{
	if (code->native)
		munmap(code->native, code->native_bytes);
}
