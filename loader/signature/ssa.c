/* ssa.c — numbers the SSA values of a function and lists its phis. */
#include "loader/signature/ssa_internal.h"

#include <stdlib.h>

#include "loader/signature/inst_internal.h"

/* If a function has more phis than these limits together, each remaining register is treated as one value, so that the time of the
 * analysis stays proportional to the size of the code. */
#define PHIS_PER_INST 4
#define PHIS_ALWAYS   4096

typedef struct reg_use { /* a use or a definition of a register */
	uint32_t inst, operand;
	bool written;
} reg_use;

typedef struct numbering {
	const gpul_ptx_func *f;
	gpul_ssa v;
	gpul_cfg cfg;
	uint32_t *first_use; /* for each register: index of its first element in `uses`, which contains only uses of
			      * registers with several writes; one more element is the length of `uses` */
	uint32_t *n_writes;  /* number of writes of each register */
	reg_use *uses;
	uint32_t *entry, *exit;  /* for each block: the register's value at its start and end, or NONE */
	uint32_t *work;          /* work list: blocks that need a value on entry, each once */
	uint32_t n_done, n_work; /* number of handled blocks, and of all blocks, in the work list */
	size_t phis_room;        /* number of elements allocated in v.phis */
	bool no_memory;
} numbering;

typedef void use_visitor(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand, bool written);

/* ---- uses and definitions -------------------------------------------------------- */

static void visit_operand(numbering *n, uint32_t inst, uint32_t row, bool written, bool writes, use_visitor *visit)
{
	const gpul_ptx_operand *o = &n->f->operands[row];

	if (o->kind == GPUL_PTX_OP_REG) {
		if (written == writes)
			visit(n, o->index, inst, row, written);
		return;
	}
	if (o->kind == GPUL_PTX_OP_ADDRESS)
		written = false; /* a register in an address is read, not written */
	if (o->kind == GPUL_PTX_OP_ADDRESS || o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR || o->kind == GPUL_PTX_OP_LIST)
		for (uint32_t i = 0; i < o->n_children; i++)
			visit_operand(n, inst, o->first_child + i, written, writes, visit);
}

/* Visit uses in the order of execution: an instruction's reads come before its writes. */
static void visit_uses(numbering *n, use_visitor *visit)
{
	for (uint32_t k = 0; k < n->f->n_insts; k++) {
		const gpul_ptx_inst *in = &n->f->insts[k];
		bool first_written = in->opcode == GPUL_PTX_CALL
					     ? in->n_operands > 0 && n->f->operands[in->first_operand].kind == GPUL_PTX_OP_LIST
					     : gpul_inst_writes(in);

		for (int writes = 0; writes <= 1; writes++)
			for (unsigned i = 0; i < in->n_operands; i++)
				visit_operand(n, k, in->first_operand + i, i == 0 && first_written, writes, visit);
	}
}

static void count_write(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand, bool written)
{
	(void)inst;
	(void)operand;
	n->n_writes[reg] += written;
}

static void count_use(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand, bool written)
{
	(void)inst;
	(void)written;
	n->v.of[operand] = reg;
	n->first_use[reg + 1] += n->n_writes[reg] > 1;
}

static void write_use(numbering *n, uint32_t reg, uint32_t inst, uint32_t operand, bool written)
{
	if (n->n_writes[reg] > 1)
		n->uses[n->first_use[reg]++] = (reg_use){ inst, operand, written };
}

/* Exclude registers whose writes cannot be distinguished, so that they keep one value: parameters; return values; registers of
 * module scope, which called functions may write; and vectors, because an operand may be a whole vector. */
static void exclude_registers(numbering *n)
{
	const gpul_ptx_func *f = n->f;

	for (uint32_t i = 0; i < f->n_module_regs; i++)
		n->n_writes[i] = 0;
	for (uint32_t i = 0; i < f->n_params; i++)
		if (f->params[i].space == GPUL_PTX_MOD_REG)
			n->n_writes[f->params[i].reg] = 0;
	for (uint32_t i = 0; i < f->n_rets; i++)
		if (f->rets[i].space == GPUL_PTX_MOD_REG)
			n->n_writes[f->rets[i].reg] = 0;
	for (uint32_t i = 0; i < f->n_regs; i++)
		for (uint32_t k = 0; f->regs[i].vector > 1 && k < f->regs[i].count * f->regs[i].vector; k++)
			n->n_writes[f->regs[i].first + k] = 0;
}

/* ---- numbering ------------------------------------------------------------------- */

static void add_phi(numbering *n, uint32_t inst, uint32_t to, uint32_t from, uint32_t pred)
{
	if (n->v.n_phis == n->phis_room) {
		size_t room = n->phis_room ? n->phis_room * 2 : 64;
		gpul_phi *more = realloc(n->v.phis, room * sizeof *more);

		if (!more) {
			n->no_memory = true;
			return;
		}
		n->v.phis = more;
		n->phis_room = room;
	}
	n->v.phis[n->v.n_phis++] = (gpul_phi){ inst, to, from, pred };
}

/* Return the value of the register at the start of a block; if it has none yet, resolve_entries() will add a phi. */
static uint32_t entry_value(numbering *n, uint32_t block)
{
	if (n->entry[block] == GPUL_PTX_NONE) {
		n->entry[block] = n->v.n_values++;
		n->work[n->n_work++] = block;
	}
	return n->entry[block];
}

