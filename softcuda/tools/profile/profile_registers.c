/* profile_registers.c — estimates the registers per thread. PTX registers are virtual; only ptxas allocates real ones.
 *
 * This is a liveness analysis over the basic blocks of the PTX, a backward dataflow problem: live-in = uses + (live-out - defs). The
 * estimate is the largest number of 32-bit registers that are live between two instructions. ptxas reorders instructions, so it may
 * need more or fewer. */
#include "softcuda/tools/profile/profile_internal.h"

enum { LEAST_REGISTERS = 16, MOST_REGISTERS = 255, ABI_REGISTERS = 2 };
/* maximum size of the register sets; if they would be larger, the estimate is MOST_REGISTERS */
enum { MOST_BYTES = 256 << 20 };

struct flow {
	const gpul_ptx_func *f;
	uint32_t n_blocks, words; /* words: size of a register set in 64-bit words */
	uint32_t *block_of;       /* for each instruction: its block */
	uint32_t *first;          /* for each block: its first instruction; first[n_blocks] is n_insts */
	uint64_t *in;             /* for each block: its live-in set */
	uint64_t *now;            /* the live set at the current position of the analysis */
	uint8_t *width;           /* for each register: its size in 32-bit registers */
};

static void set_register(uint64_t *set, uint32_t r, bool on)
{
	if (on)
		set[r / 64] |= 1ull << r % 64;
	else
		set[r / 64] &= ~(1ull << r % 64);
}

/* Add the registers of an operand to the live set w->now (if `on` is set), or remove them. */
static void each_register(struct flow *w, const gpul_ptx_operand *o, bool on, unsigned depth)
{
	if (o->kind == GPUL_PTX_OP_REG && o->index < w->f->n_flat_regs)
		set_register(w->now, o->index, on);
	if (o->kind == GPUL_PTX_OP_ADDRESS || o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR || o->kind == GPUL_PTX_OP_LIST)
		for (uint32_t k = 0; k < o->n_children && depth < 4; k++)
			each_register(w, &w->f->operands[o->first_child + k], on, depth + 1);
}

static bool writes_nothing(const gpul_ptx_inst *in)
{
	switch (in->opcode) {
	case GPUL_PTX_ST:
	case GPUL_PTX_RED:
	case GPUL_PTX_BRA:
	case GPUL_PTX_BRX:
	case GPUL_PTX_CP:
	case GPUL_PTX_PREFETCH:
		return true;
	case GPUL_PTX_BAR:
	case GPUL_PTX_BARRIER:
		return !gpul_ptx_has_mod(in, GPUL_PTX_MOD_RED);
	default:
		return false;
	}
}

/* Change w->now from the set of registers that are live after the instruction to the set that is live before it. */
static void step_back(struct flow *w, const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *o = &w->f->operands[in->first_operand];
	unsigned k = 0;

	if (in->n_operands && !writes_nothing(in) && o->kind != GPUL_PTX_OP_ADDRESS) {
		if (in->guard == GPUL_PTX_NONE) /* with a guard, the register may keep its old value */
			each_register(w, o, false, 0);
		k = 1;
	}
	for (; k < in->n_operands; k++)
		each_register(w, &o[k], true, 0);
	if (in->guard != GPUL_PTX_NONE)
		set_register(w->now, in->guard, true);
}

/* ---- blocks --------------------------------------------------------------------------------------------------------------- */

static bool ends_block(const gpul_ptx_inst *in)
{
	return in->opcode == GPUL_PTX_BRA || in->opcode == GPUL_PTX_BRX || in->opcode == GPUL_PTX_RET || in->opcode == GPUL_PTX_EXIT;
}

static bool find_blocks(struct flow *w)
{
	const gpul_ptx_func *f = w->f;
	bool *leads = calloc(f->n_insts + 1, sizeof *leads);
	uint32_t n = 0;

	if (!leads)
		return false;
	leads[0] = true;
	for (uint32_t k = 0; k < f->n_labels; k++)
		leads[f->labels[k].inst] = true;
	for (uint32_t k = 0; k < f->n_insts; k++)
		if (ends_block(&f->insts[k]))
			leads[k + 1] = true;
	w->block_of = calloc(f->n_insts + 1, sizeof *w->block_of);
	w->first = calloc(f->n_insts + 2, sizeof *w->first);
	for (uint32_t k = 0; w->block_of && w->first && k < f->n_insts; k++) {
		if (leads[k])
			w->first[n++] = k;
		w->block_of[k] = n - 1;
	}
	free(leads);
	if (!w->block_of || !w->first)
		return false;
	w->first[n] = f->n_insts;
	w->n_blocks = n;
	return true;
}

