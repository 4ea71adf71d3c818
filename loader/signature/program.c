/* program.c — the functions a kernel reaches, their nodes, and what an instruction reads and
 * writes. */
#include <stdlib.h>

#include "loader/signature/flow_internal.h"

#define MAX_NODES                                                                              \
	(4u << 20) /* beyond it the description of a kernel is given up, not the memory */

static gpul_flow_func *find(const gpul_flow_program *p, const gpul_ptx_func *f)
{
	for (size_t i = 0; i < p->n_funcs; i++)
		if (p->funcs[i].f == f)
			return &p->funcs[i];
	return NULL;
}

static const gpul_ptx_func *definition(const gpul_ptx_module *m, const gpul_ptx_operand *o)
{
	const gpul_ptx_func *f;

	if (!o || o->kind != GPUL_PTX_OP_SYMBOL || o->ref_kind != GPUL_PTX_REF_FUNC)
		return NULL;
	f = &m->funcs[o->index];
	if (!f->has_body && f->definition != GPUL_PTX_NONE)
		f = &m->funcs[f->definition];
	return f->has_body ? f : NULL;
}

const gpul_flow_func *gpul_flow_callee(const gpul_flow_program *p, const gpul_ptx_operand *o)
{
	const gpul_ptx_func *f = definition(p->m, o);

	return f ? find(p, f) : NULL;
}

/* Append f, giving its tables the next free nodes; *too_many: there are none left. */
static bool add_func(gpul_flow_program *p, const gpul_ptx_func *f, bool *too_many)
{
	gpul_flow_func *row = &p->funcs[p->n_funcs];
	uint64_t end;

	*too_many = f->n_flat_regs > MAX_NODES; /* before any memory is taken for them */
	if (*too_many || !gpul_values_open(f, &row->values))
		return false;
	p->n_funcs++; /* from here on gpul_flow_close() sees to it */
	end = (uint64_t)p->n_nodes + row->values.n_values + f->n_params + f->n_rets + f->n_vars;
	*too_many = end > MAX_NODES;
	if (*too_many)
		return false;
	row->f = f;
	row->regs = p->n_nodes;
	row->params = row->regs + row->values.n_values;
	row->rets = row->params + f->n_params;
	row->vars = row->rets + f->n_rets;
	p->n_nodes = (uint32_t)end;
	return true;
}

/* funcs[] is its own work list: what is appended is looked through later. */
static bool collect(gpul_flow_program *p, const gpul_ptx_func *kernel, bool *too_many)
{
	if (!add_func(p, kernel, too_many))
		return false;
	for (size_t i = 0; i < p->n_funcs; i++) {
		const gpul_flow_func *fn = &p->funcs[i];

		for (uint32_t k = 0; k < fn->f->n_insts; k++) {
			const gpul_ptx_inst *in = &fn->f->insts[k];
			const gpul_ptx_func *to;

			if (in->opcode != GPUL_PTX_CALL)
				continue;
			to = definition(p->m, gpul_flow_call_parts(fn, in).target);
			if (to && !find(p, to) && !add_func(p, to, too_many))
				return false;
		}
	}
	p->local_cell = p->n_nodes++;
	p->shared_cell = p->n_nodes++;
	return true;
}

gpul_status gpul_flow_program_open(const gpul_ptx_module *m, const gpul_ptx_func *kernel,
				   gpul_flow_program *out, const char **why_not,
				   gpul_error *err)
{
	gpul_flow_program p = { .m = m };
	bool too_many = false;

	*out = (gpul_flow_program){ 0 };
	p.funcs = calloc(m->n_funcs, sizeof *p.funcs);
	if (!p.funcs)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to follow a kernel's calls");
	if (collect(&p, kernel, &too_many))
		p.flow = calloc(p.n_nodes, sizeof *p.flow);
	if (too_many) {
		*why_not = "the kernel has too many registers to be followed";
		gpul_flow_close(&p);
		return GPUL_OK;
	}
	if (!p.flow) {
		gpul_flow_close(&p);
		return gpul_fail(err, GPUL_ENOMEM, 0,
				 "no memory to follow the values of %u functions", m->n_funcs);
	}
	*out = p;
	return GPUL_OK;
}

void gpul_flow_close(gpul_flow_program *p)
{
	for (size_t i = 0; i < p->n_funcs; i++)
		gpul_values_close(&p->funcs[i].values);
	free(p->flow);
	free(p->funcs);
	*p = (gpul_flow_program){ 0 };
}

uint32_t gpul_flow_param_node(const gpul_flow_func *fn, uint32_t i)
{
	const gpul_ptx_var *v = &fn->f->params[i];

	return v->space == GPUL_PTX_MOD_REG ? fn->regs + v->reg : fn->params + i;
}

uint32_t gpul_flow_ret_node(const gpul_flow_func *fn, uint32_t i)
{
	const gpul_ptx_var *v = &fn->f->rets[i];

	return v->space == GPUL_PTX_MOD_REG ? fn->regs + v->reg : fn->rets + i;
}

