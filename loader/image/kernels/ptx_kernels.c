/* ptx_kernels.c — lists the kernels that PTX declares.
 *
 * Parameters are stored one after the other, each at its alignment (PTX ISA 9.0, 5.1.6).
 *
 * The size of the static shared memory is the total size of the arrays that the kernel's body declares or uses. For all kernels of
 * CUDA 13.0's libraries that exist as PTX and as machine code, it equals the size that ptxas -v reports.  Arrays that only called
 * functions use are not counted here, but ptxas counts them. */
#include <limits.h>
#include <string.h>

#include "loader/image/kernels/kernel_rows_internal.h"
#include "ptx/module.h"

#define DYNAMIC_ALIGN 16

typedef struct names {
	GPUL_ARRAY(char) text;
} names;

static gpul_status no_memory(gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the kernels of a PTX module");
}

static bool append_name(names *n, const char *name, size_t *at)
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

/* Convert a limit such as .maxntid n to {n, 1, 1}; a limit that is not given to {0, 0, 0}. */
static void copy_three(const int64_t given[3], uint32_t out[3])
{
	for (int i = 0; i < 3; i++)
		out[i] = count_of(given[i]);
}

static uint64_t align_of(const gpul_ptx_var *v)
{
	uint64_t own = (uint64_t)gpul_ptx_type_bytes(v->type) * v->vector;

	return v->align ? v->align : own ? own : 1;
}

static uint64_t align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) / align * align;
}

static bool add_params(gpul_kernel_rows *rows, gpul_kernel_row *row, const gpul_ptx_func *f)
{
	uint64_t end = 0;

	row->first_param = rows->params.n;
	for (uint32_t i = 0; i < f->n_params; i++) {
		const gpul_ptx_var *v = &f->params[i];
		gpul_kernel_param *p = gpul_array_push(&rows->params);

		if (!p)
			return false;
		end = align_up(end, align_of(v));
		*p = (gpul_kernel_param){ count_of((int64_t)end), count_of((int64_t)v->bytes), v->type };
		end += v->bytes < UINT32_MAX ? v->bytes : UINT32_MAX;
	}
	row->info.n_params = f->n_params;
	return true;
}

/* Return the number to whose multiple ptxas rounds up the size of static shared memory.  If the module declares dynamic shared
 * memory, which each of its kernels may use, this is 16 or the alignment of the dynamic arrays; else 1. */
static uint64_t dynamic_align(const gpul_ptx_module *m)
{
	uint64_t align = 1;

	for (uint32_t i = 0; i < m->n_vars; i++) {
		const gpul_ptx_var *v = &m->vars[i];

		if (v->space != GPUL_PTX_MOD_SHARED || v->linkage != GPUL_PTX_EXTERN)
			continue;
		align = align < DYNAMIC_ALIGN ? DYNAMIC_ALIGN : align;
		align = align < align_of(v) ? align_of(v) : align;
	}
	return align;
}

static uint32_t static_shared(const gpul_ptx_func *f, uint64_t end_align)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < f->n_vars; i++) {
		const gpul_ptx_var *v = &f->vars[i];

		if (v->space != GPUL_PTX_MOD_SHARED || v->linkage == GPUL_PTX_EXTERN)
			continue;
		end = align_up(end, align_of(v));
		end += v->bytes < UINT32_MAX ? v->bytes : UINT32_MAX;
	}
	return count_of((int64_t)align_up(end, end_align));
}

static bool add_kernel(gpul_kernel_rows *rows, names *n, const gpul_ptx_module *m, const gpul_ptx_func *f, uint64_t end_align)
{
	gpul_kernel_row *row = gpul_kernel_rows_add(rows);

	if (!row || !append_name(n, gpul_ptx_name(m, f->name), &row->name_at))
		return false;
	row->info.shared_bytes = static_shared(f, end_align);
	copy_three(f->tuning.maxntid, row->info.max_threads);
	copy_three(f->tuning.reqntid, row->info.required_threads);
	copy_three(f->tuning.reqnctapercluster, row->info.cluster);
	row->info.is_static = f->linkage == GPUL_PTX_STATIC;
	return add_params(rows, row, f);
}

gpul_status gpul_kernels_of_ptx(const char *text, size_t n_bytes, gpul_kernel_table *out, gpul_error *err)
{
	gpul_kernel_rows rows = { 0 };
	names n = { 0 };
	gpul_ptx_module *m = NULL;
	uint64_t end_align;
	gpul_status st = gpul_ptx_parse_heads(text, n_bytes, "PTX", &m, err);

	if (st)
		return st;
	end_align = dynamic_align(m);
	for (uint32_t i = 0; i < m->n_funcs && !st; i++)
		if (m->funcs[i].kind == GPUL_PTX_FUNC_ENTRY && m->funcs[i].has_body && !add_kernel(&rows, &n, m, &m->funcs[i], end_align))
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
