/* values.c — see values_internal.h. */
#include "loader/signature/values_internal.h"

#include <stdlib.h>

#include "loader/signature/blocks_internal.h"
#include "loader/signature/flow_internal.h"

/* Beyond so many merges the rest of the registers keep one value each: time stays in
 * proportion to the size of the code. */
#define MERGES_PER_INST 4
#define MERGES_ALWAYS   4096

typedef struct place { /* where a register is named */
	uint32_t inst, operand;
	bool written;
} place;

typedef struct numbering {
	const gpul_ptx_func *f;
	gpul_values v;
	gpul_blocks blocks;
	uint32_t
		*first_place; /* by register, and one past the last; only with several writes */
	uint32_t *n_writes;   /* by register */
	place *places;
	uint32_t *entry, *exit; /* by block: the register's value at its ends, or NONE */
	uint32_t *work;         /* blocks whose entry is asked for; each is asked for once */
	uint32_t n_work, n_asked;
	size_t room; /* of v.merges */
	bool no_memory;
} numbering;

typedef void on_place(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand,
		      bool written);

/* ---- where registers are named --------------------------------------------------- */

static void visit_operand(numbering *n, uint32_t inst, uint32_t row, bool written, bool writes,
			  on_place *each)
{
	const gpul_ptx_operand *o = &n->f->operands[row];

	if (o->kind == GPUL_PTX_OP_REG) {
		if (written == writes)
			each(n, o->index, inst, row, written);
		return;
	}
	if (o->kind == GPUL_PTX_OP_ADDRESS)
		written = false; /* what is in an address is read */
	if (o->kind == GPUL_PTX_OP_ADDRESS || o->kind == GPUL_PTX_OP_VECTOR ||
	    o->kind == GPUL_PTX_OP_PAIR || o->kind == GPUL_PTX_OP_LIST)
		for (uint32_t i = 0; i < o->n_children; i++)
			visit_operand(n, inst, o->first_child + i, written, writes, each);
}

/* In the order of execution: what an instruction reads, then what it writes. */
static void visit_places(numbering *n, on_place *each)
{
	for (uint32_t k = 0; k < n->f->n_insts; k++) {
		const gpul_ptx_inst *in = &n->f->insts[k];
		bool first_written = in->opcode == GPUL_PTX_CALL
					     ? in->n_operands > 0 &&
						       n->f->operands[in->first_operand].kind ==
							       GPUL_PTX_OP_LIST
					     : gpul_flow_writes(in);

		for (int writes = 0; writes <= 1; writes++)
			for (unsigned i = 0; i < in->n_operands; i++)
				visit_operand(n, k, in->first_operand + i,
					      i == 0 && first_written, writes, each);
	}
}

static void count_write(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand,
			bool written)
{
	(void)inst;
	(void)operand;
	n->n_writes[reg] += written;
}

static void count_place(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand,
			bool written)
{
	(void)inst;
	(void)written;
	n->v.of[operand] = reg;
	n->first_place[reg + 1] += n->n_writes[reg] > 1;
}

static void write_place(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand,
			bool written)
{
	if (n->n_writes[reg] > 1)
		n->places[n->first_place[reg]++] = (place){ inst, operand, written };
}

/* Registers that have one value however often they are written: those that pass parameters,
 * and vectors, which are also named as a whole. */
static void leave_out(numbering *n)
{
	const gpul_ptx_func *f = n->f;

	for (uint32_t i = 0; i < f->n_params; i++)
		if (f->params[i].space == GPUL_PTX_MOD_REG)
			n->n_writes[f->params[i].reg] = 0;
	for (uint32_t i = 0; i < f->n_rets; i++)
		if (f->rets[i].space == GPUL_PTX_MOD_REG)
			n->n_writes[f->rets[i].reg] = 0;
	for (uint32_t i = 0; i < f->n_regs; i++)
		for (uint32_t k = 0;
		     f->regs[i].vector > 1 && k < f->regs[i].count * f->regs[i].vector; k++)
			n->n_writes[f->regs[i].first + k] = 0;
}

/* ---- numbering ------------------------------------------------------------------- */

static void merge(numbering *n, uint32_t inst, uint32_t to, uint32_t from)
{
	if (n->v.n_merges == n->room) {
		size_t room = n->room ? n->room * 2 : 64;
		gpul_merge *more = realloc(n->v.merges, room * sizeof *more);

		if (!more) {
			n->no_memory = true;
			return;
		}
		n->v.merges = more;
		n->room = room;
	}
	n->v.merges[n->v.n_merges++] = (gpul_merge){ inst, to, from };
}

/* The value at the beginning of a block; where it comes from is settled by ask_preds(). */
static uint32_t entry_of(numbering *n, uint32_t block)
{
	if (n->entry[block] == GPUL_PTX_NONE) {
		n->entry[block] = n->v.n_values++;
		n->work[n->n_asked++] = block;
	}
	return n->entry[block];
}

static void ask_preds(numbering *n)
{
	for (; n->n_work < n->n_asked; n->n_work++) {
		uint32_t block = n->work[n->n_work];

		for (uint32_t i = n->blocks.first_pred[block];
		     i < n->blocks.first_pred[block + 1]; i++) {
			uint32_t pred = n->blocks.preds[i];
			uint32_t from = n->exit[pred] != GPUL_PTX_NONE ? n->exit[pred]
								       : entry_of(n, pred);

			merge(n, n->blocks.first[block], n->entry[block], from);
		}
	}
}

