/* decode_control.c — decodes branches, calls, barriers and fences. */
#include "softcuda/exec/decode/decode_internal.h"

bool gpul_decode_bra(struct decoder *d)
{
	const gpul_ptx_operand *o = &d->operand[0];
	unsigned bytes = 0;
	enum op op = d->in->guard == GPUL_PTX_NONE ? OP_BRA : d->in->guard_negated ? OP_BRA_IFNOT : OP_BRA_IF;
	const struct insn made = { .guard = op == OP_BRA ? 0 : gpul_reg_ref(d, d->in->guard, &bytes) };

	if (o->kind != GPUL_PTX_OP_LABEL || d->f->labels[o->index].kind != GPUL_PTX_LABEL_CODE)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the branch target is not a label");
	if (bytes)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the guard is not a predicate");
	return gpul_emit(d, op, &made) && gpul_decode_patch(d, d->n - 1, o->index);
}

bool gpul_decode_brx(struct decoder *d)
{
	const gpul_ptx_label *list;
	struct branch_table *t;
	struct insn made = { 0 };

	if (!has_mod(d, GPUL_PTX_MOD_IDX) || d->operand[1].kind != GPUL_PTX_OP_LABEL ||
	    d->f->labels[d->operand[1].index].kind != GPUL_PTX_LABEL_BRANCHTARGETS)
		return gpul_decode_fail(d, GPUL_EFORMAT, "brx.idx needs an index and a .branchtargets label");
	list = &d->f->labels[d->operand[1].index];
	t = gpul_program_alloc(d->p, sizeof *t + list->n_targets * sizeof t->targets[0], d->err);
	if (!t || !gpul_operand_source(d, &d->operand[0], GPUL_PTX_MOD_U32, false, &made.a))
		return false;
	t->n_targets = list->n_targets;
	made.object = t;
	return gpul_emit(d, OP_BRX, &made) && gpul_decode_patch(d, d->n - 1, d->operand[1].index);
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

/* Decode an argument.  type: the type of the callee's parameter; a constant argument is converted to it. */
static bool decode_call_argument(struct decoder *d, const gpul_ptx_operand *o, unsigned type, struct call_argument *out)
{
	struct place at;
	unsigned bytes = 0;

	switch (o->kind) {
	case GPUL_PTX_OP_SYMBOL:
		if (!gpul_symbol_place(d, o, &at))
			return false;
		if (!at.frame)
			return gpul_decode_fail(d, GPUL_EFORMAT, "an argument is not a .param variable of this function");
		out->slot = (struct local_slot){ (uint32_t)at.value + (uint32_t)o->value.i, at.bytes };
		return true;
	case GPUL_PTX_OP_REG:
		out->in_register = true;
		out->regs.n = o->selector ? 1 : gpul_ptx_reg_row(d->f, o->index)->vector;
		for (unsigned e = 0; e < out->regs.n; e++)
			out->regs.at[e] = gpul_reg_ref(d, o->index + e, &bytes);
		out->slot.bytes = bytes;
		return true;
	case GPUL_PTX_OP_SINK:
		out->in_register = true;
		out->regs = (struct vector_regs){ 1, { OPREF(BANK_SCRATCH, 0) } };
		out->slot.bytes = 8;
		return true;
	default:
		out->in_register = true;
		out->slot.bytes = gpul_ptx_type_bytes(type);
		out->regs.n = 1;
		return gpul_operand_source(d, o, type, false, &out->regs.at[0]);
	}
}

/* The operands of call: (rets), f, (args), prototype.  The lists are optional. */
struct call_shape {
	const gpul_ptx_operand *rets, *target, *args;
	const gpul_ptx_func *callee; /* the called function, or the prototype of a call through a pointer; NULL: unknown */
};

static struct call_shape call_shape(const struct decoder *d)
{
	struct call_shape s = { 0 };
	unsigned k = 0, n = d->in->n_operands;

	if (k < n && d->operand[k].kind == GPUL_PTX_OP_LIST)
		s.rets = &d->operand[k++];
	if (k < n)
		s.target = &d->operand[k++];
	if (k < n && d->operand[k].kind == GPUL_PTX_OP_LIST)
		s.args = &d->operand[k];
	if (s.target && s.target->kind == GPUL_PTX_OP_SYMBOL && s.target->ref_kind == GPUL_PTX_REF_FUNC)
		s.callee = &d->m->funcs[s.target->index];
	else if (n && d->operand[n - 1].kind == GPUL_PTX_OP_LABEL &&
		 d->f->labels[d->operand[n - 1].index].kind == GPUL_PTX_LABEL_CALLPROTOTYPE)
		s.callee = &d->m->funcs[d->f->labels[d->operand[n - 1].index].prototype];
	return s;
}

/* Return the type of the callee's parameter n, to which a constant argument is converted. */
static unsigned constant_type(const gpul_ptx_func *callee, uint32_t n)
{
	const unsigned type = callee && n < callee->n_params ? callee->params[n].type : GPUL_PTX_MOD_B64;

	return gpul_ptx_type_bytes(type) >= 2 ? type : GPUL_PTX_MOD_B64;
}

static bool call_target(struct decoder *d, const gpul_ptx_operand *o, struct call_site *site, enum op *op, opref *pointer)
{
	const gpul_ptx_func *f;

	if (!o)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the called function is missing");
	if (o->kind != GPUL_PTX_OP_SYMBOL || o->ref_kind != GPUL_PTX_REF_FUNC) {
		*op = OP_CALL_POINTER;
		d->code->calls_pointer = true;
		return gpul_operand_source(d, o, GPUL_PTX_MOD_U64, false, pointer);
	}
	f = &d->m->funcs[o->index];
	if (f->definition != GPUL_PTX_NONE) {
		*op = OP_CALL;
		site->callee = &d->p->code[f->definition];
		return true;
	}
	*op = OP_CALL_BUILTIN;
	site->builtin = gpul_builtin_find(gpul_ptx_name(d->m, f->name));
	if (site->builtin == BUILTIN_REFUSED)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "%s of the device runtime is not supported", gpul_ptx_name(d->m, f->name));
	if (site->builtin == BUILTIN_NONE)
		return gpul_decode_fail(d, GPUL_EFORMAT, "undefined reference to function %s", gpul_ptx_name(d->m, f->name));
	return true;
}