static void join_block_at(struct flow *w, uint32_t inst)
{
	if (inst >= w->f->n_insts)
		return;
	for (uint32_t k = 0; k < w->words; k++)
		w->now[k] |= w->in[(size_t)w->block_of[inst] * w->words + k];
}

/* Compute the live-out set of a block in w->now. */
static void live_out(struct flow *w, uint32_t block)
{
	const uint32_t last = w->first[block + 1] - 1;
	const gpul_ptx_inst *in = &w->f->insts[last];
	const bool leaves = in->opcode == GPUL_PTX_RET || in->opcode == GPUL_PTX_EXIT,
		   jumps = in->opcode == GPUL_PTX_BRA || in->opcode == GPUL_PTX_BRX;

	memset(w->now, 0, w->words * sizeof *w->now);
	if (in->guard != GPUL_PTX_NONE || (!leaves && !jumps))
		join_block_at(w, last + 1);
	for (uint32_t k = 0; jumps && k < in->n_operands; k++) {
		const gpul_ptx_operand *o = &w->f->operands[in->first_operand + k];
		const gpul_ptx_label *label = o->kind == GPUL_PTX_OP_LABEL ? &w->f->labels[o->index] : NULL;

		if (!label)
			continue;
		if (label->kind == GPUL_PTX_LABEL_CODE)
			join_block_at(w, label->inst);
		for (uint32_t n = 0; label->kind == GPUL_PTX_LABEL_BRANCHTARGETS && n < label->n_targets; n++)
			join_block_at(w, w->f->labels[w->f->operands[label->first_target + n].index].inst);
	}
}

static void find_live_in(struct flow *w)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t b = w->n_blocks; b-- > 0;) {
			uint64_t *in = &w->in[(size_t)b * w->words];

			live_out(w, b);
			for (uint32_t k = w->first[b + 1]; k-- > w->first[b];)
				step_back(w, &w->f->insts[k]);
			changed |= memcmp(in, w->now, w->words * sizeof *in) != 0;
			memcpy(in, w->now, w->words * sizeof *in);
		}
	}
}

static unsigned width_of_set(const struct flow *w)
{
	unsigned sum = 0;

	for (uint32_t k = 0; k < w->words; k++)
		for (uint64_t rest = w->now[k]; rest; rest &= rest - 1)
			sum += w->width[k * 64 + (unsigned)__builtin_ctzll(rest)];
	return sum;
}

static unsigned most_live(struct flow *w)
{
	unsigned most = 0;

	for (uint32_t b = 0; b < w->n_blocks; b++) {
		live_out(w, b);
		for (uint32_t k = w->first[b + 1]; k-- > w->first[b];) {
			const unsigned live = (step_back(w, &w->f->insts[k]), width_of_set(w));

			most = live > most ? live : most;
		}
	}
	return most;
}

unsigned gpul_registers_estimate(const gpul_ptx_func *f)
{
	struct flow w = { .f = f, .words = f->n_flat_regs / 64 + 1 };
	unsigned most = MOST_REGISTERS;

	if (!f->n_insts)
		return LEAST_REGISTERS;
	if (!find_blocks(&w) || (uint64_t)w.n_blocks * w.words * sizeof *w.in > MOST_BYTES)
		goto done;
	w.in = calloc((size_t)w.n_blocks * w.words, sizeof *w.in);
	w.now = calloc(w.words, sizeof *w.now);
	w.width = calloc(w.words, 64);
	if (!w.in || !w.now || !w.width)
		goto done;
	for (uint32_t r = 0; r < f->n_flat_regs; r++)
		w.width[r] = (uint8_t)((gpul_ptx_type_bytes(gpul_ptx_reg_row(f, r)->type) + 3) / 4);
	find_live_in(&w);
	most = most_live(&w) + ABI_REGISTERS;
	most = most < LEAST_REGISTERS ? LEAST_REGISTERS : most > MOST_REGISTERS ? MOST_REGISTERS : most;
	if (f->tuning.maxnreg > 0 && most > (uint64_t)f->tuning.maxnreg)
		most = (unsigned)f->tuning.maxnreg;
done:
	free(w.block_of);
	free(w.first);
	free(w.in);
	free(w.now);
	free(w.width);
	return most;
}
