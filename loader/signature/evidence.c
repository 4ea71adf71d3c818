/* evidence.c — collects the evidence of each instruction, and decides on a type. */
#include "loader/signature/evidence_internal.h"

#include <stdlib.h>

/* ---- classes --------------------------------------------------------------------- */

static uint32_t find_root(const gpul_evidence *e, uint32_t node)
{
	while (e->parent[node] != node) {
		e->parent[node] = e->parent[e->parent[node]]; /* shorten the path to the root (path halving) */
		node = e->parent[node];
	}
	return node;
}

static void unify(gpul_evidence *e, uint32_t a, uint32_t b)
{
	if (a == GPUL_PTX_NONE || b == GPUL_PTX_NONE)
		return;
	a = find_root(e, a);
	b = find_root(e, b);
	e->parent[b] = a;
	e->mask[a] |= e->mask[b];
}

static void add_evidence(gpul_evidence *e, uint32_t node, uint16_t mask)
{
	if (node != GPUL_PTX_NONE)
		e->mask[find_root(e, node)] |= mask;
}

uint16_t gpul_evidence_of(const gpul_evidence *e, uint32_t node)
{
	uint16_t mask = node == GPUL_PTX_NONE ? 0 : e->mask[find_root(e, node)];

	return mask == EVIDENCE_VIA_MEMORY && e->memory_floats ? mask : mask & (uint16_t)~EVIDENCE_VIA_MEMORY;
}

/* ---- evidence and types ---------------------------------------------------------- */

uint16_t gpul_evidence_of_type(uint16_t type)
{
	switch (type) {
	case GPUL_PTX_MOD_F16:
	case GPUL_PTX_MOD_F16X2:
		return EVIDENCE_F16;
	case GPUL_PTX_MOD_BF16:
	case GPUL_PTX_MOD_BF16X2:
		return EVIDENCE_BF16;
	case GPUL_PTX_MOD_F32:
	case GPUL_PTX_MOD_F32X2:
		return EVIDENCE_F32;
	case GPUL_PTX_MOD_F64:
		return EVIDENCE_F64;
	case GPUL_PTX_MOD_S8:
	case GPUL_PTX_MOD_S16:
	case GPUL_PTX_MOD_S32:
	case GPUL_PTX_MOD_S64:
		return EVIDENCE_SIGNED;
	case GPUL_PTX_MOD_U8:
	case GPUL_PTX_MOD_U16:
	case GPUL_PTX_MOD_U32:
	case GPUL_PTX_MOD_U64:
		return EVIDENCE_UNSIGNED;
	default:
		return 0;
	}
}

/* Return the evidence of an operation whose result does not depend on the sign of its operands. */
static uint16_t either_sign(uint16_t mask)
{
	if (mask & EVIDENCE_UNSIGNED)
		return EVIDENCE_MAYBE_UNSIGNED;
	return mask & EVIDENCE_SIGNED ? EVIDENCE_INT : mask;
}

static gpul_type float_type(uint16_t mask, unsigned bytes)
{
	if (mask == EVIDENCE_F64)
		return bytes == 8 ? GPUL_F64 : GPUL_TYPE_NONE;
	if (mask == EVIDENCE_F32)
		return bytes == 4 ? GPUL_F32 : GPUL_TYPE_NONE;
	if (bytes != 2 && bytes != 4) /* 4 bytes: a pair of halves, f16x2 */
		return GPUL_TYPE_NONE;
	return mask == EVIDENCE_F16 ? GPUL_F16 : mask == EVIDENCE_BF16 ? GPUL_BF16 : GPUL_TYPE_NONE;
}

static gpul_type int_type(bool is_unsigned, unsigned bytes)
{
	switch (bytes) {
	case 1:
		return is_unsigned ? GPUL_U8 : GPUL_I8;
	case 2:
		return is_unsigned ? GPUL_U16 : GPUL_I16;
	case 4:
		return is_unsigned ? GPUL_U32 : GPUL_I32;
	case 8:
		return is_unsigned ? GPUL_U64 : GPUL_I64;
	default:
		return GPUL_TYPE_NONE;
	}
}

