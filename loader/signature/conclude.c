/* conclude.c — see infer_internal.h: from what was found to roles, types and doubts. */
#include "loader/signature/infer_internal.h"

static void conclude_buffer(gpul_inference *i, gpul_param *param, const param_facts *facts,
			    unsigned k)
{
	uint32_t width = facts->widths;

	param->role = GPUL_ROLE_BUFFER;
	param->loaded = facts->loaded;
	param->stored = facts->stored;
	param->vector = facts->vector ? facts->vector : 1;
	if (facts->leaves)
		gpul_signature_doubt(i->s, "the address in parameter %u is handed on", k);
	if (width & (width - 1)) {
		gpul_signature_doubt(
			i->s, "parameter %u is accessed in elements of several sizes", k);
		return;
	}
	param->type = gpul_evidence_type(facts->evidence, facts->fallback, width);
	if (param->type == GPUL_TYPE_NONE)
		gpul_signature_doubt(
			i->s, "nothing tells the element type of parameter %u (%u bytes each)",
			k, width);
	else
		param->vector *= width / (uint32_t)gpul_type_bytes(param->type); /* f16x2 */
	param->beyond = (uint32_t)(i->slack < INVENTED_ELEMENTS ? i->slack : 0) * param->vector;
	if (facts->reach)
		param->beyond += (uint32_t)(facts->reach / width + 1 - param->vector);
}

static void conclude_value(gpul_inference *i, gpul_param *param, const param_facts *facts,
			   unsigned k)
{
	const gpul_flow_func *kernel = &i->p->funcs[0];
	uint16_t evidence = gpul_evidence_of(&i->e, kernel->params + k);
	uint16_t declared = gpul_evidence_of_type(kernel->f->params[k].type);
	uint64_t bit = (uint64_t)1 << k;

	if (facts->called || (facts->leaves && !(evidence & ~EVIDENCE_PARKED) &&
			      param->bytes * 8 == i->p->m->address_size)) {
		gpul_signature_doubt(
			i->s,
			facts->called ? "parameter %u is called: a function's address"
				      : "parameter %u may be an address: it is handed on",
			k);
		if (facts->called && !facts->leaves)
			param->role = GPUL_ROLE_FUNCTION;
		return;
	}
	if (facts->end) {
		gpul_signature_doubt(
			i->s, "parameter %u is compared with addresses: where a buffer ends",
			k);
		return;
	}
	param->role = GPUL_ROLE_SCALAR;
	param->type = gpul_evidence_type(evidence, declared, param->bytes);
	if (!evidence && !(declared & EVIDENCE_FLOAT) &&
	    param->bytes * 8 == i->p->m->address_size)
		param->role = GPUL_ROLE_UNKNOWN; /* never used: may be declared as a pointer,
						    any value will do */
	if (param->role == GPUL_ROLE_SCALAR && i->bounds & bit && !(i->steers & bit) &&
	    param->bytes >= 4 && param->type >= GPUL_I32 && param->type <= GPUL_U64)
		param->role = GPUL_ROLE_COUNT;
	if (param->type == GPUL_TYPE_NONE)
		gpul_signature_doubt(i->s, "nothing tells the type of parameter %u (%u bytes)",
				     k, param->bytes);
}

/* A loop that walks a buffer is as long as the one parameter that its counter is compared with.
 */
static void conclude_walks(gpul_inference *i)
{
	int k = gpul_first_param(i->turns);

	if (!i->walks)
		return;
	if (k < 0 || i->turns & (i->turns - 1) || i->steers & i->turns || i->facts[k].accessed)
		gpul_signature_doubt(i->s, "a loop walks a buffer, and how far cannot be told");
	else
		i->bounds |= i->turns;
}

static bool has_count(const gpul_signature *s)
{
	for (size_t k = 0; k < s->n_params; k++)
		if (s->params[k].role == GPUL_ROLE_COUNT)
			return true;
	return false;
}

void gpul_inference_conclude(gpul_inference *i)
{
	gpul_signature *s = &i->s->s;

	conclude_walks(i);
	if (i->slack >= INVENTED_ELEMENTS)
		gpul_signature_doubt(i->s, "a bound lies %llu beyond a parameter",
				     (unsigned long long)i->slack);
	if (i->below && !i->above_zero)
		gpul_signature_doubt(i->s, "threads reach before their own element");
	for (unsigned k = 0; k < s->n_params; k++) {
		gpul_param *param = &s->params[k];

		if (param->role == GPUL_ROLE_STRUCT)
			gpul_signature_doubt(i->s, "parameter %u is a struct of %u bytes", k,
					     param->bytes);
		else if (i->facts[k].accessed)
			conclude_buffer(i, param, &i->facts[k], k);
		else
			conclude_value(i, param, &i->facts[k], k);
	}
	if (i->unbounded && !has_count(s))
		gpul_signature_doubt(i->s, "%s, and no parameter alone bounds the index",
				     i->unbounded);
	if (s->uses_dynamic_shared)
		gpul_signature_doubt(
			i->s,
			"the kernel uses dynamic shared memory, whose size cannot be told");
}
