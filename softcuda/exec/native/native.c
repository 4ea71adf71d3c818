/* native.c — finds the runs of a function, compiles them, and makes their code the handler of their first instruction. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softcuda/exec/native/native_internal.h"

enum {
	LEAST_WEIGHT = 2,   /* runs with a smaller weight are not compiled (a load has weight 2, an addition 1) */
	FEW_ROWS = 4096,    /* a kernel with at most this many instructions is compiled before its first launch, which takes 2 ms */
	ROWS_PER_WARP = 16, /* a larger kernel is compiled after n_insns / ROWS_PER_WARP warps have executed it */
};

/* A run: its function, the index of its first instruction, and the offset of its machine code. */
struct run {
	struct func_code *code;
	uint32_t row;
	size_t at;
};

/* A memory mapping with the machine code of a kernel and the functions that it calls, which follows this struct. */
struct native_code {
	_Alignas(64) struct native_code *next;
	size_t bytes; /* size of the mapping */
};

struct program_compiler {
	struct run_compiler c;
	struct run *runs;
	uint32_t n_runs, room;
};

#if defined(__x86_64__)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_branch(const struct insn *i)
{
	return i->op == OP_BRA || i->op == OP_BRA_IF || i->op == OP_BRA_IFNOT;
}

/* Mark the instructions that are branch targets. */
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

/* Return true if the instruction can be part of a run: its handler only returns the next instruction, or stops the warp. */
static bool goes_straight_on(const struct insn *i)
{
	return i->op >= OP_ALU_FIRST || (i->op >= OP_LD_U8_16 && i->op <= OP_LD_U64_64) || i->op == OP_LDV || i->op == OP_LD_PARAM ||
	       (i->op >= OP_ST_8_16 && i->op <= OP_STV) || (i->op >= OP_CUT_32_16 && i->op <= OP_LOCAL_ADDR_64);
}

static bool note_run(struct program_compiler *p, struct func_code *code, uint32_t row)
{
	if (p->n_runs == p->room) {
		const uint32_t room = p->room ? 2 * p->room : 64;
		struct run *grown = realloc(p->runs, room * sizeof *grown);

		if (!grown)
			return false;
		p->runs = grown;
		p->room = room;
	}
	p->runs[p->n_runs++] = (struct run){ code, row, p->c.code.n };
	return true;
}

static bool compile_runs(struct program_compiler *p, struct func_code *code, const bool *target)
{
	uint32_t end;

	for (uint32_t k = 0; k < code->n_insns; k = end) {
		uint32_t weight = 0;

		for (end = k; end < code->n_insns && (end == k || !target[end]) && goes_straight_on(&code->insns[end]); end++)
			weight += gpul_native_weight(&code->insns[end]);
		if (weight >= LEAST_WEIGHT) {
			p->c.ends_with_branch = end < code->n_insns && !target[end] && is_branch(&code->insns[end]);
			if (!note_run(p, code, k) || !gpul_native_run(&p->c, &code->insns[k], end - k))
				return false;
		}
		end += end == k;
	}
	return true;
}

static bool compile_function(struct program_compiler *p, struct func_code *code)
{
	bool *target = calloc(code->n_insns + 1, sizeof *target);
	bool done = target;

	if (done) {
		mark_targets(code, target);
		done = compile_runs(p, code, target);
	}
	free(target);
	return done;
}

/* Make the machine code executable, and the handler of each run's first instruction; other threads may execute the functions. */
static void install(struct gpul_exec_program *program, const struct program_compiler *p)
{
	const size_t bytes = sizeof(struct native_code) + p->c.code.n;
	struct native_code *n = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (n == MAP_FAILED)
		return;
	*n = (struct native_code){ .next = program->native, .bytes = bytes };
	memcpy(n + 1, p->c.code.bytes, p->c.code.n);
	if (mprotect(n, bytes, PROT_READ | PROT_EXEC)) {
		munmap(n, bytes);
		return;
	}
	program->native = n;
	for (uint32_t k = 0; k < p->n_runs; k++) {
		const struct run *r = &p->runs[k];
		uint8_t *const at = (uint8_t *)(n + 1) + r->at;
		op_fn *run;

		memcpy(&run, &at, sizeof run);
		r->code->has_native = true;
		__atomic_store_n(&r->code->insns[r->row].run, run, __ATOMIC_RELEASE);
	}
}

/* Add the functions that this function calls by name to the list of functions to compile. */
static void add_callees(const struct func_code *code, struct func_code **list)
{
	for (uint32_t k = 0; k < code->n_insns; k++) {
		const struct insn *i = &code->insns[k];
		const struct call_site *site = i->op == OP_CALL ? i->object : NULL;
		struct func_code *callee = site && site->callee ? &code->program->code[site->callee - code->program->code] : NULL;

		if (!callee || !callee->insns || callee->compiled)
			continue;
		callee->compiled = true;
		callee->next_to_compile = *list;
		*list = callee;
	}
}

/* Compile a kernel and the functions that it calls.  Uses a list, because recursion may need too much stack for long call chains. */
static void compile(struct func_code *code)
{
	struct program_compiler p = { .c.program = code->program };
	struct func_code *list = code;
	bool done = true;

	code->compiled = true;
	code->next_to_compile = NULL;
	while (list && done) {
		struct func_code *f = list;

		list = f->next_to_compile;
		add_callees(f, &list);
		done = compile_function(&p, f);
	}
	if (done && p.n_runs)
		install(code->program, &p);
	free(p.runs);
	free(p.c.code.bytes);
	free(p.c.slow_rows);
}

/* Returns true if the kernel must be compiled now.  A large kernel that few warps have executed is compiled later, because compiling
 * it might take more time than it saves. */
static bool is_worth_it(struct func_code *code, uint64_t n_warps)
{
	code->n_warps += n_warps;
	return code->n_insns <= FEW_ROWS || code->n_warps * ROWS_PER_WARP >= code->n_insns;
}

void gpul_native_prepare(const struct func_code *kernel, uint64_t n_warps)
{
	struct func_code *code = &kernel->program->code[kernel - kernel->program->code];

	if (!code->program->compiles)
		return;
	pthread_mutex_lock(&lock);
	if (code->insns && !code->observed && !code->compiled && is_worth_it(code, n_warps))
		compile(code);
	pthread_mutex_unlock(&lock);
}

#else

void gpul_native_prepare(const struct func_code *kernel, uint64_t n_warps)
{
	(void)kernel, (void)n_warps;
}

#endif

void gpul_native_free(struct gpul_exec_program *p)
{
	struct native_code *next;

	for (struct native_code *n = p->native; n; n = next) {
		next = n->next;
		munmap(n, n->bytes);
	}
}
