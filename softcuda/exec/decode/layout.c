#include <stdio.h>
#include <stdlib.h>

#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/shown_name_internal.h"
#include "softcuda/exec/texture/texture_internal.h"

enum { MAX_LOCAL = 512 << 10, MAX_DIMS = 8, VARIABLE_ALIGN = 256, VARIABLE_GAP = 4096 };

static uint64_t align_of(const gpul_ptx_var *v)
{
	unsigned type = gpul_ptx_type_bytes(v->type);
	uint64_t own = type ? (uint64_t)type * (v->vector ? v->vector : 1) : 8;

	return v->align > own ? v->align : own;
}

static uint64_t align_up(uint64_t at, uint64_t align)
{
	return (at + align - 1) / align * align;
}

/* ---- global and constant variables ------------------------------------------------------------------- */

/* Return the accessible bytes after a variable.  A GPU maps variables in pages of 2 MiB, so a small overrun of a variable does not fault;
 * here such an access reads or writes VARIABLE_GAP bytes of unused memory, which are 0 at first. */
static uint64_t padding_of_variable(const struct gpul_exec_program *p, const gpul_ptx_var *v)
{
	for (const struct observer *o = gpul_exec_memory_observers(p->memory); o; o = o->next)
		if (o->exact_bounds)
			return 0;
	return align_up(v->bytes + VARIABLE_GAP, VARIABLE_ALIGN) - v->bytes;
}

static gpul_status allocate_variable(struct gpul_exec_program *p, const gpul_ptx_var *v, uint64_t *address, gpul_error *err)
{
	const char *name = gpul_ptx_name(p->module, v->name);
	gpul_exec_range range = { .bytes = v->bytes };
	char shown[sizeof range.label - sizeof "constant"];

	if (v->bytes > 1ull << 40 || align_of(v) > 1 << 20)
		return gpul_fail(err, GPUL_ENOMEM, 0,
				 "%s:%u: variable %s has %llu bytes; at most 2^40 bytes and an alignment of 2^20 "
				 "are possible",
				 p->file_name, v->line, name, (unsigned long long)v->bytes);
	if (!gpul_program_take(p, v->bytes + VARIABLE_GAP, align_of(v) > VARIABLE_ALIGN ? align_of(v) : VARIABLE_ALIGN, address, err))
		return GPUL_ENOMEM;
	if (!v->bytes)
		return GPUL_OK;
	range.base = *address;
	range.padding = padding_of_variable(p, v);
	range.flags = v->space == GPUL_PTX_MOD_CONST ? GPUL_EXEC_MEM_CONSTANT : 0;
	snprintf(range.label, sizeof range.label, "%s %s", v->space == GPUL_PTX_MOD_CONST ? "constant" : "global",
		 gpul_shown_name(name, shown, sizeof shown));
	return gpul_exec_memory_add(p->memory, &range, err);
}

bool gpul_var_is_reference(const gpul_ptx_var *v)
{
	return v->type == GPUL_PTX_MOD_TEXREF || v->type == GPUL_PTX_MOD_SURFREF || v->space == GPUL_PTX_MOD_TEX;
}

/* Create the handle of a texture or surface reference, which the host binds to an array or to memory. */
static gpul_status add_reference(const gpul_ptx_var *v, struct variable *to, gpul_error *err)
{
	if (v->n_dims)
		return GPUL_OK; /* arrays of references get no handle: decoding reports instructions that use them as unsupported */
	const enum texture_kind kind = v->type == GPUL_PTX_MOD_SURFREF ? SURFACE_OBJECT : TEXTURE_OBJECT;

	to->reference = (uint8_t)kind;
	to->address = gpul_texture_add(kind, NULL);
	return to->address ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %s", to->name);
}

static bool is_global_or_const(const gpul_ptx_var *v)
{
	if (gpul_var_is_reference(v) || v->type == GPUL_PTX_MOD_SAMPLERREF)
		return false;
	return v->space == GPUL_PTX_MOD_GLOBAL || v->space == GPUL_PTX_MOD_CONST;
}

static bool is_extern(const gpul_ptx_var *v)
{
	return v->linkage == GPUL_PTX_EXTERN;
}

/* Give an extern variable the address of the definition with the same name. */
static void bind_extern(struct gpul_exec_program *p, uint32_t row)
{
	const gpul_ptx_module *m = p->module;

	for (uint32_t k = 0; k < m->n_vars; k++)
		if (m->vars[k].name == m->vars[row].name && is_global_or_const(&m->vars[k]) && !is_extern(&m->vars[k]))
			p->variables[row].address = p->variables[k].address;
}

