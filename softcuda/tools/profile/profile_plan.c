/* profile_plan.c — chooses the instructions to count when a function is decoded, and describes them for the report. */
#include "softcuda/tools/profile/profile_internal.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan *plans;
enum { N_BUCKETS = 4096 };
static struct plan *by_code[N_BUCKETS]; /* hash table by address; a bucket has the current plan of an address before older plans */
static _Atomic unsigned generation;

struct plan *gpul_plans(void)
{
	return plans;
}

unsigned gpul_plan_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* ---- basic blocks --------------------------------------------------------------------------------------------------- */

/* Returns true if other lanes may be active at the instruction after this one. */
static bool ends_block(unsigned op)
{
	return (op >= OP_EXIT && op <= OP_BAR_WARP) || gpul_waits_for_lanes(op) || op == OP_MBAR_TEST;
}

static void mark_target(struct plan *p, const struct func_code *code, const struct insn *target)
{
	if (target)
		p->counted[target - code->insns] |= COUNTED_BLOCK;
}

static void mark_targets(struct plan *p, const struct func_code *code, const struct insn *i)
{
	if (i->op == OP_BRA || i->op == OP_BRA_IF || i->op == OP_BRA_IFNOT)
		mark_target(p, code, i->target);
	if (i->op == OP_BRX) {
		const struct branch_table *t = i->object;

		for (uint32_t n = 0; n < t->n_targets; n++)
			mark_target(p, code, t->targets[n]);
	}
}

static bool is_branch(const gpul_ptx_inst *in)
{
	return in && (in->opcode == GPUL_PTX_BRA || in->opcode == GPUL_PTX_BRX);
}

/* Returns true if the instruction accesses memory through the L1 cache, not constants or parameters of kernels or calls. */
static bool accesses_memory(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);

	return in && gpul_insn_accesses_memory(i) && (i->flags & SPACE_MASK) != SPACE_PARAM && !gpul_ptx_has_mod(in, GPUL_PTX_MOD_CONST) &&
	       !gpul_ptx_has_mod(in, GPUL_PTX_MOD_PARAM);
}

static bool is_branch_op(unsigned op)
{
	return op == OP_BRA || op == OP_BRA_IF || op == OP_BRA_IFNOT || op == OP_BRX;
}

static bool choose_memory(struct plan *p, const struct insn *i, uint32_t k)
{
	struct memory_plan *m = gpul_array_push(&p->memory);

	if (!m)
		return false;
	*m = (struct memory_plan){ .bytes = (uint8_t)gpul_insn_access_bytes(i),
				   .space = i->flags & SPACE_MASK,
				   .atomic = gpul_insn_access_kind(i) == ACCESS_ATOMIC,
				   .copies = gpul_insn_copies(i),
				   .multimem = gpul_insn_is_multimem(i) };
	p->memory_row[k] = (uint32_t)p->memory.n - 1;
	p->counted[k] |= COUNTED_MEMORY;
	return true;
}

/* Choose the instructions to count.  Returns false if out of memory. */
static bool choose_counted(struct plan *p, const struct func_code *code)
{
	for (uint32_t k = 0; k < p->n_insns; k++) {
		const struct insn *i = &code->insns[k];

		mark_targets(p, code, i);
		if (!k || ends_block(i[-1].op))
			p->counted[k] |= COUNTED_BLOCK;
		if (gpul_waits_for_lanes(i->op))
			p->counted[k] |= COUNTED_BLOCK | COUNTED_SYNC;
		if (accesses_memory(code, i) && !choose_memory(p, i, k))
			return false;
		if (is_branch(gpul_insn_ptx(code, i)) && is_branch_op(i->op))
			p->counted[k] |= COUNTED_BRANCH;
		if (i->inner && gpul_insn_begins(code, i))
			p->counted[k] |= COUNTED_GUARD;
	}
	return true;
}

/* ---- the list of plans -------------------------------------------------------------------------------------------------- */

