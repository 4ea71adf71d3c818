/* roles.c — turns the facts that infer.c collected into roles and types. */
#include <stdlib.h>

#include "loader/signature/infer_internal.h"

/* Raise param->vector: a loop that advances an address by several elements, as for a[2 * k], needs that many elements per iteration. */
static void bound_vector(gpul_inference *i, gpul_param *param, const param_facts *facts, uint32_t width)
{
	uint64_t step = i->counter_growth && i->counter_growth != AV_UNBOUNDED ? i->counter_growth : 1;
	uint64_t per_step = facts->growth / step + (facts->growth % step != 0);
	uint64_t elements = per_step / width + (per_step % width != 0);

	if (facts->growth == AV_UNBOUNDED || elements > MAX_VECTOR)
		gpul_unsized(i->s, "a loop advances through a buffer by rows");
	else if (elements > param->vector)
		param->vector = (uint32_t)elements;
}

static void assign_buffer(gpul_inference *i, gpul_param *param, const param_facts *facts, unsigned k)
{
	uint32_t width = facts->widths;

	param->role = GPUL_ROLE_BUFFER;
	param->loaded = facts->loaded;
	param->stored = facts->stored;
	param->vector = facts->vector ? facts->vector : 1;
	if (facts->escapes)
		gpul_incomplete(i->s, "the pointer in %s escapes the analysis", i->names[k]);
	if (width & (width - 1)) {
		gpul_incomplete(i->s, "%s is accessed in elements of several sizes", i->names[k]);
		return;
	}
	param->type = gpul_evidence_type(facts->evidence, facts->fallback, width);
	if (param->type == GPUL_TYPE_NONE)
		gpul_incomplete(i->s, "the element type of %s is unknown (%u bytes each)", i->names[k], width);
	else
		param->vector *= width / (uint32_t)gpul_type_bytes(param->type); /* an access to f16x2 has two elements */
	if (facts->growth && width)
		bound_vector(i, param, facts, width);
	param->beyond = (uint32_t)(i->bound_offset < INVENTED_ELEMENTS ? i->bound_offset : 0) * param->vector;
	if (facts->offset && facts->offset / width + 1 > param->vector) /* else another access already needs more elements per thread */
		param->beyond += (uint32_t)(facts->offset / width + 1 - param->vector);
}

static void assign_value(gpul_inference *i, gpul_param *param, const param_facts *facts, unsigned k)
{
	const gpul_leaf *leaf = &i->p->leaves[k];
	uint16_t evidence = gpul_evidence_of(&i->e, leaf->node);
	uint16_t declared = gpul_evidence_of_type(leaf->type);
	uint64_t bit = (uint64_t)1 << k;

	if (facts->called || (facts->escapes && !(evidence & ~EVIDENCE_VIA_MEMORY) && param->bytes * 8 == i->p->m->address_size)) {
		gpul_incomplete(i->s, facts->called ? "%s is a function pointer" : "%s may be a pointer, and escapes the analysis",
				i->names[k]);
		if (facts->called && !facts->escapes)
			param->role = GPUL_ROLE_FUNCTION;
		return;
	}
	if (facts->is_end) {
		gpul_incomplete(i->s, "%s is compared with addresses: it is the end of a buffer", i->names[k]);
		return;
	}
	param->role = GPUL_ROLE_SCALAR;
	param->type = gpul_evidence_type(evidence, declared, param->bytes);
	if (!evidence && !(declared & EVIDENCE_FLOAT) && param->bytes * 8 == i->p->m->address_size)
		param->role = GPUL_ROLE_UNKNOWN; /* the value or pointer is not used: any argument is safe */
	if (param->role == GPUL_ROLE_SCALAR && i->index_bounds & bit && !(i->in_index & bit) && param->bytes >= 4 &&
	    param->type >= GPUL_I32 && param->type <= GPUL_U64)
		param->role = GPUL_ROLE_COUNT;
	if (param->type == GPUL_TYPE_NONE)
		gpul_incomplete(i->s, "the type of %s is unknown (%u bytes)", i->names[k], param->bytes);
}

/* Find the parameter with which the counter of a loop is compared: it limits how far the loop advances an address. */
static void bound_loops(gpul_inference *i)
{
	int k = gpul_first_param(i->loop_bounds);

	if (!i->unbounded_loop)
		return;
	if (k < 0 || i->loop_bounds & (i->loop_bounds - 1) || i->in_index & i->loop_bounds || i->facts[k].accessed)
		gpul_unsized(i->s, "a loop advances through a buffer without a known limit");
	else
		i->index_bounds |= i->loop_bounds;
}

/* Create the members of each struct; the code loads all of them. */
static gpul_status add_members(gpul_inference *i, gpul_error *err)
{
	gpul_signature *s = &i->s->s;

	for (uint32_t k = 0; k < i->p->n_leaves; k++) {
		const gpul_leaf *leaf = &i->p->leaves[k];
		gpul_param *param = &s->params[leaf->param];

		if (param->role != GPUL_ROLE_STRUCT)
			continue;
		if (!param->members)
			param->members = calloc(i->p->n_leaves, sizeof *param->members);
		if (!param->members)
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the members of a struct");
		param->members[param->n_members++] = (gpul_param){ .offset = leaf->offset, .bytes = leaf->bytes, .align = leaf->bytes };
	}
	return GPUL_OK;
}

gpul_param *gpul_leaf_param(const gpul_inference *i, uint32_t k)
{
	const gpul_leaf *leaf = &i->p->leaves[k];
	gpul_param *param = &i->s->s.params[leaf->param];
	uint32_t n = 0;

	if (!param->members)
		return param;
	while (param->members[n].offset != leaf->offset)
		n++;
	return &param->members[n];
}

gpul_status gpul_inference_assign_roles(gpul_inference *i, gpul_error *err)
{
	gpul_signature *s = &i->s->s;
	bool has_count = false;
	gpul_status st = add_members(i, err);

	if (st)
		return st;
	bound_loops(i);
	if (i->bound_offset >= INVENTED_ELEMENTS)
		gpul_unsized(i->s, "the bound of an index is a parameter plus %llu", (unsigned long long)i->bound_offset);
	if (i->negative_index && !i->index_checked)
		gpul_unsized(i->s, "threads access elements before their own");
	for (unsigned k = 0; k < i->p->n_leaves; k++) {
		gpul_param *param = gpul_leaf_param(i, k);

		if (i->facts[k].accessed)
			assign_buffer(i, param, &i->facts[k], k);
		else
			assign_value(i, param, &i->facts[k], k);
		has_count |= param->role == GPUL_ROLE_COUNT;
	}
	for (unsigned k = 0; k < s->n_params; k++)
		if (i->p->opaque >> k & 1)
			gpul_incomplete(i->s, "parameter %u is a struct of %u bytes", k, s->params[k].bytes);
	if (i->needs_count && !has_count)
		gpul_unsized(i->s, "%s, and no single parameter bounds the index", i->needs_count);
	if (s->uses_dynamic_shared)
		gpul_incomplete(i->s, "the kernel uses dynamic shared memory of unknown size");
	return GPUL_OK;
}
