/* evidence.c — see evidence_internal.h. */
#include "loader/signature/evidence_internal.h"

#include <stdlib.h>

/* ---- classes --------------------------------------------------------------------- */

static uint32_t root(const gpul_evidence *e, uint32_t node)
{
	while (e->parent[node] != node) {
		e->parent[node] = e->parent[e->parent[node]]; /* halve the path */
		node = e->parent[node];
	}
	return node;
}

static void unite(gpul_evidence *e, uint32_t a, uint32_t b)
{
	if (a == GPUL_PTX_NONE || b == GPUL_PTX_NONE)
		return;
	a = root(e, a);
	b = root(e, b);
	e->parent[b] = a;
	e->mask[a] |= e->mask[b];
}

static void mark(gpul_evidence *e, uint32_t node, uint16_t mask)
{
	if (node != GPUL_PTX_NONE)
		e->mask[root(e, node)] |= mask;
}

uint16_t gpul_evidence_of(const gpul_evidence *e, uint32_t node)
{
	uint16_t mask = node == GPUL_PTX_NONE ? 0 : e->mask[root(e, node)];

	return mask == EVIDENCE_PARKED && e->parked ? mask : mask & (uint16_t)~EVIDENCE_PARKED;
}

/* ---- what a type says ------------------------------------------------------------ */

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

/* A sign that the instruction does not depend on says no more than "an integer". */
static uint16_t either_sign(uint16_t mask)
{
	if (mask & EVIDENCE_UNSIGNED)
		return EVIDENCE_NATURAL;
	return mask & EVIDENCE_SIGNED ? EVIDENCE_INT : mask;
}

static gpul_type float_type(uint16_t mask, unsigned bytes)
{
	if (mask == EVIDENCE_F64)
		return bytes == 8 ? GPUL_F64 : GPUL_TYPE_NONE;
	if (mask == EVIDENCE_F32)
		return bytes == 4 ? GPUL_F32 : GPUL_TYPE_NONE;
	if (bytes != 2 && bytes != 4) /* 4: a pair, f16x2 */
		return GPUL_TYPE_NONE;
	return mask == EVIDENCE_F16    ? GPUL_F16
	       : mask == EVIDENCE_BF16 ? GPUL_BF16
				       : GPUL_TYPE_NONE;
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
		mask = fallback; /* ld.f32: said outright */
	if (mask & EVIDENCE_FLOAT)
		return mask & EVIDENCE_ANY_INT ? GPUL_TYPE_NONE
					       : float_type(mask & EVIDENCE_FLOAT, bytes);
	if (mask & (EVIDENCE_SIGNED | EVIDENCE_UNSIGNED))
		return int_type(!(mask & EVIDENCE_SIGNED), bytes);
	if (mask == EVIDENCE_PARKED || (!mask && !fallback))
		return GPUL_TYPE_NONE;
	/* No sign was asked for, so either would do.  ld.u32 is written for int too, as is
	 * ld.u16 for short: take what people write most, int, short and unsigned char. */
	if (bytes == 1)
		return int_type(!(fallback & EVIDENCE_SIGNED), bytes);
	return int_type(mask == EVIDENCE_NATURAL, bytes);
}

/* ---- what an instruction says ---------------------------------------------------- */

static void mark_operand(gpul_evidence *e, const gpul_flow_func *fn, const gpul_ptx_inst *in,
			 unsigned i, uint16_t mask)
{
	const gpul_ptx_operand *o;

	if (i >= in->n_operands)
		return;
	o = gpul_flow_operand(fn, in, i);
	if (o->kind == GPUL_PTX_OP_REG)
		mark(e, gpul_flow_node(fn, o), mask);
	else if (o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR)
		for (uint32_t k = 0; k < o->n_children; k++)
			if (fn->f->operands[o->first_child + k].kind == GPUL_PTX_OP_REG)
				mark(e,
				     gpul_flow_node(fn, &fn->f->operands[o->first_child + k]),
				     mask);
}

static void mark_operands(gpul_evidence *e, const gpul_flow_func *fn, const gpul_ptx_inst *in,
			  unsigned first, unsigned last, uint16_t mask)
{
	for (unsigned i = first; i <= last && i < in->n_operands; i++)
		mark_operand(e, fn, in, i, mask);
}

static bool same_register_type(const gpul_ptx_func *f, const gpul_ptx_operand *a,
			       const gpul_ptx_operand *b)
{
	return a->kind == GPUL_PTX_OP_REG && b->kind == GPUL_PTX_OP_REG &&
	       gpul_ptx_reg_row(f, a->index)->type == gpul_ptx_reg_row(f, b->index)->type;
}

static void unite_operands(gpul_evidence *e, const gpul_flow_func *fn, const gpul_ptx_inst *in,
			   unsigned i, unsigned k)
{
	const gpul_ptx_operand *a, *b;

	if (i >= in->n_operands || k >= in->n_operands)
		return;
	a = gpul_flow_operand(fn, in, i);
	if (a->kind == GPUL_PTX_OP_PAIR)
		a = &fn->f->operands[a->first_child];
	b = gpul_flow_operand(fn, in, k);
	if (same_register_type(fn->f, a, b))
		unite(e, gpul_flow_node(fn, a), gpul_flow_node(fn, b));
}

