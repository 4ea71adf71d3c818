/* ptx_link.c — copies the inputs, and runs the steps of the linker. */
#include "ptx/link/ptx_link_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies of the inputs ---------------------------------------------------------------- */

/* Copy n array elements, and add `more` cleared elements.  NULL: out of memory. */
static void *copy_rows(ptx_linker *l, const void *rows, size_t n, size_t more, size_t row_bytes)
{
	char *copy = ptx_arena_alloc(&l->arena, (n + more + 1) * row_bytes);

	if (!copy)
		return NULL;
	if (n)
		memcpy(copy, rows, n * row_bytes);
	memset(copy + n * row_bytes, 0, (more + 1) * row_bytes);
	return copy;
}

/* For each name, find the entry of the function with the body; if there is none, the first entry. */
static void find_func_rows(struct ptx_link_input *in)
{
	for (uint32_t i = in->m.n_funcs; i-- > 0;)
		if (in->m.funcs[i].kind != GPUL_PTX_FUNC_PROTOTYPE)
			in->func_row[in->m.funcs[i].name] = i;
	for (uint32_t i = 0; i < in->m.n_funcs; i++)
		if (in->m.funcs[i].has_body)
			in->func_row[in->m.funcs[i].name] = i;
}

/* Refuse modules with registers or local variables of module scope: ptxas compiles them without the ABI, but linked code needs the
 * ABI (ptxas -c requires PTX 3.1). */
static gpul_status check_abi(const ptx_linker *l, const gpul_ptx_link_input *from)
{
	const gpul_ptx_module *m = from->module;
	gpul_ptx_str name = m->n_regs ? m->regs[0].name : 0;

	for (uint32_t i = 0; i < m->n_vars && !name; i++)
		name = m->vars[i].space == GPUL_PTX_MOD_LOCAL ? m->vars[i].name : 0;
	if (!name)
		return GPUL_OK;
	return gpul_fail(l->err, GPUL_EFORMAT, 0, "%.80s cannot be linked: it declares the .%s '%.80s' outside of functions", from->name,
			 m->n_regs ? "reg" : "local", gpul_ptx_name(m, name));
}

static gpul_status copy_input(ptx_linker *l, const gpul_ptx_link_input *from, struct ptx_link_input *in)
{
	const gpul_ptx_module *m = from->module;
	size_t n_rows = m->n_vars + (size_t)m->n_funcs, n_names = m->n_strings + n_rows;

	in->name = from->name;
	in->m = *m;
	in->m.vars = copy_rows(l, m->vars, m->n_vars, 0, sizeof *m->vars);
	in->m.funcs = copy_rows(l, m->funcs, m->n_funcs, 0, sizeof *m->funcs);
	in->m.locs = copy_rows(l, m->locs, m->n_locs, 0, sizeof *m->locs);
	in->m.strings = copy_rows(l, m->strings, m->n_strings, n_rows, sizeof *m->strings);
	in->func_row = copy_rows(l, NULL, 0, n_names, sizeof *in->func_row);
	in->symbol = copy_rows(l, NULL, 0, n_names, sizeof *in->symbol);
	in->aliased = copy_rows(l, NULL, 0, m->n_funcs, sizeof *in->aliased);
	in->written = copy_rows(l, NULL, 0, m->n_vars, sizeof *in->written);
	if (!in->m.vars || !in->m.funcs || !in->m.locs || !in->m.strings || !in->func_row || !in->symbol || !in->aliased || !in->written)
		return ptx_link_no_memory(l);
	find_func_rows(in);
	return GPUL_OK;
}

/* True if the module is NVIDIA's device runtime. */
static bool is_device_runtime(const gpul_ptx_module *m)
{
	for (uint32_t i = 0; i < m->n_funcs; i++)
		if (m->funcs[i].has_body && !strcmp(gpul_ptx_name(m, m->funcs[i].name), "cudaGetLastError"))
			return true;
	return false;
}

