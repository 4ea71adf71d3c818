/* result.c — adds the counters of all threads, by kernel, function and PTX instruction. */
#include "softcuda/tools/profile/profile_internal.h"

double gpul_ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void add_memory(struct memory_count *to, const struct memory_count *from)
{
	for (unsigned k = 0; k < N_SPACES; k++) {
		to->space[k].requests += from->space[k].requests;
		to->space[k].actual += from->space[k].actual;
		to->space[k].ideal += from->space[k].ideal;
		to->space[k].lines += from->space[k].lines;
	}
}

void gpul_add_counts(struct row_count *to, const struct row_count *from)
{
	to->warps += from->warps;
	to->threads += from->threads;
	to->guarded += from->guarded;
	to->branches += from->branches;
	to->diverged += from->diverged;
	add_memory(&to->memory, &from->memory);
}

/* ---- the counts of a tally (one thread, one function) by PTX instruction ---------------------------------------------- */

/* Add to *to the counts of a row (a PTX instruction), which was decoded to the interpreter instructions r->insn to end - 1. */
static void add_instructions(struct row_count *to, const struct tally *t, size_t row, uint32_t end)
{
	const struct plan *f = t->function;
	const struct row *r = &f->rows.at[row];
	const struct insn_count *block = &t->insns[f->block_of[row]];

	to->warps += block->warps;
	to->threads += block->threads;
	for (uint32_t k = r->insn; k < end; k++) {
		to->branches += t->insns[k].branches;
		to->diverged += t->insns[k].diverged;
		if (f->counted[k] & COUNTED_MEMORY)
			add_memory(&to->memory, &t->memory[f->memory_row[k]].count);
	}
	if (r->guard == GUARD_MASKS || r->branch)
		to->guarded += t->insns[r->insn].guarded;
	else if (r->guard == GUARD_SKIPS && r->insn + 1 < f->n_insns)
		to->guarded += t->insns[r->insn + 1].threads; /* counted at the guarded instruction, which follows the inserted branch */
	else
		to->guarded += block->threads;
}

static struct kernel_result *kernel_of(struct profile *p, const struct plan *kernel)
{
	struct kernel_result *k;

	for (size_t n = 0; n < p->kernels.n; n++)
		if (p->kernels.at[n].kernel == kernel)
			return &p->kernels.at[n];
	k = gpul_array_push(&p->kernels);
	if (k)
		k->kernel = kernel;
	return k;
}

static struct function_result *function_of(struct kernel_result *k, const struct plan *function)
{
	struct function_result *f;

	for (size_t n = 0; n < k->functions.n; n++)
		if (k->functions.at[n].function == function)
			return &k->functions.at[n];
	f = gpul_array_push(&k->functions);
	if (!f)
		return NULL;
	f->function = function;
	f->rows = calloc(function->rows.n + 1, sizeof *f->rows);
	return f->rows ? f : NULL;
}

static bool add_tally(struct profile *p, const struct tally *t)
{
	struct kernel_result *k = kernel_of(p, t->kernel);
	struct function_result *f = k ? function_of(k, t->function) : NULL;
	const struct plan *plan = t->function;

	if (!f)
		return false;
	for (size_t n = 0; n < plan->rows.n; n++)
		add_instructions(&f->rows[n], t, n, n + 1 < plan->rows.n ? plan->rows.at[n + 1].insn : plan->n_insns);
	return true;
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

static void sum_up(struct kernel_result *k, const struct architecture *a, unsigned registers)
{
	const struct launch_shape *shape = k->kernel->shapes;

	for (size_t n = 0; n < k->functions.n; n++) {
		const struct plan *f = k->functions.at[n].function;

		k->registers = f->registers > k->registers ? f->registers : k->registers;
		for (size_t r = 0; r < f->rows.n; r++) {
			gpul_add_counts(&k->sum, &k->functions.at[n].rows[r]);
			add_memory(&k->by[f->rows.at[r].by], &k->functions.at[n].rows[r].memory);
		}
	}
	k->registers = registers ? registers : k->registers;
	k->occupancy = gpul_occupancy(a, shape->block[0] * shape->block[1] * shape->block[2], k->registers, shape->shared_bytes);
}

/* Compare for sorting: the kernel first, then its functions by name, because the order of their first calls varies between runs. */
static int by_name(const void *a, const void *b)
{
	const struct plan *f = ((const struct function_result *)a)->function, *g = ((const struct function_result *)b)->function;

	if (f->is_kernel != g->is_kernel)
		return f->is_kernel ? -1 : 1;
	return strcmp(f->name, g->name);
}

static int by_launch(const void *a, const void *b)
{
	const struct kernel_result *k = a, *m = b;

	return k->kernel->order < m->kernel->order ? -1 : k->kernel->order > m->kernel->order;
}

gpul_status gpul_profile_collect(struct profile *p, unsigned registers, gpul_error *err)
{
	for (struct counters *c = gpul_counters(); c; c = c->next)
		for (struct tally *t = c->tallies; t; t = t->next)
			if (t->kernel->name && t->function->name && t->function->block_of && !add_tally(p, t))
				return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the profile");
	for (size_t k = 0; k < p->kernels.n; k++) {
		struct kernel_result *r = &p->kernels.at[k];

		qsort(r->functions.at, r->functions.n, sizeof *r->functions.at, by_name);
		sum_up(r, p->architecture, registers);
	}
	qsort(p->kernels.at, p->kernels.n, sizeof *p->kernels.at, by_launch);
	return GPUL_OK;
}

void gpul_profile_free(struct profile *p)
{
	for (size_t k = 0; k < p->kernels.n; k++) {
		for (size_t n = 0; n < p->kernels.at[k].functions.n; n++)
			free(p->kernels.at[k].functions.at[n].rows);
		gpul_array_free(&p->kernels.at[k].functions);
	}
	gpul_array_free(&p->kernels);
}