gpul_type gpul_evidence_type(uint16_t mask, uint16_t fallback, unsigned bytes)
{
	if (fallback & EVIDENCE_FLOAT)
		mask = fallback; /* the accesses themselves contain a type: ld.f32 */
	if (mask & EVIDENCE_FLOAT)
		return mask & EVIDENCE_ANY_INT ? GPUL_TYPE_NONE : float_type(mask & EVIDENCE_FLOAT, bytes);
	if (mask & (EVIDENCE_SIGNED | EVIDENCE_UNSIGNED))
		return int_type(!(mask & EVIDENCE_SIGNED), bytes);
	if (mask == EVIDENCE_VIA_MEMORY || (!mask && !fallback))
		return GPUL_TYPE_NONE;
	/* No use of the value depends on its sign.  Compilers write ld.u32 even for int, and ld.u16 even for short, so choose the
	 * most common C types: int, short and unsigned char. */
	if (bytes == 1)
		return int_type(!(fallback & EVIDENCE_SIGNED), bytes);
	return int_type(mask == EVIDENCE_MAYBE_UNSIGNED, bytes);
}

/* ---- the evidence of an instruction ---------------------------------------------- */

static void add_to_operand(gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in, unsigned i, uint16_t mask)
{
	const gpul_ptx_operand *o;

	if (i >= in->n_operands)
		return;
	o = gpul_inst_operand(fn->f, in, i);
	if (o->kind == GPUL_PTX_OP_REG)
		add_evidence(e, gpul_operand_node(fn, o), mask);
	else if (o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR)
		for (uint32_t k = 0; k < o->n_children; k++)
			if (fn->f->operands[o->first_child + k].kind == GPUL_PTX_OP_REG)
				add_evidence(e, gpul_operand_node(fn, &fn->f->operands[o->first_child + k]), mask);
}

static void add_to_operands(gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in, unsigned first, unsigned last,
			    uint16_t mask)
{
	for (unsigned i = first; i <= last && i < in->n_operands; i++)
		add_to_operand(e, fn, in, i, mask);
}

static void unify_operands(gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in, unsigned i, unsigned k)
{
	const gpul_ptx_operand *a, *b;

	if (i >= in->n_operands || k >= in->n_operands)
		return;
	a = gpul_inst_operand(fn->f, in, i);
	if (a->kind == GPUL_PTX_OP_PAIR)
		a = &fn->f->operands[a->first_child];
	b = gpul_inst_operand(fn->f, in, k);
	if (a->kind == GPUL_PTX_OP_REG && b->kind == GPUL_PTX_OP_REG &&
	    gpul_ptx_reg_row(fn->f, a->index)->type == gpul_ptx_reg_row(fn->f, b->index)->type)
		unify(e, gpul_operand_node(fn, a), gpul_operand_node(fn, b));
}

/* Collect the evidence of a mov.b32 between %f and %r: older compilers copy the bits of a float into an integer register. */
static void collect_float_copy(gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_operand *a, const gpul_ptx_operand *b)
{
	uint16_t floats;

	if (a->kind != GPUL_PTX_OP_REG || b->kind != GPUL_PTX_OP_REG)
		return;
	floats = gpul_evidence_of_type(gpul_ptx_reg_row(fn->f, a->index)->type) |
		 gpul_evidence_of_type(gpul_ptx_reg_row(fn->f, b->index)->type);
	floats &= EVIDENCE_FLOAT;
	add_evidence(e, gpul_operand_node(fn, a), floats);
	add_evidence(e, gpul_operand_node(fn, b), floats);
}

static void collect_mov(gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in, uint16_t mask)
{
	const gpul_ptx_operand *from = gpul_inst_operand(fn->f, in, 1), *half;

	unify_operands(e, fn, in, 0, 1);
	collect_float_copy(e, fn, gpul_inst_operand(fn->f, in, 0), from);
	if (mask & EVIDENCE_FLOAT)
		add_to_operands(e, fn, in, 0, 1, mask);
	if (from->kind != GPUL_PTX_OP_VECTOR || from->n_children != 2)
		return;
	half = &fn->f->operands[from->first_child];
	if (half[0].kind == GPUL_PTX_OP_INT && half[0].value.i == 0 && half[1].kind == GPUL_PTX_OP_REG)
		add_evidence(e, gpul_operand_node(fn, &half[1]), EVIDENCE_BF16); /* mov.b32 %f, {0, x} converts the bf16 x to f32 */
}

