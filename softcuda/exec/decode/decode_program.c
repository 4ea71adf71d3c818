/* decode_program.c — creates a program from a module: lays out variables, decodes functions, describes kernels. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/thread/thread.h"
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/native/native_internal.h"
#include "softcuda/exec/texture/texture_internal.h"

enum {
	STACK_BYTES = 32 << 10, /* local memory for recursion and calls through pointers */
	MAX_THREADS = 1024,
	MAX_LEVELS = 4096, /* nesting of calls: MAX_DEPTH in warp/warp_call.c */
};

/* ---- the local memory that calls need ----------------------------------------------------------------- */

/* Local memory of the deepest call chain from this function, which is itself called at this level; UINT32_MAX: recursion, calls
 * through pointers, or more than MAX_LEVELS, which would overflow the stack of this recursive function. */
static uint32_t call_depth_bytes(struct func_code *code, unsigned level)
{
	uint32_t deepest = 0;

	if (code->depth_bytes)
		return code->depth_bytes;
	if (code->visited || code->calls_pointer || code->uses_stack || level > MAX_LEVELS)
		return UINT32_MAX;
	code->visited = true;
	for (uint32_t k = 0; k < code->n_insns; k++) {
		const struct insn *i = &code->insns[k];
		const struct call_site *site = i->op == OP_CALL ? i->object : NULL;
		uint32_t below = site ? call_depth_bytes((struct func_code *)(uintptr_t)site->callee, level + 1) : 0;

		deepest = below > deepest ? below : deepest;
	}
	code->visited = false;
	code->depth_bytes = deepest + code->local_bytes;
	if (deepest == UINT32_MAX || code->local_bytes > UINT32_MAX / 2 - deepest)
		code->depth_bytes = UINT32_MAX; /* stored too, so that each path to a recursion is not walked again */
	return code->depth_bytes;
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

static uint32_t count_registers(const gpul_ptx_func *f)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < f->n_regs; k++)
		bytes += (uint64_t)gpul_ptx_type_bytes(f->regs[k].type) * f->regs[k].count * f->regs[k].vector;
	if (f->tuning.maxnreg > 0 && bytes / 4 > (uint64_t)f->tuning.maxnreg)
		return (uint32_t)f->tuning.maxnreg;
	return bytes / 4 > 255 ? 255 : bytes < 64 ? 16 : (uint32_t)(bytes / 4);
}

static bool names_module_shared(const struct gpul_exec_program *p, const gpul_ptx_func *f)
{
	for (uint32_t k = 0; k < f->n_operands; k++) {
		const gpul_ptx_operand *o = &f->operands[k];

		if (o->kind != GPUL_PTX_OP_SYMBOL)
			continue;
		if (o->ref_kind == GPUL_PTX_REF_MODULE_VAR && p->module->vars[o->index].space == GPUL_PTX_MOD_SHARED &&
		    p->module->vars[o->index].bytes)
			return true;
		if (o->ref_kind == GPUL_PTX_REF_FUNC)
			return p->module_shared_bytes;
	}
	return false;
}

static uint32_t constant_bytes(const gpul_ptx_module *m)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < m->n_vars; k++)
		if (m->vars[k].space == GPUL_PTX_MOD_CONST)
			bytes += m->vars[k].bytes;
	return (uint32_t)bytes;
}

static uint32_t thread_limit(const gpul_ptx_tuning *t)
{
	const int64_t *n = t->reqntid[0] > 0 ? t->reqntid : t->maxntid;
	int64_t threads = 1;

	if (n[0] <= 0)
		return MAX_THREADS;
	for (int k = 0; k < 3; k++)
		threads *= n[k] > 0 && n[k] <= MAX_THREADS ? n[k] : 1;
	return threads < MAX_THREADS ? (uint32_t)threads : MAX_THREADS;
}