static unsigned bucket_of(const struct func_code *code)
{
	return (unsigned)(((uintptr_t)code * 0x9e3779b97f4a7c15u) >> 52) % N_BUCKETS;
}

/* Return the current plan (the instructions to count) of a function, or NULL.  The caller holds the lock. */
static struct plan *find_plan(const struct func_code *code)
{
	struct plan *p = by_code[bucket_of(code)];

	while (p && p->code != code)
		p = p->same_bucket;
	return p;
}

/* Remove the plan of an unloaded function that had this address from its bucket.  The caller holds the lock. */
static void forget_address(const struct func_code *code)
{
	struct plan **at = &by_code[bucket_of(code)];

	while (*at && (*at)->code != code)
		at = &(*at)->same_bucket;
	if (*at)
		*at = (*at)->same_bucket;
}

/* Make the plan (the instructions to count) of a function.  NULL: out of memory: nothing is counted.  The caller holds the lock. */
static struct plan *make_plan(const struct func_code *code)
{
	struct plan *p = calloc(1, sizeof *p), **bucket = &by_code[bucket_of(code)];

	forget_address(code);
	if (!p)
		return NULL;
	p->code = code;
	p->n_insns = code->n_insns;
	p->counted = calloc(p->n_insns + 1, sizeof *p->counted);
	p->memory_row = calloc(p->n_insns + 1, sizeof *p->memory_row);
	if (!p->counted || !p->memory_row || !choose_counted(p, code)) {
		free(p->counted);
		free(p->memory_row);
		gpul_array_free(&p->memory);
		free(p);
		return NULL;
	}
	p->next = plans;
	plans = p;
	p->same_bucket = *bucket;
	*bucket = p;
	atomic_fetch_add(&generation, 1);
	return p;
}

bool gpul_profile_wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	struct plan *p;
	bool counted;

	(void)o;
	pthread_mutex_lock(&lock);
	p = i == code->insns ? make_plan(code) : find_plan(code);
	counted = p && p->counted[i - code->insns];
	pthread_mutex_unlock(&lock);
	return counted;
}

/* ---- descriptions -------------------------------------------------------------------------------------------------------- */

static uint32_t source_row(struct plan *p, const gpul_ptx_module *m, uint32_t number)
{
	const char *path = "";
	char **added;

	for (uint32_t k = 0; k < m->n_files; k++)
		if (m->files[k].number == number)
			path = gpul_ptx_name(m, m->files[k].path);
	for (uint32_t k = 0; k < p->sources.n; k++)
		if (!strcmp(p->sources.at[k], path))
			return k;
	added = gpul_array_push(&p->sources);
	if (!added)
		return 0;
	*added = strdup(path);
	if (!*added)
		p->sources.n--;
	return (uint32_t)(p->sources.n ? p->sources.n - 1 : 0);
}

static uint8_t access_by(const gpul_ptx_inst *in)
{
	switch (in->opcode) {
	case GPUL_PTX_LD:
	case GPUL_PTX_LDU:
		return BY_LOAD;
	case GPUL_PTX_ST:
		return BY_STORE;
	case GPUL_PTX_RED:
		return BY_REDUCTION;
	case GPUL_PTX_CP:
		return BY_COPY;
	case GPUL_PTX_MULTIMEM:
		return gpul_ptx_has_mod(in, GPUL_PTX_MOD_LD_REDUCE) ? BY_LOAD
		       : gpul_ptx_has_mod(in, GPUL_PTX_MOD_ST)      ? BY_STORE
								    : BY_REDUCTION;
	default:
		return BY_ATOMIC;
	}
}

static uint8_t row_guard(const struct func_code *code, const gpul_ptx_inst *in, uint32_t first)
{
	if (in->guard == GPUL_PTX_NONE || is_branch(in))
		return NO_GUARD;
	return code->insns[first].inner ? GUARD_MASKS : GUARD_SKIPS;
}

