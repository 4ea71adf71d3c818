/* dataflow.c — implements the transfer function of each instruction, and iterates to the fixpoint. */
#include "loader/signature/dataflow_internal.h"

#define MAX_ROUNDS  200
#define MAX_GROWTHS 8 /* a stride or offset that grew more often than this is assumed to grow in a loop */

/* ---- joining --------------------------------------------------------------------- */

/* Return `now`, or AV_UNBOUNDED if the number has grown so often that it must grow in a loop. */
static uint64_t widen(gpul_absval *v, uint64_t was, uint64_t now)
{
	if (now <= was)
		return was;
	return ++v->n_growths > MAX_GROWTHS ? AV_UNBOUNDED : now;
}

static void join_node(gpul_dataflow *p, uint32_t node, gpul_absval in)
{
	gpul_absval *to, was;

	if (node == GPUL_PTX_NONE || !in.defined)
		return;
	to = &p->values[node];
	was = *to;
	*to = gpul_absval_join(was, in);
	if (!was.defined) {
		to->n_growths = 0;
		p->changed = true;
		return;
	}
	to->stride = widen(to, was.stride, to->stride);
	to->block_stride = widen(to, was.block_stride, to->block_stride);
	to->outer_stride = widen(to, was.outer_stride, to->outer_stride);
	if (to->offset > was.offset && to->offset != AV_UNBOUNDED && to->offset - was.offset > to->growth)
		to->growth = to->offset - was.offset;
	to->growth = widen(to, was.growth, to->growth);
	to->offset = widen(to, was.offset, to->offset);
	p->changed |= to->base != was.base || to->bound != was.bound || to->linear != was.linear || to->loaded_from != was.loaded_from ||
		      to->flags != was.flags || to->constant != was.constant || to->stride != was.stride ||
		      to->block_stride != was.block_stride || to->outer_stride != was.outer_stride || to->offset != was.offset ||
		      to->growth != was.growth || to->array_bytes != was.array_bytes;
}

/* Join the value `in` into a destination operand, which may be a register, {a, b} or p|q. */
static void join_operand(gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_ptx_operand *to, gpul_absval in)
{
	if (to->kind == GPUL_PTX_OP_REG)
		join_node(p, gpul_operand_node(fn, to), in);
	else if (to->kind == GPUL_PTX_OP_VECTOR || to->kind == GPUL_PTX_OP_PAIR)
		for (uint32_t i = 0; i < to->n_children; i++)
			join_operand(p, fn, &fn->f->operands[to->first_child + i], in);
}

/* ---- operands -------------------------------------------------------------------- */

static gpul_absval special_register(uint32_t which)
{
	gpul_absval f = { .defined = true };

	switch (which) {
	case GPUL_PTX_SREG_TID_X:
	case GPUL_PTX_SREG_LANEID:
	case GPUL_PTX_SREG_WARPID:
		f.flags = AV_TID;
		f.stride = 1;
		break;
	case GPUL_PTX_SREG_TID_Y:
	case GPUL_PTX_SREG_TID_Z:
	case GPUL_PTX_SREG_CTAID_X:
	case GPUL_PTX_SREG_CTAID_Y:
	case GPUL_PTX_SREG_CTAID_Z:
		f.flags = AV_OUTER;
		f.outer_stride = 1;
		break;
	case GPUL_PTX_SREG_NTID_X:
	case GPUL_PTX_SREG_NTID_Y:
	case GPUL_PTX_SREG_NTID_Z:
		f.flags = AV_NTID;
		break;
	case GPUL_PTX_SREG_NCTAID_X:
	case GPUL_PTX_SREG_NCTAID_Y:
	case GPUL_PTX_SREG_NCTAID_Z:
		f.flags = AV_NCTAID;
		break;
	default:
		f.flags = AV_OPAQUE;
		break;
	}
	return f;
}

static gpul_absval address_of_symbol(const gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_ptx_operand *o)
{
	gpul_absval f = { .defined = true, .flags = AV_VARIABLE };
	const gpul_ptx_var *v = NULL;

	if (o->ref_kind == GPUL_PTX_REF_MODULE_VAR)
		v = &p->m->vars[o->index];
	else if (o->ref_kind == GPUL_PTX_REF_FUNC_VAR)
		v = &fn->f->vars[o->index];
	if (v && v->space == GPUL_PTX_MOD_LOCAL)
		f.flags = AV_LOCAL;
	if (v && v->space == GPUL_PTX_MOD_SHARED) {
		f.flags = AV_SHARED;
		f.array_bytes = v->bytes;
	}
	return f;
}