bool gpul_decode_call(struct decoder *d)
{
	struct call_shape shape = call_shape(d);
	struct call_site *site = gpul_program_alloc(d->p, sizeof *site, d->err);
	struct insn made = { .object = site };
	uint32_t n_args = shape.args ? shape.args->n_children : 0, n_rets = shape.rets ? shape.rets->n_children : 0;
	enum op op = OP_CALL;

	if (!site || !call_target(d, shape.target, site, &op, &made.a))
		return false;
	site->n_args = n_args;
	site->n_rets = n_rets;
	site->args = gpul_program_alloc(d->p, (n_args + n_rets + 1) * sizeof *site->args, d->err);
	if (!site->args)
		return false;
	for (uint32_t k = 0; k < n_args; k++)
		if (!decode_call_argument(d, child(d, shape.args, k), constant_type(shape.callee, k), &site->args[k]))
			return false;
	for (uint32_t k = 0; k < n_rets; k++)
		if (!decode_call_argument(d, child(d, shape.rets, k), GPUL_PTX_MOD_B64, &site->args[n_args + k]))
			return false;
	return gpul_emit(d, op, &made);
}

/* ---- barriers --------------------------------------------------------------------------------------------- */

/* Decode the operands a{, b}{, c}: barrier number, thread count, and for bar.red a predicate. */
static bool barrier_operands(struct decoder *d, unsigned first, bool reduces, struct insn *made)
{
	unsigned n = d->in->n_operands - first - reduces;

	if (d->in->n_operands < first + reduces || n > 2)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a barrier needs a number and optionally a thread count");
	if (n == 0)
		return gpul_operand_const(d, 0, 4, &made->a);
	if (!gpul_operand_source(d, &d->operand[first], GPUL_PTX_MOD_U32, false, &made->a))
		return false;
	made->n = n == 2;
	if (n == 2 && !gpul_operand_source(d, &d->operand[first + 1], GPUL_PTX_MOD_U32, false, &made->b))
		return false;
	return !reduces || gpul_operand_source(d, &d->operand[first + n], GPUL_PTX_MOD_PRED, false, &made->c);
}