static bool describe_row(struct plan *p, const struct func_code *code, uint32_t k, uint32_t first)
{
	const gpul_ptx_module *m = code->program->module;
	const gpul_ptx_inst *in = &code->ptx->insts[k];
	const gpul_ptx_loc *loc = in->loc == GPUL_PTX_NONE ? NULL : &m->locs[in->loc];
	struct row *row = gpul_array_push(&p->rows);
	char text[400];

	if (!row)
		return false;
	gpul_ptx_print_inst(m, code->ptx, in, text, sizeof text);
	*row = (struct row){ .insn = first,
			     .line = in->line,
			     .opcode = in->opcode,
			     .by = access_by(in),
			     .branch = is_branch(in),
			     .guard = row_guard(code, in, first) };
	if (loc && !loc->line && k) { /* the compiler has added this instruction, so it is counted for the preceding line */
		row->source = row[-1].source;
		row->source_line = row[-1].source_line;
		row->at_source = row[-1].at_source;
		row->at_line = row[-1].at_line;
	} else if (loc) {
		row->source = source_row(p, m, loc->file);
		row->source_line = loc->line;
		row->at_source = loc->at_line ? source_row(p, m, loc->at_file) : 0;
		row->at_line = loc->at_line;
	}
	row->text = strdup(text);
	return row->text;
}

/* Describe the rows of a plan.  If memory runs out, the report lacks the remaining rows.  The caller holds the lock. */
static void describe(struct plan *p, const struct func_code *code)
{
	static unsigned n_described;
	uint32_t block = 0, at = 0;

	p->described = true;
	p->order = n_described++;
	p->is_kernel = code->ptx->kind == GPUL_PTX_FUNC_ENTRY;
	p->name = strdup(gpul_ptx_name(code->program->module, code->ptx->name));
	p->file = strdup(code->program->file_name);
	p->registers = gpul_registers_estimate(code->ptx);
	p->block_of = calloc(code->ptx->n_insts + 1, sizeof *p->block_of);
	if (!p->name || !p->file || !p->block_of)
		return;
	for (uint32_t k = 0; k < code->ptx->n_insts; k++) {
		while (at < p->n_insns && code->insns[at].src < k)
			at++;
		for (uint32_t n = block; n <= at && n < p->n_insns; n++)
			block = p->counted[n] & COUNTED_BLOCK ? n : block;
		p->block_of[k] = block;
		if (!describe_row(p, code, k, at))
			return;
	}
}

struct plan *gpul_plan_of(const struct func_code *code, bool wanted)
{
	struct plan *p;

	pthread_mutex_lock(&lock);
	p = find_plan(code);
	if (p && wanted && !p->described)
		describe(p, code);
	pthread_mutex_unlock(&lock);
	return p;
}

void gpul_profile_launch_begins(struct observer *o, gpul_exec_launch *l)
{
	struct plan *p = gpul_plan_of(l->kernel->code, true);
	struct launch_shape *shape;
	unsigned k = 0;

	(void)o;
	if (!p)
		return;
	pthread_mutex_lock(&lock);
	p->n_launches++;
	while (k < p->n_shapes &&
	       (memcmp(p->shapes[k].grid, l->grid, sizeof l->grid) || memcmp(p->shapes[k].block, l->block, sizeof l->block) ||
		p->shapes[k].shared_bytes != l->kernel->info.shared_bytes + l->dynamic_bytes))
		k++;
	if (k < MAX_SHAPES) {
		shape = &p->shapes[k];
		if (k == p->n_shapes) {
			p->n_shapes++;
			memcpy(shape->grid, l->grid, sizeof shape->grid);
			memcpy(shape->block, l->block, sizeof shape->block);
			shape->shared_bytes = l->kernel->info.shared_bytes + l->dynamic_bytes;
		}
		shape->n++;
	}
	pthread_mutex_unlock(&lock);
}
