/* variable.c — finds a module's __device__ variables by name, and reads function pointers from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "loader/loader_internal.h"
#include "loader/symbol/symbol.h"

/* ---- names ------------------------------------------------------------------------- */

/* Skip the first prefix that nvcc adds to names of static variables, so that the names of several files do not collide:
 *
 *     __nv_static_26__4f1f28d2_5_st_cu__Z3addff_table      with -rdc=true: 26 bytes of file name
 *     _ZN35_INTERNAL_4f1f28d2_5_st_cu__Z3addff2ns5tableE   static in a namespace
 *
 * Observed with CUDA 13.0. */
static const char *skip_static_prefix(const char *name)
{
	static const char prefix[] = "__nv_static_";
	char *end;
	unsigned long n;

	if (strncmp(name, prefix, sizeof prefix - 1) != 0)
		return name;
	n = strtoul(name + sizeof prefix - 1, &end, 10);
	if (*end != '_' || n >= strlen(end) || end[n + 1] != '_')
		return name;
	return end + n + 2;
}

/* Remove the scopes that nvcc generates from a file name: "_INTERNAL_4f1f_st_cu::ns::u" becomes "ns::u". */
static void drop_file_scopes(char *name)
{
	char *to = name, *part = name;

	while (*part) {
		char *next = strstr(part, "::");
		size_t n = next ? (size_t)(next - part) + 2 : strlen(part);
		bool drop = next && (!strncmp(part, "_INTERNAL_", 10) || !strncmp(part, "_GLOBAL__N_", 11) ||
				     !strncmp(part, "(anonymous namespace)", 21));

		if (!drop) {
			memmove(to, part, n);
			to += n;
		}
		part += n;
	}
	*to = '\0';
}

/* Return the variable's name as in its source, demangled; the caller frees it.  NULL: out of memory. */
static char *source_name(const char *name)
{
	char *text;

	name = skip_static_prefix(name);
	text = gpul_demangle(name);
	if (!text)
		text = strdup(name);
	if (text)
		drop_file_scopes(text);
	return text;
}

static bool in_memory(const gpul_ptx_var *v)
{
	return v->space == GPUL_PTX_MOD_GLOBAL || v->space == GPUL_PTX_MOD_CONST;
}

static bool holds_pointers(const gpul_ptx_var *v)
{
	unsigned n = gpul_ptx_type_bytes(v->type);

	return n == sizeof(uint64_t) || n == 1; /* 1, because PTX declares a struct as an array of bytes */
}

static const gpul_ptx_var *find_in_ptx(const gpul_ptx_module *x, const char *wanted)
{
	const gpul_ptx_var *found = NULL;

	for (uint32_t i = 0; i < x->n_vars; i++)
		if (in_memory(&x->vars[i]) && strcmp(gpul_ptx_name(x, x->vars[i].name), wanted) == 0)
			return &x->vars[i];
	for (uint32_t i = 0; !found && i < x->n_vars; i++) {
		char *name = in_memory(&x->vars[i]) ? source_name(gpul_ptx_name(x, x->vars[i].name)) : NULL;

		if (name && strcmp(name, wanted) == 0)
			found = &x->vars[i];
		free(name);
	}
	return found;
}

/* List the names, as in C++, of the variables that may contain pointers; owned by the caller.  Returns false if out of memory. */
static bool list_variables(const gpul_module *m, char ***out, size_t *n_out)
{
	const gpul_ptx_module *x = m->ptx;
	size_t room = x ? x->n_vars : m->n_variables;
	char **names = calloc(room + 1, sizeof *names);

	if (!names)
		return false;
	for (size_t i = 0, n = 0; i < room; i++) {
		const gpul_ptx_var *v = x ? &x->vars[i] : NULL;

		if (v && !(in_memory(v) && holds_pointers(v) && v->bytes >= sizeof(uint64_t)))
			continue;
		names[n] = source_name(v ? gpul_ptx_name(x, v->name) : m->variables[i]);
		n += names[n] != NULL;
		*n_out = n;
	}
	*out = names;
	return true;
}

