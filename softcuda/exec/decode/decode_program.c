/* decode_program.c — creates a program from a module: lays out variables, decodes functions, describes kernels. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/thread/thread.h"
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/native/native_internal.h"
#include "softcuda/exec/texture/texture_internal.h"

enum { MAX_THREADS = 1024, CONSTS_BYTES = 1 << 30, LEAST_CONSTS_BYTES = 64 << 10 };

/* ---- kernels ---------------------------------------------------------------------------------------------- */

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

/* Set the members of *k that are known without the kernel's body; gpul_exec_kernel_prepare() sets the others. */
static gpul_status describe_kernel(struct gpul_exec_program *p, struct func_code *code, uint32_t const_bytes, gpul_exec_kernel *k,
				   gpul_error *err)
{
	const gpul_ptx_func *f = code->ptx;

	k->params = gpul_program_alloc(p, (f->n_params + 1) * sizeof *k->params, err);
	if (!k->params)
		return GPUL_ENOMEM;
	for (uint32_t n = 0; n < f->n_params; n++)
		k->params[n] = (gpul_exec_param){ code->params[n].offset, code->params[n].bytes };
	k->code = code;
	k->info = (gpul_exec_kernel_info){
		.name = gpul_ptx_name(p->module, f->name),
		.params = k->params,
		.n_params = f->n_params,
		.param_bytes = code->param_bytes,
		.const_bytes = const_bytes,
		.max_threads = thread_limit(&f->tuning),
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

	p->kernels = gpul_program_alloc(p, (p->n_code + 1) * sizeof *p->kernels, err);
	if (!p->kernels)
		return GPUL_ENOMEM;
	for (uint32_t k = 0; k < p->n_code; k++) {
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

/* ---- building a program ------------------------------------------------------------------------------------ */

/* Lay out all functions of one kind: device functions first, because their shared variables precede those of kernels. */
static gpul_status lay_out_functions(struct gpul_exec_program *p, unsigned kind, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (uint32_t k = 0; !st && k < p->n_code; k++)
		if (p->module->funcs[k].kind == kind && p->module->funcs[k].has_body)
			st = gpul_layout_function(p, &p->code[k], err);
	return st;
}

static gpul_status build_program(struct gpul_exec_program *p, gpul_error *err)
{
	const gpul_ptx_module *m = p->module;
	gpul_status st;

	p->n_code = m->n_funcs;
	if (m->address_size == 32)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s: .address_size 32: only 64-bit PTX is interpreted", p->file_name);
	p->code = gpul_program_alloc(p, (p->n_code + 1) * sizeof *p->code, err);
	p->variables = gpul_program_alloc(p, (m->n_vars + 1) * sizeof *p->variables, err);
	p->shared_offset = gpul_program_alloc(p, (m->n_vars + 1) * sizeof *p->shared_offset, err);
	p->module_reg_offset = gpul_program_alloc(p, (m->n_flat_regs + 1) * sizeof *p->module_reg_offset, err);
	if (!p->code || !p->variables || !p->shared_offset || !p->module_reg_offset)
		return GPUL_ENOMEM;
	memset(p->module_reg_offset, 0xff, m->n_flat_regs * sizeof *p->module_reg_offset);
	for (uint32_t k = 0; k < p->n_code; k++) {
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
	if (!st)
		st = describe_kernels(p, err);
	if (!st && !p->need)
		st = gpul_need_everything(p, err);
	return st ? st : gpul_names_create(p, err);
}

static bool observed_as_a_whole(const gpul_exec_memory *m)
{
	for (const struct observer *o = gpul_exec_memory_observers(m); o; o = o->next)
		if (o->whole_programs)
			return true;
	return false;
}

/* Return true if functions may be decoded lazily: no observer reads the whole program, there are no registers of module scope (a
 * kernel needs their memory when it starts), and an address range for the constants could be reserved.  Another program of a module needs
 * about as many constants as `first`, which has been decoded: twice as many are reserved, because equal constants are stored once, and
 * addresses of variables may be equal by chance in `first`. */
static bool can_decode_later(struct gpul_exec_program *p, const struct gpul_exec_program *first)
{
	return (p->module->bodies || first) && !p->module->n_regs && !observed_as_a_whole(p->memory) &&
	       gpul_consts_reserve(&p->consts, first && !first->need ? 2 * first->consts.used + LEAST_CONSTS_BYTES : CONSTS_BYTES);
}

static bool reads_reserved_shared(const struct gpul_exec_program *p)
{
	for (uint32_t k = 0; k < p->n_specials; k++)
		switch (p->specials[k].special) {
		case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN:
		case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_END:
		case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_0:
		case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_1:
			return true;
		default:
			break;
		}
	return false;
}

static gpul_status create(gpul_exec_memory *memory, gpul_ptx_module *module, const char *file_name, const gpul_exec_program *first,
			  gpul_exec_program **out, gpul_error *err)
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
	p->need = can_decode_later(p, first) ? gpul_function_need : NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->file_name = strdup(file_name ? file_name : "PTX");
	gpul_float_default(&callers); /* converting literals needs the default rounding mode */
	st = p->file_name ? build_program(p, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a program");
	if (!st && first)
		st = gpul_describe_again(p, first, err);
	gpul_float_restore(&callers);
	if (st) {
		gpul_exec_program_destroy(p);
		return st;
	}
	p->reserves_shared = first && !first->need ? first->reserves_shared : p->need || reads_reserved_shared(p);
	*out = p;
	return GPUL_OK;
}

gpul_status gpul_exec_program_create(gpul_exec_memory *memory, gpul_ptx_module *module, const char *file_name, gpul_exec_program **out,
				     gpul_error *err)
{
	return create(memory, module, file_name, NULL, out, err);
}

gpul_status gpul_exec_program_again(const gpul_exec_program *first, gpul_exec_program **out, gpul_error *err)
{
	return create(first->memory, gpul_ptx_module_share(first->module), first->file_name, first, out, err);
}

static void remove_variables(struct gpul_exec_program *p)
{
	for (uint32_t k = 0; p->variables && k < p->module->n_vars; k++) {
		if (p->variables[k].global)
			gpul_exec_memory_remove(p->memory, p->variables[k].address);
		if (p->variables[k].reference)
			gpul_texture_remove(p->variables[k].address);
	}
	for (uint32_t k = 0; p->code && k < p->n_code; k++)
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
	for (uint32_t k = 0; p->code && k < p->n_code; k++)
		free(p->code[k].insns);
	for (size_t k = 0; k < p->n_blocks; k++)
		free(p->blocks[k]);
	free(p->blocks);
	gpul_program_give(p);
	gpul_consts_free(&p->consts);
	pthread_mutex_destroy(&p->lock);
	gpul_ptx_module_destroy(p->module);
	free(p->file_name);
	free(p);
}

/* ---- queries about a program ------------------------------------------------------------------------------- */

bool gpul_exec_program_is_stateless(const gpul_exec_program *p)
{
	bool has_state = p->need;

	for (uint32_t k = 0; k < p->module->n_vars; k++)
		has_state = has_state || p->variables[k].global || p->variables[k].reference;
	for (uint32_t k = 0; !has_state && k < p->n_code; k++)
		for (uint32_t n = 0; p->code[k].var_address && n < p->code[k].ptx->n_vars; n++)
			has_state = has_state || p->code[k].var_address[n];
	return !has_state;
}

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