gpul_absval gpul_absval_of(const gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_ptx_operand *o)
{
	const gpul_ptx_operand *child = &fn->f->operands[o->first_child];
	gpul_absval f = { 0 };

	switch (o->kind) {
	case GPUL_PTX_OP_REG:
		f = p->values[gpul_operand_node(fn, o)];
		return o->negated ? gpul_absval_neg(f) : f;
	case GPUL_PTX_OP_SPECIAL:
		return special_register(o->index);
	case GPUL_PTX_OP_INT:
		return gpul_absval_constant(o->value.i);
	case GPUL_PTX_OP_SYMBOL:
		return address_of_symbol(p, fn, o);
	case GPUL_PTX_OP_ADDRESS:
		if (!o->n_children)
			return f;
		return gpul_absval_add(p->pointers, gpul_absval_of(p, fn, child), gpul_absval_constant(o->value.i), false);
	case GPUL_PTX_OP_VECTOR:
	case GPUL_PTX_OP_LIST:
		for (uint32_t i = 0; i < o->n_children; i++)
			f = gpul_absval_join(f, gpul_absval_of(p, fn, &child[i]));
		return f;
	default:
		f.defined = true;
		return f;
	}
}

/* ---- memory and calls ------------------------------------------------------------ */

/* Return the node that represents the accessed memory: a .param symbol, or all of .local or .shared memory; GPUL_PTX_NONE: other memory. */
static uint32_t cell_of(const gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_inst_access *a, uint32_t flags)
{
	if (a->space == GPUL_PTX_MOD_PARAM)
		return fn->f->operands[a->address->first_child].kind == GPUL_PTX_OP_SYMBOL ? gpul_operand_node(fn, a->address)
											   : GPUL_PTX_NONE;
	if (a->space == GPUL_PTX_MOD_LOCAL || flags & AV_LOCAL)
		return p->local_cell;
	return a->space == GPUL_PTX_MOD_SHARED || flags & AV_SHARED ? p->shared_cell : GPUL_PTX_NONE;
}

/* Handle a ld.param that loads members of a struct; a destination {a, b} receives two members. */
static void transfer_members(gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_inst_access *a)
{
	const gpul_ptx_operand *to = a->result;
	bool vector = to->kind == GPUL_PTX_OP_VECTOR;

	for (uint32_t i = 0; i < (vector ? to->n_children : 1); i++) {
		const gpul_leaf *leaf = gpul_leaf_of_access(p, fn, a, i);

		if (leaf)
			join_operand(p, fn, vector ? &fn->f->operands[to->first_child + i] : to, p->values[leaf->node]);
	}
}

static void transfer_access(gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_inst_access *a)
{
	gpul_absval address = gpul_absval_of(p, fn, a->address);
	gpul_absval loaded = { .defined = true, .flags = AV_LOADED, .loaded_from = address.base | address.loaded_from };
	uint32_t cell;

	if (!address.defined)
		return;
	if (a->result && gpul_leaf_of_access(p, fn, a, 0)) {
		transfer_members(p, fn, a);
		return;
	}
	cell = cell_of(p, fn, a, address.flags);
	if (a->stores && a->value)
		join_node(p, cell, gpul_absval_of(p, fn, a->value));
	if (!a->result)
		return;
	if (cell == GPUL_PTX_NONE || address.base)
		join_operand(p, fn, a->result, loaded);
	if (cell != GPUL_PTX_NONE)
		join_operand(p, fn, a->result, p->values[cell]);
}

static void transfer_call(gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	gpul_inst_call c = gpul_inst_call_parts(fn->f, in);
	const gpul_dataflow_func *to = gpul_dataflow_callee(p, c.target);
	const gpul_absval outside = { .defined = true, .flags = AV_EXTERNAL | AV_LOADED };

	for (uint32_t i = 0; to && c.args && i < c.args->n_children && i < to->f->n_params; i++) {
		const gpul_ptx_operand *arg = &fn->f->operands[c.args->first_child + i];
		uint32_t node = gpul_operand_node(fn, arg);

		join_node(p, gpul_param_node(to, i), node != GPUL_PTX_NONE ? p->values[node] : gpul_absval_of(p, fn, arg));
	}
	for (uint32_t i = 0; c.rets && i < c.rets->n_children; i++) {
		uint32_t node = gpul_operand_node(fn, &fn->f->operands[c.rets->first_child + i]);

		if (!to || i >= to->f->n_rets)
			join_node(p, node, outside);
		else
			join_node(p, node, p->values[gpul_ret_node(to, i)]);
	}
}

