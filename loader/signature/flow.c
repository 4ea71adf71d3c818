/* flow.c — see flow_internal.h: the fixpoint, and what each instruction does to a description.
 */
#include "loader/signature/flow_internal.h"

#include "loader/signature/flow_math_internal.h"

#define MAX_ROUNDS 200
#define MAX_GROWTH 8 /* an offset that grew this often grows in a loop */

/* ---- joining --------------------------------------------------------------------- */

static uint64_t grown(gpul_flow *to, uint64_t was, uint64_t now)
{
	if (now <= was)
		return was;
	return ++to->n_grown > MAX_GROWTH ? FLOW_ENDLESS : now;
}

static void join(gpul_flow_program *p, uint32_t node, gpul_flow in)
{
	gpul_flow *to, was;

	if (node == GPUL_PTX_NONE || !in.seen)
		return;
	to = &p->flow[node];
	if (!to->seen) {
		*to = in;
		to->n_grown = 0;
		p->changed = true;
		return;
	}
	was = *to;
	to->base |= in.base;
	to->bound |= in.bound;
	to->linear |= in.linear;
	to->from |= in.from;
	to->flags |= in.flags;
	to->constant = to->constant && in.constant && to->value == in.value;
	to->stride = grown(to, to->stride, in.stride);
	to->start = grown(to, to->start, in.start);
	to->outer = grown(to, to->outer, in.outer);
	to->reach = grown(to, to->reach, in.reach);
	to->room = gpul_flow_room(to->room, in.room);
	p->changed |= to->base != was.base || to->bound != was.bound ||
		      to->linear != was.linear || to->from != was.from ||
		      to->flags != was.flags || to->constant != was.constant ||
		      to->stride != was.stride || to->start != was.start ||
		      to->outer != was.outer || to->reach != was.reach || to->room != was.room;
}

/* Join into a destination, which may be {a, b} or p|q. */
static void define(gpul_flow_program *p, const gpul_flow_func *fn, const gpul_ptx_operand *to,
		   gpul_flow in)
{
	if (to->kind == GPUL_PTX_OP_REG)
		join(p, gpul_flow_node(fn, to), in);
	else if (to->kind == GPUL_PTX_OP_VECTOR || to->kind == GPUL_PTX_OP_PAIR)
		for (uint32_t i = 0; i < to->n_children; i++)
			define(p, fn, &fn->f->operands[to->first_child + i], in);
}

/* ---- operands -------------------------------------------------------------------- */

static gpul_flow special(uint32_t which)
{
	gpul_flow f = { .seen = true };

	switch (which) {
	case GPUL_PTX_SREG_TID_X:
	case GPUL_PTX_SREG_LANEID:
	case GPUL_PTX_SREG_WARPID:
		f.flags = FLOW_TID;
		f.stride = 1;
		break;
	case GPUL_PTX_SREG_TID_Y:
	case GPUL_PTX_SREG_TID_Z:
	case GPUL_PTX_SREG_CTAID_X:
	case GPUL_PTX_SREG_CTAID_Y:
	case GPUL_PTX_SREG_CTAID_Z:
		f.flags = FLOW_OUTER;
		f.outer = 1;
		break;
	case GPUL_PTX_SREG_NTID_X:
	case GPUL_PTX_SREG_NTID_Y:
	case GPUL_PTX_SREG_NTID_Z:
		f.flags = FLOW_NTID;
		break;
	case GPUL_PTX_SREG_NCTAID_X:
	case GPUL_PTX_SREG_NCTAID_Y:
	case GPUL_PTX_SREG_NCTAID_Z:
		f.flags = FLOW_NCTAID;
		break;
	default:
		f.flags = FLOW_OPAQUE;
		break;
	}
	return f;
}

static gpul_flow address_of_symbol(const gpul_flow_program *p, const gpul_flow_func *fn,
				   const gpul_ptx_operand *o)
{
	gpul_flow f = { .seen = true, .flags = FLOW_VARIABLE };
	const gpul_ptx_var *v = NULL;

	if (o->ref_kind == GPUL_PTX_REF_MODULE_VAR)
		v = &p->m->vars[o->index];
	else if (o->ref_kind == GPUL_PTX_REF_FUNC_VAR)
		v = &fn->f->vars[o->index];
	if (v && v->space == GPUL_PTX_MOD_LOCAL)
		f.flags = FLOW_LOCAL;
	if (v && v->space == GPUL_PTX_MOD_SHARED) {
		f.flags = FLOW_SHARED;
		f.room = v->bytes;
	}
	return f;
}