static gpul_status describe_kernel(struct gpul_exec_program *p, struct func_code *code, uint32_t const_bytes, gpul_exec_kernel *k,
				   gpul_error *err)
{
	const gpul_ptx_func *f = code->ptx;
	uint32_t depth = call_depth_bytes(code, 0);

	k->params = gpul_program_alloc(p, (f->n_params + 1) * sizeof *k->params, err);
	if (!k->params)
		return GPUL_ENOMEM;
	for (uint32_t n = 0; n < f->n_params; n++)
		k->params[n] = (gpul_exec_param){ code->params[n].offset, code->params[n].bytes };
	k->code = code;
	k->refusal = code->refusal;
	k->dynamic_align = p->dynamic_align;
	k->stack_bytes = depth == UINT32_MAX ? code->local_bytes + STACK_BYTES : depth;
	k->info = (gpul_exec_kernel_info){
		.name = gpul_ptx_name(p->module, f->name),
		.params = k->params,
		.n_params = f->n_params,
		.param_bytes = code->param_bytes,
		.n_regs = count_registers(f),
		.local_bytes = code->local_bytes,
		.const_bytes = const_bytes,
		.max_threads = thread_limit(&f->tuning),
		.shared_bytes = code->own_shared_bytes      ? code->own_shared_bytes
				: names_module_shared(p, f) ? p->module_shared_bytes
							    : 0,
	};
	for (int n = 0; n < 3; n++)
		k->info.reqntid[n] = f->tuning.reqntid[n] > 0 ? (uint32_t)f->tuning.reqntid[n] : 0;
	for (unsigned n = 0; n < 3 && f->tuning.reqnctapercluster[0] > 0; n++)
		k->info.cluster[n] = f->tuning.reqnctapercluster[n] > 0 ? (uint32_t)f->tuning.reqnctapercluster[n] : 1;
	k->info.explicit_cluster = f->tuning.explicitcluster;
	return GPUL_OK;
}

static gpul_status describe_kernels(struct gpul_exec_program *p, gpul_error *err)
{
	const uint32_t const_bytes = constant_bytes(p->module);

	p->kernels = gpul_program_alloc(p, (p->module->n_funcs + 1) * sizeof *p->kernels, err);
	if (!p->kernels)
		return GPUL_ENOMEM;
	for (uint32_t k = 0; k < p->module->n_funcs; k++) {
		gpul_status st;

		if (p->module->funcs[k].kind != GPUL_PTX_FUNC_ENTRY || !p->module->funcs[k].has_body)
			continue;
		st = describe_kernel(p, &p->code[k], const_bytes, &p->kernels[p->n_kernels], err);
		if (st)
			return st;
		p->n_kernels++;
	}
	return GPUL_OK;
}

/* ---- building ---------------------------------------------------------------------------------------------- */

/* Lay out all functions of one kind.  Called for device functions first, because kernels' shared variables start after those of
 * device functions. */
static gpul_status lay_out_functions(struct gpul_exec_program *p, unsigned kind, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (uint32_t k = 0; !st && k < p->module->n_funcs; k++)
		if (p->module->funcs[k].kind == kind && p->module->funcs[k].has_body)
			st = gpul_layout_function(p, &p->code[k], err);
	return st;
}

