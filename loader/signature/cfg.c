/* cfg.c — builds the control-flow graph of a function: its basic blocks and their predecessors. */
#include "loader/signature/ssa_internal.h"

#include <stdlib.h>

static bool ends_block(const gpul_ptx_inst *in)
{
	return in->opcode == GPUL_PTX_BRA || in->opcode == GPUL_PTX_BRX || in->opcode == GPUL_PTX_RET || in->opcode == GPUL_PTX_EXIT ||
	       in->opcode == GPUL_PTX_TRAP;
}

/* Number the blocks.  On entry, b->of marks the first instruction of each block; the numbers of the blocks replace the marks. */
static void number_blocks(const gpul_ptx_func *f, gpul_cfg *b)
{
	b->of[0] = 1;
	for (uint32_t i = 0; i < f->n_labels; i++)
		if (f->labels[i].kind == GPUL_PTX_LABEL_CODE && f->labels[i].inst < f->n_insts)
			b->of[f->labels[i].inst] = 1;
	for (uint32_t k = 0; k + 1 < f->n_insts; k++)
		if (ends_block(&f->insts[k]))
			b->of[k + 1] = 1;
	for (uint32_t k = 0; k < f->n_insts; k++) {
		if (b->of[k])
			b->first[b->n_blocks++] = k;
		b->of[k] = b->n_blocks - 1;
	}
}

/* Called for each edge: the first pass counts the predecessors, the second pass writes them. */
typedef void edge_visitor(gpul_cfg *b, uint32_t from, uint32_t to);

static void count_edge(gpul_cfg *b, uint32_t from, uint32_t to)
{
	(void)from;
	b->first_pred[to + 1]++;
}

/* Store a predecessor.  A block's range in preds is filled from its end, so that first_pred[to + 1] is its start when it is full. */
static void write_edge(gpul_cfg *b, uint32_t from, uint32_t to)
{
	b->preds[--b->first_pred[to + 1]] = from;
}

static void edge_to_label(const gpul_ptx_func *f, gpul_cfg *b, uint32_t from, const gpul_ptx_operand *o, edge_visitor *edge)
{
	const gpul_ptx_label *label;

	if (o->kind != GPUL_PTX_OP_LABEL || o->index >= f->n_labels)
		return;
	label = &f->labels[o->index];
	if (label->kind == GPUL_PTX_LABEL_CODE) {
		if (label->inst < f->n_insts)
			edge(b, from, b->of[label->inst]);
		return;
	}
	for (uint32_t i = 0; i < label->n_targets; i++) {
		const gpul_ptx_operand *t = &f->operands[label->first_target + i];

		if (t->kind == GPUL_PTX_OP_LABEL && t->index < f->n_labels && f->labels[t->index].inst < f->n_insts)
			edge(b, from, b->of[f->labels[t->index].inst]);
	}
}

static void visit_edges(const gpul_ptx_func *f, gpul_cfg *b, edge_visitor *edge)
{
	for (uint32_t k = 0; k < f->n_insts; k++) {
		const gpul_ptx_inst *in = &f->insts[k];
		bool last = k + 1 == f->n_insts;

		if (in->opcode == GPUL_PTX_BRA || in->opcode == GPUL_PTX_BRX)
			for (unsigned i = 0; i < in->n_operands; i++)
				edge_to_label(f, b, b->of[k], &f->operands[in->first_operand + i], edge);
		if (!last && b->of[k + 1] != b->of[k] && (!ends_block(in) || in->guard != GPUL_PTX_NONE))
			edge(b, b->of[k], b->of[k + 1]);
	}
}

bool gpul_cfg_open(const gpul_ptx_func *f, gpul_cfg *out)
{
	uint32_t n = f->n_insts ? f->n_insts : 1;
	gpul_cfg b = { calloc(n, sizeof *b.of), calloc(n, sizeof *b.first), NULL, NULL, 0 };

	*out = (gpul_cfg){ 0 };
	if (!b.of || !b.first)
		goto close;
	if (f->n_insts)
		number_blocks(f, &b);
	/* Element i + 1 first counts the predecessors of block i; the prefix sum then makes it the end of their range in preds.  One
	 * more element, which is not used later, is allocated. */
	b.first_pred = calloc((size_t)b.n_blocks + 2, sizeof *b.first_pred);
	if (!b.first_pred)
		goto close;
	visit_edges(f, &b, count_edge);
	for (uint32_t i = 1; i <= b.n_blocks; i++)
		b.first_pred[i] += b.first_pred[i - 1];
	b.preds = calloc((size_t)b.first_pred[b.n_blocks] + 1, sizeof *b.preds);
	if (!b.preds)
		goto close;
	b.first_pred[b.n_blocks + 1] = b.first_pred[b.n_blocks];
	visit_edges(f, &b, write_edge);
	for (uint32_t i = 0; i <= b.n_blocks; i++) /* element i + 1 is now the start of block i's range: move it to element i */
		b.first_pred[i] = b.first_pred[i + 1];
	*out = b;
	return true;
close:
	gpul_cfg_close(&b);
	return false;
}

void gpul_cfg_close(gpul_cfg *b)
{
	free(b->of);
	free(b->first);
	free(b->first_pred);
	free(b->preds);
	*b = (gpul_cfg){ 0 };
}