gpul_flow gpul_flow_of(const gpul_flow_program *p, const gpul_flow_func *fn,
		       const gpul_ptx_operand *o)
{
	const gpul_ptx_operand *child = &fn->f->operands[o->first_child];
	gpul_flow f = { 0 };

	switch (o->kind) {
	case GPUL_PTX_OP_REG:
		f = p->flow[gpul_flow_node(fn, o)];
		return o->negated ? gpul_flow_neg(f) : f;
	case GPUL_PTX_OP_SPECIAL:
		return special(o->index);
	case GPUL_PTX_OP_INT:
		return gpul_flow_constant(o->value.i);
	case GPUL_PTX_OP_SYMBOL:
		return address_of_symbol(p, fn, o);
	case GPUL_PTX_OP_ADDRESS:
		if (!o->n_children)
			return f;
		return gpul_flow_add(p, gpul_flow_of(p, fn, child),
				     gpul_flow_constant(o->value.i), false);
	case GPUL_PTX_OP_VECTOR:
	case GPUL_PTX_OP_LIST:
		for (uint32_t i = 0; i < o->n_children; i++)
			f = gpul_flow_either(f, gpul_flow_of(p, fn, &child[i]));
		return f;
	default:
		f.seen = true;
		return f;
	}
}

/* ---- memory and calls ------------------------------------------------------------ */

/* The node behind an access to .param space, or to memory private to the kernel; NONE: neither.
 */
static uint32_t cell_of(const gpul_flow_program *p, const gpul_flow_func *fn,
			const gpul_flow_access *a, uint32_t flags)
{
	if (a->space == GPUL_PTX_MOD_PARAM)
		return fn->f->operands[a->address->first_child].kind == GPUL_PTX_OP_SYMBOL
			       ? gpul_flow_node(fn, a->address)
			       : GPUL_PTX_NONE;
	if (a->space == GPUL_PTX_MOD_LOCAL || flags & FLOW_LOCAL)
		return p->local_cell;
	return a->space == GPUL_PTX_MOD_SHARED || flags & FLOW_SHARED ? p->shared_cell
								      : GPUL_PTX_NONE;
}

static void access_memory(gpul_flow_program *p, const gpul_flow_func *fn,
			  const gpul_flow_access *a)
{
	gpul_flow address = gpul_flow_of(p, fn, a->address);
	gpul_flow loaded = { .seen = true,
			     .flags = FLOW_DATA,
			     .from = address.base | address.from };
	uint32_t cell;

	if (!address.seen)
		return;
	cell = cell_of(p, fn, a, address.flags);
	if (a->stores && a->value)
		join(p, cell, gpul_flow_of(p, fn, a->value));
	if (!a->result)
		return;
	if (cell == GPUL_PTX_NONE || address.base)
		define(p, fn, a->result, loaded);
	if (cell != GPUL_PTX_NONE)
		define(p, fn, a->result, p->flow[cell]);
}

static void call(gpul_flow_program *p, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	gpul_flow_call c = gpul_flow_call_parts(fn, in);
	const gpul_flow_func *to = gpul_flow_callee(p, c.target);
	const gpul_flow outside = { .seen = true, .flags = FLOW_OUTSIDE | FLOW_DATA };

	for (uint32_t i = 0; to && c.args && i < c.args->n_children && i < to->f->n_params;
	     i++) {
		const gpul_ptx_operand *arg = &fn->f->operands[c.args->first_child + i];
		uint32_t node = gpul_flow_node(fn, arg);

		join(p, gpul_flow_param_node(to, i),
		     node != GPUL_PTX_NONE ? p->flow[node] : gpul_flow_of(p, fn, arg));
	}
	for (uint32_t i = 0; c.rets && i < c.rets->n_children; i++) {
		uint32_t node = gpul_flow_node(fn, &fn->f->operands[c.rets->first_child + i]);

		if (!to || i >= to->f->n_rets)
			join(p, node, outside);
		else
			join(p, node, p->flow[gpul_flow_ret_node(to, i)]);
	}
}

