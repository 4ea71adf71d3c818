/* ptx_kernels.c — the kernels that PTX declares.
 *
 * Parameters lie one behind the other, each at its alignment (PTX ISA 9.0, 5.1.6).  Static shared
 * memory is what the kernel's own body declares: where a module's kernels and functions share
 * an array, nvcc declares it outside, and only ptxas finds out whose it is. */
#include <limits.h>
#include <string.h>

#include "loader/image/kernel_rows_internal.h"
#include "ptx/module.h"

typedef struct names {
	GPUL_ARRAY(char) text;
} names;

static gpul_status no_memory(gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the kernels of a PTX module");
}

static bool put_name(names *n, const char *name, size_t *at)
{
	*at = n->text.n;
	do {
		char *c = gpul_array_push(&n->text);

		if (!c)
			return false;
		*c = *name;
	} while (*name++);
	return true;
}

static uint32_t count_of(int64_t given)
{
	return given <= 0 ? 0 : given > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)given;
}

/* n of .maxntid n is {n, 1, 1}; not given: all 0. */
static void take_three(const int64_t given[3], uint32_t out[3])
{
	for (int i = 0; i < 3; i++)
		out[i] = count_of(given[i]);
}

static bool add_params(gpul_kernel_rows *rows, gpul_kernel_row *row, const gpul_ptx_func *f)
{
	uint64_t end = 0;

	row->first_param = rows->params.n;
	for (uint32_t i = 0; i < f->n_params; i++) {
		const gpul_ptx_var *v = &f->params[i];
		uint64_t own = (uint64_t)gpul_ptx_type_bytes(v->type) * v->vector;
		uint64_t align = v->align ? v->align : own ? own : 1;
		gpul_kernel_param *p = gpul_array_push(&rows->params);

		if (!p)
			return false;
		end = (end + align - 1) / align * align;
		*p = (gpul_kernel_param){ count_of((int64_t)end), count_of((int64_t)v->bytes),
					  v->type };
		end += v->bytes < UINT32_MAX ? v->bytes : UINT32_MAX;
	}
	row->info.n_params = f->n_params;
	return true;
}

static uint32_t static_shared(const gpul_ptx_func *f)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < f->n_vars; i++) {
		const gpul_ptx_var *v = &f->vars[i];
		uint64_t own = (uint64_t)gpul_ptx_type_bytes(v->type) * v->vector;
		uint64_t align = v->align ? v->align : own ? own : 1;

		if (v->space != GPUL_PTX_MOD_SHARED || v->linkage == GPUL_PTX_EXTERN)
			continue;
		end = (end + align - 1) / align * align;
		end += v->bytes < UINT32_MAX ? v->bytes : UINT32_MAX;
	}
	return count_of((int64_t)end);
}

static bool add_kernel(gpul_kernel_rows *rows, names *n, const gpul_ptx_module *m,
		       const gpul_ptx_func *f)
{
	gpul_kernel_row *row = gpul_kernel_rows_add(rows);

	if (!row || !put_name(n, gpul_ptx_name(m, f->name), &row->name_at))
		return false;
	row->info.shared_bytes = static_shared(f);
	take_three(f->tuning.maxntid, row->info.max_threads);
	take_three(f->tuning.reqntid, row->info.required_threads);
	take_three(f->tuning.reqnctapercluster, row->info.cluster);
	row->info.is_static = f->linkage == GPUL_PTX_STATIC;
	return add_params(rows, row, f);
}

gpul_status gpul_kernels_of_ptx(const char *text, size_t n_bytes, gpul_kernel_table *out,
				gpul_error *err)
{
	gpul_kernel_rows rows = { 0 };
	names n = { 0 };
	gpul_ptx_module *m = NULL;
	gpul_status st = gpul_ptx_parse_heads(text, n_bytes, "PTX", &m, err);

	if (st)
		return st;
	for (uint32_t i = 0; i < m->n_funcs && !st; i++)
		if (m->funcs[i].kind == GPUL_PTX_FUNC_ENTRY && m->funcs[i].has_body &&
		    !add_kernel(&rows, &n, m, &m->funcs[i]))
			st = no_memory(err);
	rows.names = n.text.at;
	rows.names_bytes = n.text.n;
	if (!st)
		st = gpul_kernel_rows_finish(&rows, out, err);
	gpul_array_free(&rows.kernels);
	gpul_array_free(&rows.params);
	gpul_array_free(&n.text);
	gpul_ptx_module_destroy(m);
	return st;
}