/* Copy the inputs, except NVIDIA's device runtime, which is copied only if it is the only input. */
static gpul_status copy_inputs(ptx_linker *l, const gpul_ptx_link_input *from, size_t n)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0; i < n && !st; i++)
		if (n == 1 || !is_device_runtime(from[i].module)) {
			st = check_abi(l, &from[i]);
			if (!st)
				st = copy_input(l, &from[i], &l->inputs[l->n_inputs++]);
		}
	return st;
}

/* ---- source files and lines -------------------------------------------------------------- */

/* Return the number of a source file in the result, from 1. 0: out of memory. */
static uint32_t file_number(ptx_linker *l, const gpul_ptx_file *f, const char *path)
{
	uint32_t name = ptx_link_intern(l, path);
	gpul_ptx_file *row;

	for (uint32_t i = 0; i < l->files.n; i++)
		if (l->files.at[i].path == name && l->files.at[i].timestamp == f->timestamp && l->files.at[i].bytes == f->bytes)
			return i + 1;
	row = name ? gpul_array_push(&l->files) : NULL;
	if (!row)
		return 0;
	*row = *f;
	row->path = name;
	return row->number = (uint32_t)l->files.n;
}

/* Return the number that file `number` of an input gets in the result. */
static uint32_t renumber_file(ptx_linker *l, const gpul_ptx_module *m, uint32_t number)
{
	const gpul_ptx_file unknown = { 0 };

	for (uint32_t i = 0; i < m->n_files; i++)
		if (m->files[i].number == number && *gpul_ptx_name(m, m->files[i].path))
			return file_number(l, &m->files[i], gpul_ptx_name(m, m->files[i].path));
	return file_number(l, &unknown, "<unknown>");
}

static gpul_status renumber_lines(ptx_linker *l, gpul_ptx_module *m)
{
	uint32_t last = 0, number = 0; /* the last conversion is kept, because adjacent .loc directives usually have the same file */

	for (uint32_t i = 0; i < m->n_locs; i++) {
		if (!number || m->locs[i].file != last) {
			last = m->locs[i].file;
			number = renumber_file(l, m, last);
			if (!number)
				return ptx_link_no_memory(l);
		}
		m->locs[i].file = number;
		/* function_name is a label in .debug_str, which is dropped */
		m->locs[i].function_label = m->locs[i].function_offset = 0;
		m->locs[i].at_file = m->locs[i].at_line = m->locs[i].at_column = 0;
	}
	return GPUL_OK;
}

/* ---- the steps of a link ----------------------------------------------------------------- */

static gpul_status link_all(ptx_linker *l)
{
	gpul_status st = ptx_link_target(l);

	for (uint32_t i = 0; i < l->n_inputs && !st; i++)
		st = renumber_lines(l, &l->inputs[i].m);
	if (!st)
		st = ptx_link_collect(l);
	if (!st)
		st = ptx_link_refer(l);
	return st ? st : ptx_link_rename(l);
}

gpul_status gpul_ptx_link(const gpul_ptx_link_input *inputs, size_t n, char **out_text, size_t *out_bytes, gpul_error *err)
{
	ptx_linker l = { .err = err };
	gpul_status st = GPUL_OK;

	if (!n || n > UINT32_MAX)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot link %zu PTX modules: the number is out of range", n);
	l.inputs = ptx_arena_alloc(&l.arena, n * sizeof *l.inputs);
	if (!l.inputs || !ptx_names_init(&l.names, &l.arena))
		st = ptx_link_no_memory(&l);
	if (!st)
		st = copy_inputs(&l, inputs, n);
	if (!st && !l.n_inputs)
		st = gpul_fail(err, GPUL_EINVAL, 0, "none of the %zu inputs contains code other than the CUDA device runtime", n);
	if (!st)
		st = link_all(&l);
	if (!st)
		st = ptx_link_write(&l, out_text, out_bytes);
	gpul_array_free(&l.symbols);
	gpul_array_free(&l.files);
	ptx_names_free(&l.names);
	ptx_arena_free(&l.arena);
	return st;
}