/* ---- arithmetic ------------------------------------------------------------------ */

static bool is_float(uint16_t type)
{
	return type >= GPUL_PTX_MOD_F16 && type <= GPUL_PTX_MOD_F32X2;
}

/* The description of what an instruction computes from its sources a, b, c. */
static gpul_flow computed(const gpul_flow_program *p, const gpul_ptx_inst *in, gpul_flow a,
			  gpul_flow b, gpul_flow c)
{
	bool floats = is_float(gpul_flow_type(in, 0)) || is_float(gpul_flow_type(in, 1));

	switch (in->opcode) {
	case GPUL_PTX_MOV:
	case GPUL_PTX_CVTA:
	case GPUL_PTX_SHFL:
		return a;
	case GPUL_PTX_SELP:
	case GPUL_PTX_SLCT:
		return gpul_flow_either(a, b);
	case GPUL_PTX_SETP:
	case GPUL_PTX_SET:
	case GPUL_PTX_TESTP:
	case GPUL_PTX_ISSPACEP:
		return (gpul_flow){ .seen = true, .reach = 1 };
	case GPUL_PTX_POPC:
	case GPUL_PTX_CLZ:
	case GPUL_PTX_BFIND:
		return (gpul_flow){ .seen = a.seen, .reach = 64, .from = a.from };
	default:
		break;
	}
	if (floats)
		return gpul_flow_opaque(gpul_flow_either(a, gpul_flow_either(b, c)));
	switch (in->opcode) {
	case GPUL_PTX_CVT:
		return gpul_flow_resized(p, a, gpul_ptx_type_bytes(gpul_flow_type(in, 1)));
	case GPUL_PTX_ADD:
	case GPUL_PTX_ADDC:
		return gpul_flow_add(p, a, b, false);
	case GPUL_PTX_SUB:
	case GPUL_PTX_SUBC:
		return gpul_flow_add(p, a, b, true);
	case GPUL_PTX_MUL:
	case GPUL_PTX_MUL24:
		return gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI) ? gpul_flow_divide(a, b)
							     : gpul_flow_mul(a, b);
	case GPUL_PTX_MAD:
	case GPUL_PTX_MADC:
	case GPUL_PTX_MAD24:
		return gpul_flow_add(p, gpul_flow_mul(a, b), c, false);
	case GPUL_PTX_SHL:
		return gpul_flow_mul(a, gpul_flow_power(b));
	case GPUL_PTX_SHR:
		return gpul_flow_divide(a, gpul_flow_power(b));
	case GPUL_PTX_DIV:
		return gpul_flow_divide(a, b);
	case GPUL_PTX_REM:
		return gpul_flow_remainder(a, b);
	case GPUL_PTX_AND:
		return gpul_flow_and(a, b);
	case GPUL_PTX_OR:
	case GPUL_PTX_XOR:
		return gpul_flow_add(p, a, b, false);
	case GPUL_PTX_MIN:
	case GPUL_PTX_MAX:
		return gpul_flow_clamped(a, b);
	case GPUL_PTX_NEG:
	case GPUL_PTX_NOT:
	case GPUL_PTX_ABS:
		return gpul_flow_neg(a);
	default:
		return gpul_flow_opaque(gpul_flow_either(a, gpul_flow_either(b, c)));
	}
}

static void step(gpul_flow_program *p, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	gpul_flow_access access;
	gpul_flow v[3] = { { 0 }, { 0 }, { 0 } }, r;
	const gpul_ptx_operand *to;

	if (in->opcode == GPUL_PTX_CALL) {
		call(p, fn, in);
		return;
	}
	access = gpul_flow_access_of(fn, in);
	if (access.address) {
		access_memory(p, fn, &access);
		return;
	}
	if (!gpul_flow_writes(in))
		return;
	to = gpul_flow_operand(fn, in, 0);
	for (unsigned i = 0; i < 3 && i + 1 < in->n_operands; i++)
		v[i] = gpul_flow_of(p, fn, gpul_flow_operand(fn, in, i + 1));
	for (unsigned i = 0; i < 3 && i + 1 < in->n_operands; i++)
		if (!v[i].seen && in->opcode != GPUL_PTX_SELP && in->opcode != GPUL_PTX_SLCT)
			return; /* a source that nothing has defined yet: next round */
	r = computed(p, in, v[0], v[1], v[2]);
	if (in->opcode == GPUL_PTX_MOV &&
	    (to->kind == GPUL_PTX_OP_VECTOR ||
	     gpul_flow_operand(fn, in, 1)->kind == GPUL_PTX_OP_VECTOR))
		r = gpul_flow_opaque(r); /* packing and unpacking take a value apart */
	if (!r.seen)
		r = gpul_flow_opaque((gpul_flow){ .seen = true });
	define(p, fn, to, r);
}