/* mov.b32 between %f and %r, in PTX of older compilers, takes the bits of a float as an
 * integer. */
static void reinterpret(gpul_evidence *e, const gpul_flow_func *fn, const gpul_ptx_operand *a,
			const gpul_ptx_operand *b)
{
	uint16_t floats;

	if (a->kind != GPUL_PTX_OP_REG || b->kind != GPUL_PTX_OP_REG)
		return;
	floats = gpul_evidence_of_type(gpul_ptx_reg_row(fn->f, a->index)->type) |
		 gpul_evidence_of_type(gpul_ptx_reg_row(fn->f, b->index)->type);
	floats &= EVIDENCE_FLOAT;
	mark(e, gpul_flow_node(fn, a), floats);
	mark(e, gpul_flow_node(fn, b), floats);
}

static void move(gpul_evidence *e, const gpul_flow_func *fn, const gpul_ptx_inst *in,
		 uint16_t mask)
{
	const gpul_ptx_operand *from = gpul_flow_operand(fn, in, 1), *half;

	unite_operands(e, fn, in, 0, 1);
	reinterpret(e, fn, gpul_flow_operand(fn, in, 0), from);
	if (mask & EVIDENCE_FLOAT)
		mark_operands(e, fn, in, 0, 1, mask);
	if (from->kind != GPUL_PTX_OP_VECTOR || from->n_children != 2)
		return;
	half = &fn->f->operands[from->first_child];
	if (half[0].kind == GPUL_PTX_OP_INT && half[0].value.i == 0 &&
	    half[1].kind == GPUL_PTX_OP_REG)
		mark(e, gpul_flow_node(fn, &half[1]),
		     EVIDENCE_BF16); /* {0, x}: a bf16 becomes an f32 */
}

static void convert(gpul_evidence *e, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	uint16_t to = gpul_flow_type(in, 0), from = gpul_flow_type(in, 1);
	uint16_t source = gpul_evidence_of_type(from), target = gpul_evidence_of_type(to);

	/* Cutting an integer short does not ask for its sign. */
	if (!(target & EVIDENCE_FLOAT) && gpul_ptx_type_bytes(to) <= gpul_ptx_type_bytes(from))
		source = either_sign(source);
	mark_operand(e, fn, in, 0, either_sign(target));
	mark_operands(e, fn, in, 1, in->n_operands, source);
}

static bool is_private(const gpul_flow_program *p, const gpul_flow_func *fn,
		       const gpul_flow_access *a)
{
	return a->space == GPUL_PTX_MOD_LOCAL || a->space == GPUL_PTX_MOD_SHARED ||
	       (a->space == GPUL_PTX_MOD_NONE &&
		gpul_flow_of(p, fn, a->address).flags & (FLOW_LOCAL | FLOW_SHARED));
}

static void access(const gpul_flow_program *p, gpul_evidence *e, const gpul_flow_func *fn,
		   const gpul_ptx_inst *in, const gpul_flow_access *a)
{
	const gpul_ptx_operand *value = a->result ? a->result : a->value;
	uint16_t mask = gpul_evidence_of_type(a->type);
	bool ordered = gpul_ptx_has_mod(in, GPUL_PTX_MOD_MIN) ||
		       gpul_ptx_has_mod(in, GPUL_PTX_MOD_MAX);

	if (a->atomic && !ordered)
		mask = either_sign(mask);
	if (a->space == GPUL_PTX_MOD_PARAM && value && value->kind == GPUL_PTX_OP_REG &&
	    fn->f->operands[a->address->first_child].kind == GPUL_PTX_OP_SYMBOL)
		unite(e, gpul_flow_node(fn, a->address), gpul_flow_node(fn, value));
	if (a->atomic || mask & EVIDENCE_FLOAT)
		mark_operands(e, fn, in, 0, in->n_operands, mask);
	if (is_private(p, fn, a))
		mark_operands(e, fn, in, 0, in->n_operands, EVIDENCE_PARKED);
}

static void call(const gpul_flow_program *p, gpul_evidence *e, const gpul_flow_func *fn,
		 const gpul_ptx_inst *in)
{
	gpul_flow_call c = gpul_flow_call_parts(fn, in);
	const gpul_flow_func *to = gpul_flow_callee(p, c.target);

	if (!to)
		return;
	for (uint32_t i = 0; c.args && i < c.args->n_children && i < to->f->n_params; i++)
		unite(e, gpul_flow_param_node(to, i),
		      gpul_flow_node(fn, &fn->f->operands[c.args->first_child + i]));
	for (uint32_t i = 0; c.rets && i < c.rets->n_children && i < to->f->n_rets; i++)
		unite(e, gpul_flow_ret_node(to, i),
		      gpul_flow_node(fn, &fn->f->operands[c.rets->first_child + i]));
}

static bool is_equality(const gpul_ptx_inst *in)
{
	return gpul_ptx_has_mod(in, GPUL_PTX_MOD_EQ) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_NE);
}