static void collect_cvt(gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	uint16_t to = gpul_inst_type(in, 0), from = gpul_inst_type(in, 1);
	uint16_t source = gpul_evidence_of_type(from), target = gpul_evidence_of_type(to);

	/* truncating an integer does not depend on its sign */
	if (!(target & EVIDENCE_FLOAT) && gpul_ptx_type_bytes(to) <= gpul_ptx_type_bytes(from))
		source = either_sign(source);
	add_to_operand(e, fn, in, 0, either_sign(target));
	add_to_operands(e, fn, in, 1, in->n_operands, source);
}

static bool is_private(const gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_inst_access *a)
{
	return a->space == GPUL_PTX_MOD_LOCAL || a->space == GPUL_PTX_MOD_SHARED ||
	       (a->space == GPUL_PTX_MOD_NONE && gpul_absval_of(p, fn, a->address).flags & (AV_LOCAL | AV_SHARED));
}

static void unify_members(const gpul_dataflow *p, gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_inst_access *a)
{
	const gpul_ptx_operand *to = a->result;
	bool vector = to->kind == GPUL_PTX_OP_VECTOR;

	for (uint32_t i = 0; i < (vector ? to->n_children : 1); i++) {
		const gpul_leaf *leaf = gpul_leaf_of_access(p, fn, a, i);
		const gpul_ptx_operand *o = vector ? &fn->f->operands[to->first_child + i] : to;

		if (leaf)
			unify(e, leaf->node, gpul_operand_node(fn, o));
	}
}

static void collect_access(const gpul_dataflow *p, gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in,
			   const gpul_inst_access *a)
{
	const gpul_ptx_operand *value = a->result ? a->result : a->value;
	uint16_t mask = gpul_evidence_of_type(a->type);
	bool ordered = gpul_ptx_has_mod(in, GPUL_PTX_MOD_MIN) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_MAX);

	if (a->atomic && !ordered)
		mask = either_sign(mask);
	if (a->result && gpul_leaf_of_access(p, fn, a, 0))
		unify_members(p, e, fn, a);
	else if (a->space == GPUL_PTX_MOD_PARAM && value && value->kind == GPUL_PTX_OP_REG &&
		 fn->f->operands[a->address->first_child].kind == GPUL_PTX_OP_SYMBOL)
		unify(e, gpul_operand_node(fn, a->address), gpul_operand_node(fn, value));
	if (a->atomic || mask & EVIDENCE_FLOAT)
		add_to_operands(e, fn, in, 0, in->n_operands, mask);
	if (is_private(p, fn, a))
		add_to_operands(e, fn, in, 0, in->n_operands, EVIDENCE_VIA_MEMORY);
}

static void collect_call(const gpul_dataflow *p, gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	gpul_inst_call c = gpul_inst_call_parts(fn->f, in);
	const gpul_dataflow_func *to = gpul_dataflow_callee(p, c.target);

	if (!to)
		return;
	for (uint32_t i = 0; c.args && i < c.args->n_children && i < to->f->n_params; i++)
		unify(e, gpul_param_node(to, i), gpul_operand_node(fn, &fn->f->operands[c.args->first_child + i]));
	for (uint32_t i = 0; c.rets && i < c.rets->n_children && i < to->f->n_rets; i++)
		unify(e, gpul_ret_node(to, i), gpul_operand_node(fn, &fn->f->operands[c.rets->first_child + i]));
}