/* Decode barrier.cluster.  If the cluster has one block, .wait becomes a barrier of the block, and .arrive a fence. */
static bool decode_cluster_barrier(struct decoder *d)
{
	struct insn made = { 0 };

	if (has_mod(d, GPUL_PTX_MOD_ARRIVE))
		return gpul_emit(d, OP_CLUSTER_ARRIVE, NULL);
	return gpul_operand_const(d, CLUSTER_BARRIER, 4, &made.a) && gpul_emit(d, OP_BAR_CLUSTER, &made);
}

bool gpul_decode_barrier(struct decoder *d)
{
	struct insn made = { 0 };
	bool popc = has_mod(d, GPUL_PTX_MOD_POPC), warp = false;

	for (unsigned k = 0; k < d->in->n_mods; k++)
		warp = warp || !strcmp(gpul_ptx_mod_text(d->m, d->in->mods[k]), "warp");
	if (warp) {
		if (!gpul_operand_source(d, &d->operand[0], GPUL_PTX_MOD_B32, false, &made.a))
			return false;
		return gpul_emit(d, OP_BAR_WARP, &made);
	}
	if (has_mod(d, GPUL_PTX_MOD_CLUSTER))
		return decode_cluster_barrier(d);
	if (has_mod(d, GPUL_PTX_MOD_ARRIVE)) {
		if (d->in->n_operands != 2)
			return gpul_decode_fail(d, GPUL_EFORMAT, "bar.arrive needs a barrier number and a thread count");
		return barrier_operands(d, 0, false, &made) && gpul_emit(d, OP_BAR_ARRIVE, &made);
	}
	if (!has_mod(d, GPUL_PTX_MOD_RED))
		return barrier_operands(d, 0, false, &made) && gpul_emit(d, OP_BAR_SYNC, &made);
	if (!gpul_operand_dest(d, &d->operand[0], popc ? GPUL_PTX_MOD_U32 : GPUL_PTX_MOD_PRED, false, &made.d) ||
	    !barrier_operands(d, 1, true, &made))
		return false;
	return gpul_emit(d, popc ? OP_BAR_RED_POPC : has_mod(d, GPUL_PTX_MOD_AND) ? OP_BAR_RED_AND : OP_BAR_RED_OR, &made);
}

bool gpul_decode_fence(struct decoder *d)
{
	bool weak = has_mod(d, GPUL_PTX_MOD_ACQ_REL) || has_mod(d, GPUL_PTX_MOD_ACQUIRE) || has_mod(d, GPUL_PTX_MOD_RELEASE);

	return gpul_emit(d, weak ? OP_FENCE : OP_FENCE_SC, NULL);
}

bool gpul_decode_trap(struct decoder *d)
{
	return gpul_emit(d, OP_TRAP, &(struct insn){ .n = d->in->opcode == GPUL_PTX_BRKPT });
}

bool gpul_decode_nanosleep(struct decoder *d)
{
	struct insn made = { 0 };

	return gpul_operand_source(d, &d->operand[0], GPUL_PTX_MOD_U32, false, &made.a) && gpul_emit(d, OP_NANOSLEEP, &made);
}