/* A write that leaves the old value, or a part of it, in place. */
static bool keeps_old(const numbering *n, const place *p)
{
	const gpul_ptx_inst *in = &n->f->insts[p->inst];

	return in->guard != GPUL_PTX_NONE || in->opcode == GPUL_PTX_WGMMA ||
	       n->f->operands[p->operand].selector;
}

static void number_register(numbering *n, const place *first, const place *end)
{
	uint32_t current = GPUL_PTX_NONE, block = GPUL_PTX_NONE;

	for (const place *p = first; p < end; p++)
		if (p->written) {
			n->v.of[p->operand] = n->v.n_values++;
			n->exit[n->blocks.of[p->inst]] = n->v.of[p->operand];
		}
	for (const place *p = first; p < end; p++) {
		if (n->blocks.of[p->inst] != block) {
			block = n->blocks.of[p->inst];
			current = GPUL_PTX_NONE;
		}
		if (current == GPUL_PTX_NONE && (!p->written || keeps_old(n, p)))
			current = entry_of(n, block);
		if (p->written && keeps_old(n, p))
			merge(n, p->inst, n->v.of[p->operand], current);
		if (p->written)
			current = n->v.of[p->operand];
		else
			n->v.of[p->operand] = current;
	}
	ask_preds(n);
	for (const place *p = first; p < end; p++)
		n->exit[n->blocks.of[p->inst]] = GPUL_PTX_NONE;
	while (n->n_asked)
		n->entry[n->work[--n->n_asked]] = GPUL_PTX_NONE;
	n->n_work = 0;
}

static int by_inst(const void *a, const void *b)
{
	uint32_t x = ((const gpul_merge *)a)->inst, y = ((const gpul_merge *)b)->inst;

	return (x > y) - (x < y);
}

static void number_all(numbering *n)
{
	uint64_t most = (uint64_t)n->f->n_insts * MERGES_PER_INST + MERGES_ALWAYS;

	/* write_place() has moved each register's row to its end: the next one's beginning. */
	for (uint32_t r = 0; r < n->f->n_flat_regs && n->v.n_merges <= most; r++) {
		uint32_t begin = r ? n->first_place[r - 1] : 0;

		if (n->first_place[r] > begin)
			number_register(n, n->places + begin, n->places + n->first_place[r]);
	}
	if (n->v.n_merges)
		qsort(n->v.merges, n->v.n_merges, sizeof *n->v.merges, by_inst);
}

/* ---- the whole ------------------------------------------------------------------- */

static uint32_t *filled(size_t n, uint32_t with)
{
	uint32_t *a = malloc((n ? n : 1) * sizeof *a);

	for (size_t i = 0; a && i < n; i++)
		a[i] = with;
	return a;
}

static bool several_writes(const numbering *n)
{
	for (uint32_t r = 0; r < n->f->n_flat_regs; r++)
		if (n->n_writes[r] > 1)
			return true;
	return false;
}

/* The tables that are only needed when some register has several values. */
static bool open_tables(numbering *n)
{
	uint32_t n_places;

	if (!gpul_blocks_open(n->f, &n->blocks))
		return false;
	n->v.of = filled(n->f->n_operands, 0);
	n->first_place = filled((size_t)n->f->n_flat_regs + 1, 0);
	n->entry = filled(n->blocks.n_blocks, GPUL_PTX_NONE);
	n->exit = filled(n->blocks.n_blocks, GPUL_PTX_NONE);
	n->work = filled(n->blocks.n_blocks, 0);
	if (!n->v.of || !n->first_place || !n->entry || !n->exit || !n->work)
		return false;
	visit_places(n, count_place);
	for (uint32_t r = 0; r < n->f->n_flat_regs; r++)
		n->first_place[r + 1] += n->first_place[r];
	n_places = n->first_place[n->f->n_flat_regs];
	n->places = calloc(n_places ? n_places : 1, sizeof *n->places);
	if (!n->places)
		return false;
	visit_places(n, write_place);
	return true;
}

bool gpul_values_open(const gpul_ptx_func *f, gpul_values *out)
{
	numbering n = { .f = f, .v = { .n_values = f->n_flat_regs } };

	*out = (gpul_values){ 0 };
	n.n_writes = filled(f->n_flat_regs, 0);
	n.no_memory = !n.n_writes;
	if (n.no_memory)
		goto close;
	visit_places(&n, count_write);
	leave_out(&n);
	if (!several_writes(&n))
		goto close;
	n.no_memory = !open_tables(&n);
	if (!n.no_memory)
		number_all(&n);
close:
	gpul_blocks_close(&n.blocks);
	free(n.n_writes);
	free(n.first_place);
	free(n.places);
	free(n.entry);
	free(n.exit);
	free(n.work);
	if (n.no_memory)
		gpul_values_close(&n.v);
	else
		*out = n.v;
	return !n.no_memory;
}

void gpul_values_close(gpul_values *v)
{
	free(v->of);
	free(v->merges);
	*v = (gpul_values){ 0 };
}
