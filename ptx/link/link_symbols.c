/* link_symbols.c — builds the symbol table, and checks that declarations of a name agree: PTX ISA 9.0, Linking Directives. */
#include "ptx/link/ptx_link_internal.h"

#include <string.h>

gpul_status ptx_link_no_memory(ptx_linker *l)
{
	return gpul_fail(l->err, GPUL_ENOMEM, 0, "out of memory while linking PTX");
}

bool ptx_link_is_system_call(const char *name)
{
	static const char *const calls[] = { "vprintf",
					     "malloc",
					     "free",
					     "__assertfail",
					     "cudaGraphSetConditional",
					     "cudaGetParameterBuffer",
					     "cudaGetParameterBufferV2",
					     "cudaLaunchDevice",
					     "cudaLaunchDeviceV2",
					     "cudaDeviceGetAttribute",
					     "cudaDeviceGetLimit",
					     "cudaDeviceSynchronize",
					     "cudaGetLastError",
					     "cudaPeekAtLastError",
					     "cudaGetErrorString",
					     "cudaGetErrorName",
					     "cudaGetDeviceCount",
					     "cudaGetDevice",
					     "cudaStreamCreateWithFlags",
					     "cudaStreamDestroy",
					     "cudaStreamWaitEvent",
					     "cudaEventCreateWithFlags",
					     "cudaEventRecord",
					     "cudaEventDestroy",
					     "cudaFuncGetAttributes",
					     "cudaMalloc",
					     "cudaFree",
					     "cudaMemcpyAsync",
					     "cudaMemsetAsync",
					     "cudaGraphLaunch",
					     "cudaOccupancyMaxActiveBlocksPerMultiprocessor" };

	if (!strncmp(name, "__cudaCDP2", 10))
		return true;

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (!strcmp(name, calls[i]))
			return true;
	return false;
}

ptx_link_symbol *ptx_link_symbol_of(const ptx_linker *l, uint32_t input, gpul_ptx_str name)
{
	uint32_t row = l->inputs[input].symbol[name];

	return row ? &l->symbols.at[row] : NULL;
}

static bool is_place(struct ptx_link_place a, uint32_t input, uint32_t row)
{
	return a.input == input && a.row == row;
}

bool ptx_link_keeps_func(const ptx_linker *l, uint32_t input, uint32_t row)
{
	const struct ptx_link_input *in = &l->inputs[input];
	const ptx_link_symbol *s = ptx_link_symbol_of(l, input, in->m.funcs[row].name);

	if (!s)
		return in->func_row[in->m.funcs[row].name] == row;
	return s->strength ? is_place(s->definition, input, row) : is_place(s->first, input, row);
}

bool ptx_link_keeps_var(const ptx_linker *l, uint32_t input, uint32_t row)
{
	const struct ptx_link_input *in = &l->inputs[input];
	const ptx_link_symbol *s = ptx_link_symbol_of(l, input, in->m.vars[row].name);

	if (!s)
		return in->m.vars[row].linkage != GPUL_PTX_EXTERN;
	return s->strength ? is_place(s->definition, input, row) : is_place(s->first, input, row);
}

/* ---- checks that two declarations of a name agree ---------------------------------------- */

static gpul_status fail_different(const ptx_linker *l, struct ptx_link_place a, struct ptx_link_place b, const char *name, const char *what)
{
	return gpul_fail(l->err, GPUL_EFORMAT, 0, "'%.100s' differs between %.40s and %.40s: %s", name, l->inputs[a.input].name,
			 l->inputs[b.input].name, what);
}

static gpul_status check_vars(const ptx_linker *l, struct ptx_link_place a, struct ptx_link_place b, const char *name)
{
	const gpul_ptx_var *v = &l->inputs[a.input].m.vars[a.row];
	const gpul_ptx_var *w = &l->inputs[b.input].m.vars[b.row];

	if (v->space != w->space)
		return fail_different(l, a, b, name, "their memory spaces (__device__, __constant__, __shared__) differ");
	/* an array whose size is not declared (0 bytes) matches every size */
	if (v->bytes && w->bytes && v->bytes != w->bytes && v->linkage != GPUL_PTX_COMMON && w->linkage != GPUL_PTX_COMMON)
		return fail_different(l, a, b, name, "their sizes differ");
	return GPUL_OK;
}

static bool same_shape(const gpul_ptx_var *a, uint32_t n_a, const gpul_ptx_var *b, uint32_t n_b)
{
	for (uint32_t i = 0; i < n_a && n_a == n_b; i++)
		if (a[i].bytes != b[i].bytes)
			return false;
	return n_a == n_b;
}

static gpul_status check_funcs(const ptx_linker *l, struct ptx_link_place a, struct ptx_link_place b, const char *name)
{
	const gpul_ptx_func *f = &l->inputs[a.input].m.funcs[a.row];
	const gpul_ptx_func *g = &l->inputs[b.input].m.funcs[b.row];

	if (f->kind != g->kind)
		return fail_different(l, a, b, name, "one is a kernel, the other a function");
	if (!same_shape(f->params, f->n_params, g->params, g->n_params))
		return fail_different(l, a, b, name, "their parameters differ in number or size");
	if (!same_shape(f->rets, f->n_rets, g->rets, g->n_rets))
		return fail_different(l, a, b, name, "their results differ");
	return GPUL_OK;
}