static gpul_status fail_not_found(const gpul_module *m, const char *wanted, gpul_error *err)
{
	char **names = NULL;
	size_t n = 0, used = 0;
	const char *near = list_variables(m, &names, &n) ? gpul_text_nearest(wanted, (const char *const *)names, n) : NULL;
	char list[150] = "";
	gpul_status st;

	for (size_t i = 0; i < n && used < sizeof list; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "; it has: ", names[i]);
	if (near)
		st = gpul_fail(err, GPUL_EINVAL, 0, "no variable '%.60s' in the module: did you mean '%.120s'?", wanted, near);
	else
		st = gpul_fail(err, GPUL_EINVAL, 0, "no __device__ or __constant__ variable '%.60s' in the module%s", wanted, list);
	while (n)
		free(names[--n]);
	free(names);
	return st;
}

/* Find the symbol of a variable by its mangled name or its name in C++; NULL: none. */
static const char *find_in_machine_code(const gpul_module *m, const char *wanted)
{
	const char *found = NULL;

	for (size_t i = 0; i < m->n_variables; i++)
		if (strcmp(m->variables[i], wanted) == 0)
			return m->variables[i];
	for (size_t i = 0; !found && i < m->n_variables; i++) {
		char *name = source_name(m->variables[i]);

		if (name && strcmp(name, wanted) == 0)
			found = m->variables[i];
		free(name);
	}
	return found;
}

/* ---- values ------------------------------------------------------------------------ */

static gpul_status find_global(const gpul_module *m, const char *name, CUdeviceptr *at, size_t *bytes, gpul_error *err)
{
	const gpul_ptx_var *v = m->ptx ? find_in_ptx(m->ptx, name) : NULL;
	const char *symbol = m->ptx ? NULL : find_in_machine_code(m, name);

	if (m->ptx ? !v : !symbol)
		return fail_not_found(m, name, err);
	if (v && !holds_pointers(v))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%.100s has elements of %u bytes, but function pointers have 8 "
				 "bytes",
				 name, gpul_ptx_type_bytes(v->type));
	if (v)
		symbol = gpul_ptx_name(m->ptx, v->name);
	return gpul_cu(m->drv, err, cuLibraryGetGlobal(at, bytes, m->library, symbol));
}

gpul_status gpul_function_pointer(const gpul_module *m, const char *name, size_t index, uint64_t *out, gpul_error *err)
{
	CUdeviceptr at = 0;
	size_t bytes = 0, n;
	uint64_t value = 0;
	gpul_status st = find_global(m, name, &at, &bytes, err);

	if (st)
		return st;
	n = bytes / sizeof value;
	if (index >= n)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%.100s[%zu] is beyond the end of the variable: %zu bytes, "
				 "%zu function pointer%s",
				 name, index, bytes, n, n == 1 ? "" : "s");
	st = gpul_cu(m->drv, err, cuMemcpyDtoH(&value, at + index * sizeof value, sizeof value));
	if (st)
		return st;
	if (value == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%.100s[%zu] is 0: it has no function yet; run the kernel that "
				 "sets it first",
				 name, index);
	*out = value;
	return GPUL_OK;
}

const char *gpul_function_pointer_target(const gpul_module *m, const char *name, size_t index, bool *is_kernel)
{
	const gpul_ptx_var *v = m->ptx ? find_in_ptx(m->ptx, name) : NULL;

	if (v && !holds_pointers(v))
		return NULL;
	if (v) /* in PTX, a struct of pointers is an array of bytes, whose elements each have an initialiser */
		index *= sizeof(uint64_t) / gpul_ptx_type_bytes(v->type);
	for (uint32_t i = 0; v && i < v->n_inits; i++) {
		const gpul_ptx_init *init = &m->ptx->inits[v->first_init + i];

		if (init->kind == GPUL_PTX_INIT_OPEN || init->kind == GPUL_PTX_INIT_CLOSE)
			continue;
		if (index-- > 0)
			continue;
		if (init->kind != GPUL_PTX_INIT_SYMBOL || init->ref_kind != GPUL_PTX_REF_FUNC)
			return NULL;
		*is_kernel = m->ptx->funcs[init->index].kind == GPUL_PTX_FUNC_ENTRY;
		return gpul_ptx_name(m->ptx, m->ptx->funcs[init->index].name);
	}
	return NULL;
}