/* ---- the fixpoint ---------------------------------------------------------------- */

static void seed(gpul_flow_program *p)
{
	const gpul_flow_func *fn = &p->funcs[0];

	for (uint32_t i = 0; i < p->n_nodes; i++)
		p->flow[i] = (gpul_flow){ 0 };
	for (uint32_t i = 0; i < fn->f->n_params; i++) {
		const gpul_ptx_var *v = &fn->f->params[i];
		uint64_t bit = (uint64_t)1 << i;
		gpul_flow f = { .seen = true, .linear = bit };

		if (v->n_dims || v->vector > 1)
			f.flags = FLOW_OPAQUE; /* a struct: its parts are not told apart */
		else
			f.bound = bit;
		if (!f.flags && v->bytes * 8 == p->m->address_size)
			f.base = bit;
		p->flow[fn->params + i] = f;
	}
}

static void run_through(gpul_flow_program *p, const gpul_flow_func *fn)
{
	const gpul_merge *merge = fn->values.merges, *end = merge + fn->values.n_merges;

	for (uint32_t k = 0; k < fn->f->n_insts; k++) {
		for (; merge < end && merge->inst == k; merge++)
			join(p, fn->regs + merge->to, p->flow[fn->regs + merge->from]);
		step(p, fn, &fn->f->insts[k]);
	}
}

static bool settle(gpul_flow_program *p)
{
	seed(p);
	for (int round = 0; round < MAX_ROUNDS; round++) {
		p->changed = false;
		for (size_t i = 0; i < p->n_funcs; i++)
			run_through(p, &p->funcs[i]);
		if (!p->changed)
			return true;
	}
	return false;
}

/* Parameters that are addresses beyond doubt: declared so, converted as such, or the only
 * parameter in an address. */
static uint64_t find_firm(const gpul_flow_program *p)
{
	uint64_t firm = p->firm;

	for (size_t i = 0; i < p->n_funcs; i++) {
		const gpul_flow_func *fn = &p->funcs[i];

		for (uint32_t k = 0; k < fn->f->n_insts; k++) {
			const gpul_ptx_inst *in = &fn->f->insts[k];
			gpul_flow_access a = gpul_flow_access_of(fn, in);
			gpul_flow f = { 0 };

			if (a.address && a.space != GPUL_PTX_MOD_PARAM)
				f = gpul_flow_of(p, fn, a.address);
			else if (in->opcode == GPUL_PTX_CVTA && in->n_operands == 2)
				f = gpul_flow_of(p, fn, gpul_flow_operand(fn, in, 1));
			if (!(f.flags & FLOW_MIXED))
				firm |= f.base;
		}
	}
	return firm;
}

gpul_status gpul_flow_open(const gpul_ptx_module *m, const gpul_ptx_func *kernel,
			   gpul_flow_program *out, const char **why_not, gpul_error *err)
{
	gpul_status st = gpul_flow_program_open(m, kernel, out, why_not, err);

	if (st || *why_not)
		return st;
	for (uint32_t i = 0; i < kernel->n_params; i++)
		if (kernel->params[i].ptr_space || kernel->params[i].ptr_align)
			out->firm |= (uint64_t)1 << i;
	for (;;) { /* ends: firm only grows */
		uint64_t firm;

		if (!settle(out)) {
			*why_not = "the kernel's loops are too tangled to be followed";
			gpul_flow_close(out);
			return GPUL_OK;
		}
		firm = find_firm(out);
		if (firm == out->firm)
			return GPUL_OK;
		out->firm = firm;
	}
}