static void arithmetic(gpul_evidence *e, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	uint16_t mask = gpul_evidence_of_type(gpul_flow_type(in, 0));
	bool wide = gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE) ||
		    gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI);

	switch (in->opcode) {
	case GPUL_PTX_MOV:
		move(e, fn, in, mask);
		break;
	case GPUL_PTX_SHFL:
		unite_operands(e, fn, in, 0, 1);
		break;
	case GPUL_PTX_SELP:
	case GPUL_PTX_SLCT:
		unite_operands(e, fn, in, 0, 1);
		unite_operands(e, fn, in, 0, 2);
		if (mask & EVIDENCE_FLOAT)
			mark_operands(e, fn, in, 0, 2, mask);
		break;
	case GPUL_PTX_SETP:
		mark_operands(e, fn, in, 1, 2, is_equality(in) ? either_sign(mask) : mask);
		break;
	case GPUL_PTX_SET:
		mark_operands(e, fn, in, 1, 2, gpul_evidence_of_type(gpul_flow_type(in, 1)));
		break;
	case GPUL_PTX_SHR:
		mark_operands(e, fn, in, 0, 1, mask);
		break;
	case GPUL_PTX_SHL:
		mark_operands(e, fn, in, 0, 1, EVIDENCE_INT);
		break;
	case GPUL_PTX_AND:
	case GPUL_PTX_OR:
	case GPUL_PTX_XOR:
	case GPUL_PTX_NOT:
		mark_operands(e, fn, in, 0, 2, EVIDENCE_NATURAL);
		break;
	case GPUL_PTX_MUL:
	case GPUL_PTX_MAD:
		mark_operands(e, fn, in, 0, 0, either_sign(mask));
		mark_operands(e, fn, in, 1, 2, wide ? mask : either_sign(mask));
		mark_operands(e, fn, in, 3, 3, either_sign(mask));
		break;
	case GPUL_PTX_MIN:
	case GPUL_PTX_MAX:
	case GPUL_PTX_DIV:
	case GPUL_PTX_REM:
	case GPUL_PTX_ABS:
	case GPUL_PTX_SAD:
		mark_operands(e, fn, in, 0, in->n_operands, mask);
		break;
	case GPUL_PTX_CVTA:
		break;
	default:
		mark_operands(e, fn, in, 0, in->n_operands, either_sign(mask));
		break;
	}
}

static void instruction(const gpul_flow_program *p, gpul_evidence *e, const gpul_flow_func *fn,
			const gpul_ptx_inst *in)
{
	gpul_flow_access a = gpul_flow_access_of(fn, in);

	if (a.address)
		access(p, e, fn, in, &a);
	else if (in->opcode == GPUL_PTX_CALL)
		call(p, e, fn, in);
	else if (in->opcode == GPUL_PTX_CVT)
		convert(e, fn, in);
	else
		arithmetic(e, fn, in);
}

static void function(const gpul_flow_program *p, gpul_evidence *e, const gpul_flow_func *fn)
{
	const gpul_ptx_func *f = fn->f;

	for (uint32_t k = 0; k < f->n_operands; k++) { /* what registers are declared as */
		const gpul_ptx_operand *o = &f->operands[k];

		if (o->kind == GPUL_PTX_OP_REG)
			mark(e, gpul_flow_node(fn, o),
			     gpul_evidence_of_type(gpul_ptx_reg_row(f, o->index)->type) &
				     EVIDENCE_FLOAT);
	}
	for (uint32_t k = 0; k < fn->values.n_merges; k++)
		unite(e, fn->regs + fn->values.merges[k].to,
		      fn->regs + fn->values.merges[k].from);
	for (uint32_t k = 0; k < f->n_insts; k++)
		instruction(p, e, fn, &f->insts[k]);
}

gpul_status gpul_evidence_open(const gpul_flow_program *p, gpul_evidence *out, gpul_error *err)
{
	gpul_evidence e = { malloc(p->n_nodes * sizeof *e.parent),
			    calloc(p->n_nodes, sizeof *e.mask), 0 };

	*out = (gpul_evidence){ 0 };
	if (!e.parent || !e.mask) {
		gpul_evidence_close(&e);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the types of %u values",
				 p->n_nodes);
	}
	for (uint32_t i = 0; i < p->n_nodes; i++)
		e.parent[i] = i;
	for (size_t i = 0; i < p->n_funcs; i++)
		function(p, &e, &p->funcs[i]);
	/* Halves travel as integers, through calls too: any in the program may be the parked
	 * value. */
	for (uint32_t i = 0; i < p->n_nodes; i++)
		e.parked |= e.mask[i] &
			    (e.mask[i] & EVIDENCE_PARKED ? EVIDENCE_FLOAT
							 : EVIDENCE_F16 | EVIDENCE_BF16);
	*out = e;
	return GPUL_OK;
}

void gpul_evidence_close(gpul_evidence *e)
{
	free(e->parent);
	free(e->mask);
	*e = (gpul_evidence){ 0 };
}