gpul_status gpul_layout_variables(struct gpul_exec_program *p, gpul_error *err)
{
	const gpul_ptx_module *m = p->module;
	gpul_status st;

	for (uint32_t k = 0; k < m->n_vars; k++) {
		const gpul_ptx_var *v = &m->vars[k];

		p->variables[k] = (struct variable){ .name = gpul_ptx_name(m, v->name), .bytes = v->bytes };
		if (gpul_var_is_reference(v) && !is_extern(v)) {
			st = add_reference(v, &p->variables[k], err);
			if (st)
				return st;
		}
		if (!is_global_or_const(v) || is_extern(v))
			continue;
		st = allocate_variable(p, v, &p->variables[k].address, err);
		if (st)
			return st;
		p->variables[k].global = true;
		p->variables[k].managed = v->attributes & GPUL_PTX_ATTRIBUTE_MANAGED;
	}
	for (uint32_t k = 0; k < m->n_vars; k++)
		if (is_global_or_const(&m->vars[k]) && is_extern(&m->vars[k]))
			bind_extern(p, k);
	return GPUL_OK;
}

/* ---- initializers: PTX ISA 5.4.4 ------------------------------------------------------------------------- */

struct filler {
	struct gpul_exec_program *p;
	const gpul_ptx_var *v;
	uint8_t *to;
	uint64_t at, n_elements;      /* index of the next element to fill; number of elements */
	unsigned depth;               /* number of open braces */
	uint64_t start[MAX_DIMS + 1]; /* for each depth: index of the first element inside its braces */
};

static uint64_t symbol_value(const struct gpul_exec_program *p, const gpul_ptx_init *i)
{
	uint64_t value;

	if (i->ref_kind == GPUL_PTX_REF_FUNC) {
		uint32_t row = p->module->funcs[i->index].definition;

		value = row == GPUL_PTX_NONE ? 0 : (uintptr_t)&p->code[row];
	} else {
		value = p->module->vars[i->index].space == GPUL_PTX_MOD_SHARED ? p->shared_offset[i->index]
									       : p->variables[i->index].address;
	}
	value += (uint64_t)i->i;
	return i->mask_byte ? value >> 8 * (i->mask_byte - 1) & 0xff : value;
}

static uint64_t element_bits(const struct filler *f, const gpul_ptx_init *i)
{
	bool wide = gpul_ptx_type_bytes(f->v->type) == 8;
	uint64_t bits = (uint64_t)i->i;
	double x;
	float y;

	switch (i->kind) {
	case GPUL_PTX_INIT_SYMBOL:
		return symbol_value(f->p, i);
	case GPUL_PTX_INIT_F64:
		if (wide)
			return bits;
		memcpy(&x, &bits, 8);
		y = (float)x;
		bits = 0;
		memcpy(&bits, &y, 4);
		return bits;
	case GPUL_PTX_INIT_F32:
		if (!wide)
			return bits;
		memcpy(&y, &bits, 4);
		x = (double)y;
		memcpy(&bits, &x, 8);
		return bits;
	default:
		if (f->v->type == GPUL_PTX_MOD_F64) {
			x = (double)i->i;
			memcpy(&bits, &x, 8);
		} else if (f->v->type == GPUL_PTX_MOD_F32) {
			y = (float)i->i;
			memcpy(&bits, &y, 4);
		}
		return bits;
	}
}

/* Return the number of elements that one pair of braces at `depth` covers: in `{ {1}, {2} }`, each inner pair covers a row. */
static uint64_t row_elements(const struct filler *f, unsigned depth)
{
	uint64_t n = f->v->vector ? f->v->vector : 1;

	for (uint32_t k = depth - 1; k < f->v->n_dims; k++)
		n *= k == 0 ? 1 : f->p->module->dims[f->v->first_dim + k];
	return n;
}

static bool initialise_element(struct filler *f, const gpul_ptx_init *i)
{
	unsigned bytes = gpul_ptx_type_bytes(f->v->type);
	uint64_t bits;

	if (i->kind == GPUL_PTX_INIT_OPEN) {
		if (++f->depth > MAX_DIMS)
			return false;
		f->start[f->depth] = f->at;
		return true;
	}
	if (i->kind == GPUL_PTX_INIT_CLOSE) {
		if (f->depth > 1)
			f->at = f->start[f->depth] + row_elements(f, f->depth);
		f->depth--;
		return true;
	}
	if (f->at >= f->n_elements)
		return false;
	bits = element_bits(f, i);
	memcpy(f->to + f->at++ * bytes, &bits, bytes < 8 ? bytes : 8);
	return true;
}

/* Return true if the initialiser is the address of an undefined function.  ptxas rejects such an initialiser too. */
static bool is_undefined_function(const struct gpul_exec_program *p, const gpul_ptx_init *i)
{
	const gpul_ptx_func *f;

	if (i->kind != GPUL_PTX_INIT_SYMBOL || i->ref_kind != GPUL_PTX_REF_FUNC)
		return false;
	f = &p->module->funcs[i->index];
	return f->definition == GPUL_PTX_NONE && gpul_builtin_find(gpul_ptx_name(p->module, f->name)) == BUILTIN_NONE;
}