/* Give an array in dynamic shared memory the largest alignment of all its declarations. */
static void raise_alignment(ptx_linker *l, struct ptx_link_place a, struct ptx_link_place b)
{
	gpul_ptx_var *v = &l->inputs[a.input].m.vars[a.row];
	const gpul_ptx_var *w = &l->inputs[b.input].m.vars[b.row];

	if (v->space == GPUL_PTX_MOD_SHARED && w->align > v->align)
		v->align = w->align;
}

/* ---- strong, weak and common definitions ------------------------------------------------- */

static ptx_strength strength_of(unsigned linkage)
{
	return linkage == GPUL_PTX_WEAK ? PTX_WEAK : linkage == GPUL_PTX_COMMON ? PTX_COMMON : PTX_STRONG;
}

static uint64_t var_bytes(const ptx_linker *l, struct ptx_link_place p)
{
	return l->inputs[p.input].m.vars[p.row].bytes;
}

static gpul_status define_symbol(ptx_linker *l, ptx_link_symbol *s, struct ptx_link_place place, ptx_strength strength, const char *name)
{
	if (strength == PTX_STRONG && s->strength == PTX_STRONG)
		return gpul_fail(l->err, GPUL_EFORMAT, 0, "'%.100s' is defined in both %.50s and %.50s", name,
				 l->inputs[s->definition.input].name, l->inputs[place.input].name);
	if (strength > s->strength ||
	    (strength == PTX_COMMON && s->strength == PTX_COMMON && var_bytes(l, place) > var_bytes(l, s->definition))) {
		s->definition = place;
		s->strength = strength;
	}
	return GPUL_OK;
}

uint32_t ptx_link_intern(ptx_linker *l, const char *name)
{
	uint32_t row = ptx_names_intern(&l->names, name, (uint32_t)strlen(name));

	while (l->symbols.n <= row) {
		const ptx_link_symbol *s = gpul_array_push(&l->symbols);

		if (!s)
			return 0;
	}
	return row;
}

/* Add a function or variable with an external name to the symbol table. */
static gpul_status collect_symbol(ptx_linker *l, struct ptx_link_place place, gpul_ptx_str name, bool is_func, ptx_strength strength)
{
	struct ptx_link_input *in = &l->inputs[place.input];
	const char *text = gpul_ptx_name(&in->m, name);
	uint32_t row = ptx_link_intern(l, text);

	if (!row)
		return ptx_link_no_memory(l);
	ptx_link_symbol *s = &l->symbols.at[row];
	in->symbol[name] = row;
	if (s->taken) {
		gpul_status st = s->is_func != is_func ? fail_different(l, s->first, place, text, "one is a function, the other a variable")
				 : is_func             ? check_funcs(l, s->first, place, text)
						       : check_vars(l, s->first, place, text);
		if (st)
			return st;
		if (!is_func)
			raise_alignment(l, s->first, place);
	} else {
		*s = (ptx_link_symbol){ .taken = true, .is_external = true, .is_func = is_func, .first = place };
	}
	return strength ? define_symbol(l, s, place, strength, text) : GPUL_OK;
}

/* ---- all functions and variables of a module --------------------------------------------- */

static gpul_status collect_funcs(ptx_linker *l, uint32_t input)
{
	struct ptx_link_input *in = &l->inputs[input];
	const gpul_ptx_func *f = in->m.funcs;

	for (uint32_t i = 0; i < in->m.n_aliases; i++)
		in->aliased[in->func_row[f[in->m.aliases[i].alias].name]] = true;
	for (uint32_t i = 0; i < in->m.n_funcs; i++) {
		bool defined = f[i].has_body || in->aliased[i];

		if (f[i].kind == GPUL_PTX_FUNC_PROTOTYPE || in->func_row[f[i].name] != i || (defined && f[i].linkage == GPUL_PTX_STATIC))
			continue;
		gpul_status st = collect_symbol(l, (struct ptx_link_place){ input, i }, f[i].name, true,
						defined ? strength_of(f[i].linkage) : PTX_UNDEFINED);
		if (st)
			return st;
	}
	return GPUL_OK;
}

static gpul_status collect_vars(ptx_linker *l, uint32_t input)
{
	struct ptx_link_input *in = &l->inputs[input];

	for (uint32_t i = 0; i < in->m.n_vars; i++) {
		const gpul_ptx_var *v = &in->m.vars[i];

		if (v->linkage == GPUL_PTX_STATIC)
			continue;
		gpul_status st = collect_symbol(l, (struct ptx_link_place){ input, i }, v->name, false,
						v->linkage == GPUL_PTX_EXTERN ? PTX_UNDEFINED : strength_of(v->linkage));
		if (st)
			return st;
	}
	return GPUL_OK;
}

gpul_status ptx_link_collect(ptx_linker *l)
{
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; i < l->n_inputs && !st; i++) {
		st = collect_vars(l, i);
		if (!st)
			st = collect_funcs(l, i);
	}
	return st;
}