static void resolve_entries(numbering *n)
{
	for (; n->n_done < n->n_work; n->n_done++) {
		uint32_t block = n->work[n->n_done];

		for (uint32_t i = n->cfg.first_pred[block]; i < n->cfg.first_pred[block + 1]; i++) {
			uint32_t pred = n->cfg.preds[i];
			uint32_t from = n->exit[pred] != GPUL_PTX_NONE ? n->exit[pred] : entry_value(n, pred);

			add_phi(n, n->cfg.first[block], n->entry[block], from, pred);
		}
	}
}

/* True if a write may leave the old value, or a part of it, in the register. */
static bool keeps_old_value(const numbering *n, const reg_use *p)
{
	const gpul_ptx_inst *in = &n->f->insts[p->inst];

	return in->guard != GPUL_PTX_NONE || in->opcode == GPUL_PTX_WGMMA || n->f->operands[p->operand].selector;
}

static void number_register(numbering *n, const reg_use *first, const reg_use *end)
{
	uint32_t current = GPUL_PTX_NONE, block = GPUL_PTX_NONE;

	for (const reg_use *p = first; p < end; p++)
		if (p->written) {
			n->v.of[p->operand] = n->v.n_values++;
			n->exit[n->cfg.of[p->inst]] = n->v.of[p->operand];
		}
	for (const reg_use *p = first; p < end; p++) {
		if (n->cfg.of[p->inst] != block) {
			block = n->cfg.of[p->inst];
			current = GPUL_PTX_NONE;
		}
		if (current == GPUL_PTX_NONE && (!p->written || keeps_old_value(n, p)))
			current = entry_value(n, block);
		if (p->written && keeps_old_value(n, p))
			add_phi(n, p->inst, n->v.of[p->operand], current, GPUL_PTX_NONE);
		if (p->written)
			current = n->v.of[p->operand];
		else
			n->v.of[p->operand] = current;
	}
	resolve_entries(n);
	for (const reg_use *p = first; p < end; p++)
		n->exit[n->cfg.of[p->inst]] = GPUL_PTX_NONE;
	while (n->n_work)
		n->entry[n->work[--n->n_work]] = GPUL_PTX_NONE;
	n->n_done = 0;
}

static int by_inst(const void *a, const void *b)
{
	uint32_t x = ((const gpul_phi *)a)->inst, y = ((const gpul_phi *)b)->inst;

	return (x > y) - (x < y);
}

static void number_all(numbering *n)
{
	uint64_t most = (uint64_t)n->f->n_insts * PHIS_PER_INST + PHIS_ALWAYS;

	/* Here first_use[r] is the end of register r's elements in `uses`, because write_use() has advanced it. */
	for (uint32_t r = 0; r < n->f->n_flat_regs && n->v.n_phis <= most; r++) {
		uint32_t begin = r ? n->first_use[r - 1] : 0;

		if (n->first_use[r] > begin)
			number_register(n, n->uses + begin, n->uses + n->first_use[r]);
	}
	if (n->v.n_phis)
		qsort(n->v.phis, n->v.n_phis, sizeof *n->v.phis, by_inst);
}

/* ---- create and free the numbering ----------------------------------------------- */

static uint32_t *filled_array(size_t n, uint32_t with)
{
	uint32_t *a = malloc((n ? n : 1) * sizeof *a);

	for (size_t i = 0; a && i < n; i++)
		a[i] = with;
	return a;
}

static bool any_several_writes(const numbering *n)
{
	for (uint32_t r = 0; r < n->f->n_flat_regs; r++)
		if (n->n_writes[r] > 1)
			return true;
	return false;
}

/* Allocate the tables that are needed only if some register has several writes. */
static bool allocate_tables(numbering *n)
{
	uint32_t n_uses;

	if (!gpul_cfg_open(n->f, &n->cfg))
		return false;
	n->v.of = filled_array(n->f->n_operands, 0);
	n->first_use = filled_array((size_t)n->f->n_flat_regs + 1, 0);
	n->entry = filled_array(n->cfg.n_blocks, GPUL_PTX_NONE);
	n->exit = filled_array(n->cfg.n_blocks, GPUL_PTX_NONE);
	n->work = filled_array(n->cfg.n_blocks, 0);
	if (!n->v.of || !n->first_use || !n->entry || !n->exit || !n->work)
		return false;
	visit_uses(n, count_use);
	for (uint32_t r = 0; r < n->f->n_flat_regs; r++)
		n->first_use[r + 1] += n->first_use[r];
	n_uses = n->first_use[n->f->n_flat_regs];
	n->uses = calloc(n_uses ? n_uses : 1, sizeof *n->uses);
	if (!n->uses)
		return false;
	visit_uses(n, write_use);
	return true;
}

bool gpul_ssa_open(const gpul_ptx_func *f, gpul_ssa *out)
{
	numbering n = { .f = f, .v = { .n_values = f->n_flat_regs } };

	*out = (gpul_ssa){ 0 };
	n.n_writes = filled_array(f->n_flat_regs, 0);
	n.no_memory = !n.n_writes;
	if (n.no_memory)
		goto close;
	visit_uses(&n, count_write);
	exclude_registers(&n);
	if (!any_several_writes(&n))
		goto close;
	n.no_memory = !allocate_tables(&n);
	if (!n.no_memory)
		number_all(&n);
close:
	gpul_cfg_close(&n.cfg);
	free(n.n_writes);
	free(n.first_use);
	free(n.uses);
	free(n.entry);
	free(n.exit);
	free(n.work);
	if (n.no_memory)
		gpul_ssa_close(&n.v);
	else
		*out = n.v;
	return !n.no_memory;
}

void gpul_ssa_close(gpul_ssa *v)
{
	free(v->of);
	free(v->phis);
	*v = (gpul_ssa){ 0 };
}