static gpul_status refuse_undefined_function(const struct gpul_exec_program *p, const gpul_ptx_var *v, const gpul_ptx_init *i,
					     gpul_error *err)
{
	return gpul_fail(err, GPUL_EFORMAT, 0, "%s:%u: undefined reference to function %.80s in the initialiser of %.60s", p->file_name,
			 v->line, gpul_ptx_name(p->module, p->module->funcs[i->index].name), gpul_ptx_name(p->module, v->name));
}

static gpul_status initialise_variable(struct gpul_exec_program *p, const gpul_ptx_var *v, uint64_t address, gpul_error *err)
{
	unsigned bytes = gpul_ptx_type_bytes(v->type);
	struct filler f = { .p = p, .v = v, .to = (uint8_t *)(uintptr_t)address };

	if (!v->n_inits || !is_global_or_const(v) || !bytes || bytes > 8)
		return GPUL_OK;
	f.n_elements = v->bytes / bytes;
	for (uint32_t k = 0; k < v->n_inits; k++) {
		const gpul_ptx_init *i = &p->module->inits[v->first_init + k];

		if (is_undefined_function(p, i))
			return refuse_undefined_function(p, v, i, err);
		if (!initialise_element(&f, i))
			return gpul_fail(err, GPUL_EFORMAT, 0, "%s:%u: too many values for variable %s, which has %llu elements",
					 p->file_name, v->line, gpul_ptx_name(p->module, v->name), (unsigned long long)f.n_elements);
	}
	return GPUL_OK;
}

gpul_status gpul_layout_initialise(struct gpul_exec_program *p, gpul_error *err)
{
	const gpul_ptx_module *m = p->module;
	gpul_status st = GPUL_OK;

	for (uint32_t k = 0; !st && k < m->n_vars; k++)
		st = initialise_variable(p, &m->vars[k], p->variables[k].address, err);
	return st;
}

/* ---- shared memory ---------------------------------------------------------------------------------------- */

/* Lay out the .shared variables of module scope.  In shared memory they come first, then the variables of device functions, then
 * those of the kernel, at an offset that is the same for all kernels. */
void gpul_layout_shared(struct gpul_exec_program *p)
{
	const gpul_ptx_module *m = p->module;
	uint64_t at = 0;

	p->dynamic_align = 16;
	for (uint32_t k = 0; k < m->n_vars; k++) {
		const gpul_ptx_var *v = &m->vars[k];

		if (v->space != GPUL_PTX_MOD_SHARED)
			continue;
		if (v->linkage == GPUL_PTX_EXTERN && !v->bytes) {
			if (align_of(v) > p->dynamic_align)
				p->dynamic_align = (uint32_t)align_of(v);
			continue;
		}
		at = align_up(at, align_of(v));
		p->shared_offset[k] = (uint32_t)at;
		at += v->bytes;
	}
	p->module_shared_bytes = (uint32_t)at;
}

/* ---- local memory of the module ---------------------------------------------------------------------------- */

/* Lay out the .local variables of module scope.  In local memory they come first, then those of the kernel, then those of its callees. */
void gpul_layout_module_local(struct gpul_exec_program *p)
{
	const gpul_ptx_module *m = p->module;
	uint64_t at = 0;

	for (uint32_t k = 0; k < m->n_vars; k++) {
		const gpul_ptx_var *v = &m->vars[k];

		if (v->space != GPUL_PTX_MOD_LOCAL)
			continue;
		at = align_up(at, align_of(v));
		p->module_local_align = align_of(v) > p->module_local_align ? (uint32_t)align_of(v) : p->module_local_align;
		p->shared_offset[k] = (uint32_t)at;
		at = at + v->bytes > MAX_LOCAL ? MAX_LOCAL + 1u : at + v->bytes;
	}
	p->module_local_bytes = (uint32_t)at;
}

/* ---- functions ---------------------------------------------------------------------------------------------- */

static gpul_status lay_out_parameters(struct gpul_exec_program *p, const gpul_ptx_var *vars, uint32_t n, uint64_t *at,
				      struct local_slot **slots, struct vector_regs **regs, gpul_error *err)
{
	*slots = gpul_program_alloc(p, (n + 1) * sizeof **slots, err);
	*regs = gpul_program_alloc(p, (n + 1) * sizeof **regs, err);
	if (!*slots || !*regs)
		return GPUL_ENOMEM;
	for (uint32_t k = 0; k < n; k++) {
		if (vars[k].space == GPUL_PTX_MOD_REG) {
			unsigned bytes = gpul_ptx_type_bytes(vars[k].type);

			(*slots)[k] = (struct local_slot){ UINT32_MAX, bytes == 1 ? 2 : bytes };
			continue;
		}
		*at = align_up(*at, align_of(&vars[k]));
		(*slots)[k] = (struct local_slot){ (uint32_t)*at, (uint32_t)vars[k].bytes };
		*at += vars[k].bytes;
	}
	return GPUL_OK;
}