uint32_t gpul_flow_node(const gpul_flow_func *fn, const gpul_ptx_operand *o)
{
	if (o->kind == GPUL_PTX_OP_REG)
		return fn->regs + gpul_value_of(fn->f, &fn->values, o);
	if (o->kind == GPUL_PTX_OP_ADDRESS)
		return o->n_children ? gpul_flow_node(fn, &fn->f->operands[o->first_child])
				     : GPUL_PTX_NONE;
	if (o->kind != GPUL_PTX_OP_SYMBOL)
		return GPUL_PTX_NONE;
	switch (o->ref_kind) {
	case GPUL_PTX_REF_PARAM:
		return gpul_flow_param_node(fn, o->index);
	case GPUL_PTX_REF_RET:
		return gpul_flow_ret_node(fn, o->index);
	case GPUL_PTX_REF_FUNC_VAR:
		return fn->vars + o->index;
	default:
		return GPUL_PTX_NONE;
	}
}

gpul_flow_call gpul_flow_call_parts(const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	gpul_flow_call c = { 0 };
	unsigned i = 0;

	if (i < in->n_operands && gpul_flow_operand(fn, in, i)->kind == GPUL_PTX_OP_LIST)
		c.rets = gpul_flow_operand(fn, in, i++);
	if (i < in->n_operands)
		c.target = gpul_flow_operand(fn, in, i++);
	if (i < in->n_operands && gpul_flow_operand(fn, in, i)->kind == GPUL_PTX_OP_LIST)
		c.args = gpul_flow_operand(fn, in, i);
	return c;
}

uint16_t gpul_flow_type(const gpul_ptx_inst *in, unsigned i)
{
	for (unsigned k = 0; k < in->n_mods; k++)
		if (in->mods[k] >= GPUL_PTX_MOD_B8 && in->mods[k] <= GPUL_PTX_MOD_PRED &&
		    i-- == 0)
			return in->mods[k];
	return GPUL_PTX_MOD_NONE;
}

static uint16_t space_of(const gpul_ptx_inst *in)
{
	for (unsigned k = 0; k < in->n_mods; k++)
		switch (in->mods[k]) {
		case GPUL_PTX_MOD_PARAM__ENTRY:
		case GPUL_PTX_MOD_PARAM__FUNC:
			return GPUL_PTX_MOD_PARAM;
		case GPUL_PTX_MOD_SHARED__CTA:
		case GPUL_PTX_MOD_SHARED__CLUSTER:
			return GPUL_PTX_MOD_SHARED;
		case GPUL_PTX_MOD_GLOBAL:
		case GPUL_PTX_MOD_SHARED:
		case GPUL_PTX_MOD_LOCAL:
		case GPUL_PTX_MOD_CONST:
		case GPUL_PTX_MOD_PARAM:
			return in->mods[k];
		default:
			break;
		}
	return GPUL_PTX_MOD_NONE;
}

static uint8_t vector_of(const gpul_ptx_inst *in)
{
	if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_V2))
		return 2;
	if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_V4))
		return 4;
	return gpul_ptx_has_mod(in, GPUL_PTX_MOD_V8) ? 8 : 1;
}

gpul_flow_access gpul_flow_access_of(const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	gpul_flow_access a = { .type = gpul_flow_type(in, 0),
			       .space = space_of(in),
			       .vector = vector_of(in) };
	unsigned at = 0;

	switch (in->opcode) {
	case GPUL_PTX_ATOM:
		a.atomic = a.stores = true;
		/* fall through */
	case GPUL_PTX_LD:
	case GPUL_PTX_LDU:
		a.waits = !a.atomic && (gpul_ptx_has_mod(in, GPUL_PTX_MOD_ACQUIRE) ||
					gpul_ptx_has_mod(in, GPUL_PTX_MOD_RELAXED) ||
					gpul_ptx_has_mod(in, GPUL_PTX_MOD_VOLATILE) ||
					gpul_ptx_has_mod(in, GPUL_PTX_MOD_MMIO));
		a.loads = true;
		at = 1;
		break;
	case GPUL_PTX_RED:
		a.atomic = a.loads = true;
		/* fall through */
	case GPUL_PTX_ST:
		a.stores = true;
		break;
	default:
		return a;
	}
	if (in->n_operands <= at || gpul_flow_operand(fn, in, at)->kind != GPUL_PTX_OP_ADDRESS)
		return (gpul_flow_access){ 0 };
	a.address = gpul_flow_operand(fn, in, at);
	a.result = at ? gpul_flow_operand(fn, in, 0) : NULL;
	if (a.stores && in->n_operands > at + 1)
		a.value = gpul_flow_operand(fn, in, at + 1);
	return a;
}

bool gpul_flow_writes(const gpul_ptx_inst *in)
{
	switch (in->opcode) {
	case GPUL_PTX_ST:
	case GPUL_PTX_RED:
	case GPUL_PTX_BRA:
	case GPUL_PTX_BRX:
	case GPUL_PTX_CALL:
	case GPUL_PTX_NANOSLEEP:
	case GPUL_PTX_PREFETCH:
	case GPUL_PTX_PREFETCHU:
	case GPUL_PTX_CP:
	case GPUL_PTX_STMATRIX:
	case GPUL_PTX_SUST:
	case GPUL_PTX_SURED:
		return false;
	case GPUL_PTX_BAR:
	case GPUL_PTX_BARRIER:
		return gpul_ptx_has_mod(in, GPUL_PTX_MOD_RED);
	default:
		return in->n_operands > 0;
	}
}