static void collect_arithmetic(gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	uint16_t mask = gpul_evidence_of_type(gpul_inst_type(in, 0));
	bool wide = gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI);

	switch (in->opcode) {
	case GPUL_PTX_MOV:
		collect_mov(e, fn, in, mask);
		break;
	case GPUL_PTX_SHFL:
		unify_operands(e, fn, in, 0, 1);
		break;
	case GPUL_PTX_SELP:
	case GPUL_PTX_SLCT:
		unify_operands(e, fn, in, 0, 1);
		unify_operands(e, fn, in, 0, 2);
		if (mask & EVIDENCE_FLOAT)
			add_to_operands(e, fn, in, 0, 2, mask);
		break;
	case GPUL_PTX_SETP:
		if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_EQ) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_NE))
			mask = either_sign(mask);
		add_to_operands(e, fn, in, 1, 2, mask);
		break;
	case GPUL_PTX_SET:
		add_to_operands(e, fn, in, 1, 2, gpul_evidence_of_type(gpul_inst_type(in, 1)));
		break;
	case GPUL_PTX_SHR:
		add_to_operands(e, fn, in, 0, 1, mask);
		break;
	case GPUL_PTX_SHL:
		add_to_operands(e, fn, in, 0, 1, EVIDENCE_INT);
		break;
	case GPUL_PTX_AND:
	case GPUL_PTX_OR:
	case GPUL_PTX_XOR:
	case GPUL_PTX_NOT:
		add_to_operands(e, fn, in, 0, 2, EVIDENCE_MAYBE_UNSIGNED);
		break;
	case GPUL_PTX_MUL:
	case GPUL_PTX_MAD:
		add_to_operands(e, fn, in, 0, 0, either_sign(mask));
		add_to_operands(e, fn, in, 1, 2, wide ? mask : either_sign(mask));
		add_to_operands(e, fn, in, 3, 3, either_sign(mask));
		break;
	case GPUL_PTX_MIN:
	case GPUL_PTX_MAX:
	case GPUL_PTX_DIV:
	case GPUL_PTX_REM:
	case GPUL_PTX_ABS:
	case GPUL_PTX_SAD:
		add_to_operands(e, fn, in, 0, in->n_operands, mask);
		break;
	case GPUL_PTX_CVTA:
		break;
	default:
		add_to_operands(e, fn, in, 0, in->n_operands, either_sign(mask));
		break;
	}
}

static void collect_inst(const gpul_dataflow *p, gpul_evidence *e, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	gpul_inst_access a = gpul_inst_access_of(fn->f, in);

	if (a.address)
		collect_access(p, e, fn, in, &a);
	else if (in->opcode == GPUL_PTX_CALL)
		collect_call(p, e, fn, in);
	else if (in->opcode == GPUL_PTX_CVT)
		collect_cvt(e, fn, in);
	else
		collect_arithmetic(e, fn, in);
}

static void collect_func(const gpul_dataflow *p, gpul_evidence *e, const gpul_dataflow_func *fn)
{
	const gpul_ptx_func *f = fn->f;

	for (uint32_t k = 0; k < f->n_operands; k++) { /* the declared types of registers are evidence, too */
		const gpul_ptx_operand *o = &f->operands[k];

		if (o->kind == GPUL_PTX_OP_REG)
			add_evidence(e, gpul_operand_node(fn, o),
				     gpul_evidence_of_type(gpul_ptx_reg_row(f, o->index)->type) & EVIDENCE_FLOAT);
	}
	for (uint32_t k = 0; k < fn->ssa.n_phis; k++)
		unify(e, fn->regs + fn->ssa.phis[k].to, fn->regs + fn->ssa.phis[k].from);
	for (uint32_t k = 0; k < f->n_insts; k++)
		collect_inst(p, e, fn, &f->insts[k]);
}

gpul_status gpul_evidence_open(const gpul_dataflow *p, gpul_evidence *out, gpul_error *err)
{
	gpul_evidence e = { malloc(p->n_nodes * sizeof *e.parent), calloc(p->n_nodes, sizeof *e.mask), 0 };

	*out = (gpul_evidence){ 0 };
	if (!e.parent || !e.mask) {
		gpul_evidence_close(&e);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to infer the types of %u values", p->n_nodes);
	}
	for (uint32_t i = 0; i < p->n_nodes; i++)
		e.parent[i] = i;
	for (size_t i = 0; i < p->n_funcs; i++)
		collect_func(p, &e, &p->funcs[i]);
	/* PTX passes 16-bit floats as integers, also to functions, so a value in memory may be of any 16-bit float
	 * type that the program uses. */
	for (uint32_t i = 0; i < p->n_nodes; i++)
		e.memory_floats |= e.mask[i] & (e.mask[i] & EVIDENCE_VIA_MEMORY ? EVIDENCE_FLOAT : EVIDENCE_F16 | EVIDENCE_BF16);
	*out = e;
	return GPUL_OK;
}

void gpul_evidence_close(gpul_evidence *e)
{
	free(e->parent);
	free(e->mask);
	*e = (gpul_evidence){ 0 };
}