/* Lay out the variables that a body declares: .local and .param variables in local memory, .shared variables after the module's. */
static gpul_status lay_out_body(struct gpul_exec_program *p, struct func_code *code, uint64_t *local, gpul_error *err)
{
	const gpul_ptx_func *f = code->ptx;
	uint64_t shared = code->shared_base;
	gpul_status st;

	code->var_offset = gpul_program_alloc(p, (f->n_vars + 1) * sizeof *code->var_offset, err);
	code->var_address = gpul_program_alloc(p, (f->n_vars + 1) * sizeof *code->var_address, err);
	if (!code->var_offset || !code->var_address)
		return GPUL_ENOMEM;
	for (uint32_t k = 0; k < f->n_vars; k++) {
		const gpul_ptx_var *v = &f->vars[k];
		uint64_t *at = v->space == GPUL_PTX_MOD_SHARED ? &shared : local;

		if (is_global_or_const(v)) {
			st = allocate_variable(p, v, &code->var_address[k], err);
			if (st)
				return st;
			continue;
		}
		if (v->space == GPUL_PTX_MOD_SHARED && v->linkage == GPUL_PTX_EXTERN && !v->bytes) {
			if (align_of(v) > p->dynamic_align)
				p->dynamic_align = (uint32_t)align_of(v);
			continue;
		}
		*at = align_up(*at, align_of(v));
		if (at == local && align_of(v) > code->local_align)
			code->local_align = (uint32_t)align_of(v);
		code->var_offset[k] = (uint32_t)*at;
		*at += v->bytes;
	}
	if (shared > code->shared_base)
		code->own_shared_bytes = (uint32_t)shared;
	if (shared > UINT32_MAX / 2 || *local > MAX_LOCAL)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s:%u: %s has %llu bytes of local and %llu bytes of shared memory; "
				 "at most %u bytes of local memory are possible",
				 p->file_name, f->line, gpul_ptx_name(p->module, f->name), (unsigned long long)*local,
				 (unsigned long long)shared, (unsigned)MAX_LOCAL);
	return GPUL_OK;
}

/* Return the offset after the .shared variables that a device function declares.  `at`: the offset after those of the previous function. */
static uint32_t shared_end(uint64_t at, const gpul_ptx_func *f)
{
	for (uint32_t k = 0; k < f->n_vars; k++) {
		const gpul_ptx_var *v = &f->vars[k];

		if (v->space == GPUL_PTX_MOD_SHARED && (v->linkage != GPUL_PTX_EXTERN || v->bytes))
			at = align_up(at, align_of(v)) + v->bytes;
	}
	return at < UINT32_MAX ? (uint32_t)at : UINT32_MAX; /* if the offset is too large, gpul_layout_body() reports an error */
}

gpul_status gpul_layout_function(struct gpul_exec_program *p, struct func_code *code, gpul_error *err)
{
	const gpul_ptx_func *f = code->ptx;
	uint64_t at = 0;
	gpul_status st = lay_out_parameters(p, f->params, f->n_params, &at, &code->params, &code->param_regs, err);

	if (!st)
		st = lay_out_parameters(p, f->rets, f->n_rets, &at, &code->rets, &code->ret_regs, err);
	if (st)
		return st;
	code->param_bytes = f->kind == GPUL_PTX_FUNC_ENTRY ? (uint32_t)at : 0;
	code->local_bytes = f->kind == GPUL_PTX_FUNC_ENTRY ? p->module_local_bytes : (uint32_t)at;
	code->local_align = f->kind == GPUL_PTX_FUNC_ENTRY ? p->module_local_align : 0;
	code->shared_base = p->module_shared_bytes;
	if (f->kind == GPUL_PTX_FUNC_DEVICE)
		p->module_shared_bytes = shared_end(p->module_shared_bytes, f);
	return GPUL_OK;
}

gpul_status gpul_layout_body(struct gpul_exec_program *p, struct func_code *code, gpul_error *err)
{
	uint64_t local = code->local_bytes;
	gpul_status st = lay_out_body(p, code, &local, err);

	for (uint32_t n = 0; !st && n < code->ptx->n_vars; n++)
		st = initialise_variable(p, &code->ptx->vars[n], code->var_address[n], err);
	code->local_bytes = (uint32_t)align_up(local, 16);
	return st;
}