/* ---- arithmetic ------------------------------------------------------------------ */

static bool is_float(uint16_t type)
{
	return type >= GPUL_PTX_MOD_F16 && type <= GPUL_PTX_MOD_F32X2;
}

/* Return the abstract value that an instruction computes from the sources a, b and c. */
static gpul_absval evaluate(const gpul_dataflow *p, const gpul_ptx_inst *in, gpul_absval a, gpul_absval b, gpul_absval c)
{
	bool floats = is_float(gpul_inst_type(in, 0)) || is_float(gpul_inst_type(in, 1));

	switch (in->opcode) {
	case GPUL_PTX_MOV:
	case GPUL_PTX_CVTA:
	case GPUL_PTX_SHFL:
		return a;
	case GPUL_PTX_SELP:
	case GPUL_PTX_SLCT:
		return gpul_absval_join(a, b);
	case GPUL_PTX_SETP:
	case GPUL_PTX_SET:
	case GPUL_PTX_TESTP:
	case GPUL_PTX_ISSPACEP:
		return (gpul_absval){ .defined = true, .offset = 1 };
	case GPUL_PTX_POPC:
	case GPUL_PTX_CLZ:
	case GPUL_PTX_BFIND:
		return (gpul_absval){ .defined = a.defined, .offset = 64, .loaded_from = a.loaded_from };
	default:
		break;
	}
	if (floats)
		return gpul_absval_opaque(gpul_absval_join(a, gpul_absval_join(b, c)));
	switch (in->opcode) {
	case GPUL_PTX_CVT:
		if (gpul_ptx_type_bytes(gpul_inst_type(in, 1)) * 8 < p->m->address_size)
			a.base = 0; /* the source is narrower than an address */
		return a;
	case GPUL_PTX_ADD:
	case GPUL_PTX_ADDC:
		return gpul_absval_add(p->pointers, a, b, false);
	case GPUL_PTX_SUB:
	case GPUL_PTX_SUBC:
		return gpul_absval_add(p->pointers, a, b, true);
	case GPUL_PTX_MUL:
	case GPUL_PTX_MUL24:
		return gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI) ? gpul_absval_divide(a, b) : gpul_absval_mul(a, b);
	case GPUL_PTX_MAD:
	case GPUL_PTX_MADC:
	case GPUL_PTX_MAD24:
		return gpul_absval_add(p->pointers, gpul_absval_mul(a, b), c, false);
	case GPUL_PTX_SHL:
		return gpul_absval_mul(a, gpul_absval_exp2(b));
	case GPUL_PTX_SHR:
		return gpul_absval_divide(a, gpul_absval_exp2(b));
	case GPUL_PTX_DIV:
		return gpul_absval_divide(a, b);
	case GPUL_PTX_REM:
		return gpul_absval_remainder(a, b);
	case GPUL_PTX_AND:
		return gpul_absval_and(a, b);
	case GPUL_PTX_OR:
	case GPUL_PTX_XOR:
		return gpul_absval_add(p->pointers, a, b, false);
	case GPUL_PTX_MIN:
	case GPUL_PTX_MAX:
		return gpul_absval_min_max(a, b);
	case GPUL_PTX_NEG:
	case GPUL_PTX_NOT:
	case GPUL_PTX_ABS:
		return gpul_absval_neg(a);
	default:
		return gpul_absval_opaque(gpul_absval_join(a, gpul_absval_join(b, c)));
	}
}

static void transfer_inst(gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	gpul_inst_access access;
	gpul_absval v[3] = { { 0 }, { 0 }, { 0 } }, r;
	const gpul_ptx_operand *to;

	if (in->opcode == GPUL_PTX_CALL) {
		transfer_call(p, fn, in);
		return;
	}
	access = gpul_inst_access_of(fn->f, in);
	if (access.address) {
		transfer_access(p, fn, &access);
		return;
	}
	if (!gpul_inst_writes(in))
		return;
	to = gpul_inst_operand(fn->f, in, 0);
	for (unsigned i = 0; i < 3 && i + 1 < in->n_operands; i++)
		v[i] = gpul_absval_of(p, fn, gpul_inst_operand(fn->f, in, i + 1));
	for (unsigned i = 0; i < 3 && i + 1 < in->n_operands; i++)
		if (!v[i].defined && in->opcode != GPUL_PTX_SELP && in->opcode != GPUL_PTX_SLCT)
			return; /* a source is not defined yet: wait for the next round */
	r = evaluate(p, in, v[0], v[1], v[2]);
	if (in->opcode == GPUL_PTX_MOV && (to->kind == GPUL_PTX_OP_VECTOR || gpul_inst_operand(fn->f, in, 1)->kind == GPUL_PTX_OP_VECTOR))
		r = gpul_absval_opaque(r); /* an operand in braces packs or unpacks values, which is not modelled */
	if (!r.defined)
		r = gpul_absval_opaque((gpul_absval){ .defined = true });
	join_operand(p, fn, to, r);
}