static gpul_status build_program(struct gpul_exec_program *p, gpul_error *err)
{
	const gpul_ptx_module *m = p->module;
	gpul_status st;

	if (m->address_size == 32)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s: .address_size 32: only 64-bit PTX is interpreted", p->file_name);
	p->code = gpul_program_alloc(p, (m->n_funcs + 1) * sizeof *p->code, err);
	p->variables = gpul_program_alloc(p, (m->n_vars + 1) * sizeof *p->variables, err);
	p->shared_offset = gpul_program_alloc(p, (m->n_vars + 1) * sizeof *p->shared_offset, err);
	p->module_reg_offset = gpul_program_alloc(p, (m->n_flat_regs + 1) * sizeof *p->module_reg_offset, err);
	if (!p->code || !p->variables || !p->shared_offset || !p->module_reg_offset)
		return GPUL_ENOMEM;
	memset(p->module_reg_offset, 0xff, m->n_flat_regs * sizeof *p->module_reg_offset);
	for (uint32_t k = 0; k < m->n_funcs; k++) {
		p->code[k].ptx = &m->funcs[k];
		p->code[k].program = p;
	}
	st = gpul_layout_variables(p, err);
	gpul_layout_shared(p);
	gpul_layout_module_local(p);
	if (!st)
		st = lay_out_functions(p, GPUL_PTX_FUNC_DEVICE, err);
	if (!st)
		st = lay_out_functions(p, GPUL_PTX_FUNC_ENTRY, err);
	if (!st)
		st = gpul_layout_initialise(p, err);
	for (uint32_t k = 0; !st && k < m->n_funcs; k++)
		if (m->funcs[k].has_body && m->funcs[k].kind != GPUL_PTX_FUNC_PROTOTYPE)
			st = gpul_decode_function(p, &p->code[k], err);
	if (!st)
		st = gpul_spread_refusals(p, err);
	if (!st)
		st = describe_kernels(p, err);
	return st ? st : gpul_names_create(p, err);
}

gpul_status gpul_exec_program_create(gpul_exec_memory *memory, gpul_ptx_module *module, const char *file_name, gpul_exec_program **out,
				     gpul_error *err)
{
	static _Atomic uint64_t ids;
	gpul_exec_program *p = calloc(1, sizeof *p);
	fenv_t callers;
	gpul_status st;

	if (!p) {
		gpul_ptx_module_destroy(module);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a program");
	}
	p->id = atomic_fetch_add(&ids, 1) + 1;
	p->memory = memory;
	p->compiles = gpul_compiles_runs();
	p->module = module;
	p->file_name = strdup(file_name ? file_name : "PTX");
	gpul_float_default(&callers); /* literals are converted to the types of their instructions and variables */
	st = p->file_name ? build_program(p, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a program");
	gpul_float_restore(&callers);
	if (st) {
		gpul_exec_program_destroy(p);
		return st;
	}
	*out = p;
	return GPUL_OK;
}

static void remove_variables(struct gpul_exec_program *p)
{
	for (uint32_t k = 0; p->variables && k < p->module->n_vars; k++) {
		if (p->variables[k].global)
			gpul_exec_memory_remove(p->memory, p->variables[k].address);
		if (p->variables[k].reference)
			gpul_texture_remove(p->variables[k].address);
	}
	for (uint32_t k = 0; p->code && k < p->module->n_funcs; k++)
		for (uint32_t n = 0; p->code[k].var_address && n < p->module->funcs[k].n_vars; n++)
			if (p->code[k].var_address[n])
				gpul_exec_memory_remove(p->memory, p->code[k].var_address[n]);
}

void gpul_exec_program_destroy(gpul_exec_program *p)
{
	if (!p)
		return;
	for (struct observer *o = gpul_exec_memory_observers(p->memory); o; o = o->next)
		if (o->program_ends)
			o->program_ends(o, p);
	remove_variables(p);
	gpul_native_free(p);
	for (uint32_t k = 0; p->code && k < p->module->n_funcs; k++)
		free(p->code[k].insns);
	for (size_t k = 0; k < p->n_blocks; k++)
		free(p->blocks[k]);
	free(p->blocks);
	gpul_program_give(p);
	gpul_consts_free(&p->consts);
	gpul_ptx_module_destroy(p->module);
	free(p->file_name);
	free(p);
}

/* ---- queries ----------------------------------------------------------------------------------------------- */

size_t gpul_exec_n_kernels(const gpul_exec_program *p)
{
	return p->n_kernels;
}

const gpul_exec_kernel *gpul_exec_kernel_at(const gpul_exec_program *p, size_t i)
{
	return i < p->n_kernels ? &p->kernels[i] : NULL;
}

const gpul_exec_kernel_info *gpul_exec_kernel_info_of(const gpul_exec_kernel *k)
{
	return &k->info;
}

const char *gpul_exec_kernel_refusal(const gpul_exec_kernel *k)
{
	return k->refusal;
}
