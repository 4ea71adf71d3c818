/* decode_names.c — finds the kernels and the variables of a program by name, with a hash table for each. */
#include <string.h>

#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/texture/texture_internal.h"

static uint32_t hash_name(const char *name)
{
	uint32_t h = 2166136261u; /* the hash function FNV-1a */

	while (*name)
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return h;
}

/* Find the slot that contains the name, or the free slot where it belongs. */
static uint32_t *find_slot(const struct name_table *t, const char *name)
{
	uint32_t at = hash_name(name);

	while (t->slot[at & t->mask] && strcmp(t->name[t->slot[at & t->mask] - 1], name) != 0)
		at++;
	return &t->slot[at & t->mask];
}

/* Allocate an empty table for n names. */
static gpul_status make_table(struct gpul_exec_program *p, struct name_table *t, size_t n, gpul_error *err)
{
	size_t n_slots = 4;

	while (n_slots < 2 * n)
		n_slots *= 2;
	t->name = gpul_program_alloc(p, n * sizeof *t->name, err);
	t->slot = gpul_program_alloc(p, n_slots * sizeof *t->slot, err);
	t->mask = (uint32_t)(n_slots - 1);
	return t->name && t->slot ? GPUL_OK : GPUL_ENOMEM;
}

static void add_name(struct name_table *t, const char *name)
{
	uint32_t *slot = find_slot(t, name);

	t->name[t->n_names++] = name;
	if (!*slot) /* if the slot is occupied, an earlier kernel or variable has the same name, and keeps the slot */
		*slot = t->n_names;
}

static bool find_name(const struct name_table *t, const char *name, uint32_t *row)
{
	*row = *find_slot(t, name) - 1;
	return *row != UINT32_MAX;
}

gpul_status gpul_names_create(struct gpul_exec_program *p, gpul_error *err)
{
	uint32_t n_variables = p->module->n_vars;

	p->global_row = gpul_program_alloc(p, n_variables * sizeof *p->global_row, err);
	if (!p->global_row || make_table(p, &p->kernel_names, p->n_kernels, err) || make_table(p, &p->global_names, n_variables, err))
		return GPUL_ENOMEM;
	for (uint32_t k = 0; k < p->n_kernels; k++)
		add_name(&p->kernel_names, p->kernels[k].info.name);
	for (uint32_t k = 0; k < n_variables; k++) {
		if (!p->variables[k].global)
			continue;
		p->global_row[p->global_names.n_names] = k;
		add_name(&p->global_names, p->variables[k].name);
	}
	return GPUL_OK;
}

const gpul_exec_kernel *gpul_exec_find_kernel(const gpul_exec_program *p, const char *name)
{
	uint32_t row;

	return find_name(&p->kernel_names, name, &row) ? &p->kernels[row] : NULL;
}

size_t gpul_exec_kernel_index(const gpul_exec_program *p, const gpul_exec_kernel *k)
{
	return (size_t)(k - p->kernels);
}

bool gpul_exec_find_variable(const gpul_exec_program *p, const char *name, uint64_t *address, size_t *bytes)
{
	uint32_t row;

	return find_name(&p->global_names, name, &row) && gpul_exec_variable_at(p, row, &name, address, bytes);
}

size_t gpul_exec_n_variables(const gpul_exec_program *p)
{
	return p->global_names.n_names;
}

bool gpul_exec_variable_is_managed(const gpul_exec_program *p, size_t i)
{
	return i < p->global_names.n_names && p->variables[p->global_row[i]].managed;
}

bool gpul_exec_variable_at(const gpul_exec_program *p, size_t i, const char **name, uint64_t *address, size_t *bytes)
{
	const struct variable *v;

	if (i >= p->global_names.n_names)
		return false;
	v = &p->variables[p->global_row[i]];
	*name = v->name;
	*address = v->address;
	*bytes = v->bytes;
	return true;
}

uint64_t gpul_exec_find_reference(const gpul_exec_program *p, const char *name, bool surface)
{
	for (uint32_t k = 0; k < p->module->n_vars; k++) {
		const struct variable *v = &p->variables[k];

		if (v->reference == (surface ? SURFACE_OBJECT : TEXTURE_OBJECT) && !strcmp(v->name, name))
			return v->address;
	}
	return 0;
}