/* ---- the fixpoint ---------------------------------------------------------------- */

static void init_params(gpul_dataflow *p)
{
	const gpul_dataflow_func *fn = &p->funcs[0];

	for (uint32_t i = 0; i < p->n_nodes; i++)
		p->values[i] = (gpul_absval){ 0 };
	for (uint32_t i = 0; i < fn->f->n_params; i++) /* structs that the code uses as a whole */
		p->values[fn->params + i] = (gpul_absval){ .defined = true, .flags = AV_OPAQUE };
	for (uint32_t i = 0; i < p->n_leaves; i++) {
		uint64_t bit = (uint64_t)1 << i;
		gpul_absval f = { .defined = true, .linear = bit, .bound = bit };

		if (p->leaves[i].bytes * 8 == p->m->address_size)
			f.base = bit;
		p->values[p->leaves[i].node] = f;
	}
}

static void transfer_func(gpul_dataflow *p, const gpul_dataflow_func *fn)
{
	const gpul_phi *phi = fn->ssa.phis, *end = phi + fn->ssa.n_phis;

	for (uint32_t k = 0; k < fn->f->n_insts; k++) {
		for (; phi < end && phi->inst == k; phi++)
			join_node(p, fn->regs + phi->to, p->values[fn->regs + phi->from]);
		transfer_inst(p, fn, &fn->f->insts[k]);
	}
}

/* Iterate to the fixpoint; false: it is not reached within MAX_ROUNDS. */
static bool reach_fixpoint(gpul_dataflow *p)
{
	init_params(p);
	for (int round = 0; round < MAX_ROUNDS; round++) {
		p->changed = false;
		for (size_t i = 0; i < p->n_funcs; i++)
			transfer_func(p, &p->funcs[i]);
		if (!p->changed)
			return true;
	}
	return false;
}

/* Find the parameters that are certainly addresses: declared as pointers, converted by cvta, or the only
 * base of an accessed address. */
static uint64_t find_pointers(const gpul_dataflow *p)
{
	uint64_t pointers = p->pointers;

	for (size_t i = 0; i < p->n_funcs; i++) {
		const gpul_dataflow_func *fn = &p->funcs[i];

		for (uint32_t k = 0; k < fn->f->n_insts; k++) {
			const gpul_ptx_inst *in = &fn->f->insts[k];
			gpul_inst_access a = gpul_inst_access_of(fn->f, in);
			gpul_absval f = { 0 };

			if (a.address && a.space != GPUL_PTX_MOD_PARAM)
				f = gpul_absval_of(p, fn, a.address);
			else if (in->opcode == GPUL_PTX_CVTA && in->n_operands == 2)
				f = gpul_absval_of(p, fn, gpul_inst_operand(fn->f, in, 1));
			if (!(f.flags & AV_TWO_BASES))
				pointers |= f.base;
		}
	}
	return pointers;
}

gpul_status gpul_dataflow_open(const gpul_ptx_module *m, const gpul_ptx_func *kernel, gpul_dataflow *out, const char **why_not,
			       gpul_error *err)
{
	gpul_status st = gpul_dataflow_init(m, kernel, out, why_not, err);

	if (st || *why_not)
		return st;
	for (uint32_t i = 0; i < out->n_leaves; i++)
		out->pointers |= (uint64_t)out->leaves[i].ptr << i;
	for (;;) { /* this loop ends, because the set of pointers only grows */
		uint64_t pointers;

		if (!reach_fixpoint(out)) {
			*why_not = "the analysis of the kernel's loops does not converge";
			gpul_dataflow_close(out);
			return GPUL_OK;
		}
		pointers = find_pointers(out);
		if (pointers == out->pointers)
			return GPUL_OK;
		out->pointers = pointers;
	}
}
