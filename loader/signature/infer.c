/* infer.c — gpul_signature_infer(): from flows and evidence to roles, types and doubts.
 *
 * A parameter is a buffer when some access's address is based on it; a count when something
 * that moves with the thread index is compared with it and no address grows with it; else a
 * value. Every access is also asked whether a buffer of COUNT elements, or of one per thread,
 * is enough. A question that cannot be answered is a doubt, and the first doubt is the
 * signature's why_not. */
#include <stdlib.h>

#include "loader/signature/infer_internal.h"

#define MAX_VECTOR 64 /* elements a step; more is a row of a matrix */

/* ---- accesses -------------------------------------------------------------------- */

/* True, and a doubt noted, when an address based on a parameter says too little about its
 * extent. */
static bool doubtful_address(gpul_inference *i, const gpul_flow *a)
{
	uint64_t others = a->linear & ~a->base;
	int k = gpul_first_param(a->base);

	if (a->flags & FLOW_MIXED)
		gpul_signature_doubt(i->s,
				     "parameter %d and another are added up to one address", k);
	else if (a->from || a->flags & (FLOW_DATA | FLOW_OUTSIDE))
		gpul_signature_doubt(i->s, "an index into parameter %d is read from memory", k);
	else if (others)
		gpul_signature_doubt(
			i->s,
			"parameter %d enters an index into parameter %d, whose size "
			"cannot be told then",
			gpul_first_param(others), k);
	else if (a->flags & FLOW_OPAQUE)
		gpul_signature_doubt(
			i->s,
			"an index into parameter %d is computed in a way that is not "
			"followed",
			k);
	else if (a->flags & FLOW_SQUARE)
		gpul_signature_doubt(
			i->s, "an index into parameter %d grows with the square of the launch",
			k);
	else if (a->stride == FLOW_ENDLESS || a->start == FLOW_ENDLESS ||
		 a->outer == FLOW_ENDLESS)
		gpul_signature_doubt(
			i->s, "an index into parameter %d takes steps of unknown width", k);
	else
		return false;
	return true;
}

/* How far a buffer must reach for this access. */
static void check_extent(gpul_inference *i, const gpul_flow *a, uint64_t element,
			 param_facts *facts)
{
	uint64_t step = ((a->stride > a->start ? a->stride : a->start) + element - 1) / element;

	if (step > MAX_VECTOR)
		gpul_signature_doubt(i->s, "each thread has a row of %llu elements",
				     (unsigned long long)step);
	else if (step > facts->vector)
		facts->vector = (uint32_t)step;
	if (a->reach == FLOW_ENDLESS)
		i->walks = true;
	else if (!(a->flags & FLOW_INDEX) && a->reach / element >= INVENTED_ELEMENTS)
		gpul_signature_doubt(i->s, "a buffer is read %llu elements in",
				     (unsigned long long)(a->reach / element));
	else if (a->flags & FLOW_INDEX && a->reach / element >= facts->vector) {
		i->unbounded = "threads reach beyond their own element";
		if (a->reach > facts->reach)
			facts->reach = a->reach;
		i->below |= (a->flags & FLOW_LESS) != 0;
	}
	if (a->outer > element * facts->vector && !i->s->s.reqntid[0])
		gpul_signature_doubt(i->s, "each block has a row of %llu elements",
				     (unsigned long long)(a->outer / element));
}

static void note_access(gpul_inference *i, const gpul_flow_func *fn, const gpul_flow_access *a,
			const gpul_flow *address)
{
	const gpul_ptx_operand *value = a->result ? a->result : a->value;
	unsigned bytes = gpul_ptx_type_bytes(a->type);
	bool doubtful = doubtful_address(i, address);
	uint16_t mask = 0;

	if (value && value->kind == GPUL_PTX_OP_VECTOR)
		for (uint32_t k = 0; k < value->n_children; k++)
			mask |= gpul_evidence_of(
				&i->e,
				gpul_flow_node(fn, &fn->f->operands[value->first_child + k]));
	else if (value)
		mask = gpul_evidence_of(&i->e, gpul_flow_node(fn, value));
	i->steers |= address->linear & ~address->base;
	for (uint64_t set = address->base; set; set &= set - 1) {
		param_facts *facts = &i->facts[gpul_first_param(set)];

		facts->accessed = true;
		if (a->waits)
			gpul_signature_doubt(
				i->s, "the kernel may wait for others to write to parameter %d",
				gpul_first_param(set));
		facts->loaded |= a->loads;
		facts->stored |= a->stores;
		facts->evidence |= mask;
		facts->fallback |= gpul_evidence_of_type(a->type);
		facts->widths |= bytes;
		if (a->vector > facts->vector)
			facts->vector = a->vector;
		if (!doubtful && bytes)
			check_extent(i, address, bytes, facts);
	}
}

/* An array in shared memory with a row for each thread bounds the block. */
static void note_shared(gpul_inference *i, const gpul_flow *a)
{
	gpul_signature *s = &i->s->s;
	uint64_t threads;

	if (!a->stride || a->stride == FLOW_ENDLESS || !a->room || a->flags & FLOW_FEWER)
		return;
	threads = a->room / a->stride;
	if (threads == 0)
		gpul_signature_doubt(i->s, "a thread reaches beyond an array in shared memory");
	else if (threads <= UINT32_MAX && (!s->shared_threads || threads < s->shared_threads))
		s->shared_threads = (uint32_t)threads;
}

static void memory_access(gpul_inference *i, const gpul_flow_func *fn,
			  const gpul_flow_access *a)
{
	gpul_flow address = gpul_flow_of(i->p, fn, a->address);

	if (!address.seen || a->space == GPUL_PTX_MOD_PARAM)
		return;
	if (a->stores && a->value) { /* an address that is stored can be used by anyone */
		uint64_t base = gpul_flow_of(i->p, fn, a->value).base;

		for (; base && !(address.flags & FLOW_LOCAL); base &= base - 1)
			i->facts[gpul_first_param(base)].leaves = true;
	}
	if (address.flags & FLOW_SHARED)
		note_shared(i, &address);
	if (a->space != GPUL_PTX_MOD_NONE && a->space != GPUL_PTX_MOD_GLOBAL)
		return;
	if (address.base)
		note_access(i, fn, a, &address);
	else if (address.from && !(address.flags & FLOW_ADDRESS))
		gpul_signature_doubt(i->s, "parameter %d points to pointers",
				     gpul_first_param(address.from));
	else if (!(address.flags & (FLOW_ADDRESS | FLOW_OUTSIDE)))
		gpul_signature_doubt(i->s, "an address cannot be traced to a parameter");
}

/* An instruction that takes addresses and is not followed: the buffers are known, not their
 * types. */
static void other_access(gpul_inference *i, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	if (in->opcode == GPUL_PTX_PREFETCH || in->opcode == GPUL_PTX_PREFETCHU)
		return;
	for (unsigned k = 0; k < in->n_operands; k++) {
		const gpul_ptx_operand *o = gpul_flow_operand(fn, in, k);
		uint64_t base =
			o->kind == GPUL_PTX_OP_ADDRESS ? gpul_flow_of(i->p, fn, o).base : 0;

		for (; base; base &= base - 1) {
			i->facts[gpul_first_param(base)].accessed = true;
			gpul_signature_doubt(
				i->s, "parameter %d is used by %s, which is not followed",
				gpul_first_param(base), gpul_ptx_opcode_text(in->opcode));
		}
	}
}

/* ---- calls and comparisons ------------------------------------------------------- */

static void note_call(gpul_inference *i, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	gpul_flow_call c = gpul_flow_call_parts(fn, in);
	gpul_flow target = { 0 };

	if (gpul_flow_callee(i->p, c.target))
		return;
	if (c.target)
		target = gpul_flow_of(i->p, fn, c.target);
	if (target.from)
		gpul_signature_doubt(i->s,
				     "what parameter %d holds decides which function is called",
				     gpul_first_param(target.from));
	for (; target.base; target.base &= target.base - 1)
		i->facts[gpul_first_param(target.base)].called = true;
	for (uint32_t k = 0; c.args && k < c.args->n_children; k++) {
		const gpul_ptx_operand *arg = &fn->f->operands[c.args->first_child + k];
		uint32_t node = gpul_flow_node(fn, arg);
		gpul_flow f =
			node != GPUL_PTX_NONE ? i->p->flow[node] : gpul_flow_of(i->p, fn, arg);
		uint64_t base = f.base;

		if (f.flags & FLOW_LOCAL) /* an array of arguments, as vprintf takes */
			base |= i->p->flow[i->p->local_cell].base;
		for (; base; base &= base - 1)
			i->facts[gpul_first_param(base)].leaves = true;
	}
}

/* p < end: the other one is an address too, of which nobody knows where it must point. */
static void note_end_pointer(gpul_inference *i, const gpul_flow *a, const gpul_flow *b)
{
	uint64_t ends = a->base & ~b->base;

	if (!b->base || !ends)
		return;
	for (; ends; ends &= ends - 1)
		i->facts[gpul_first_param(ends)].end = true;
}

/* a is compared with b: does a thread index meet a parameter? */
static void note_comparison(gpul_inference *i, const gpul_flow *a, const gpul_flow *b)
{
	note_end_pointer(i, a, b);
	i->above_zero |= (a->flags & FLOW_INDEX && b->constant) || (a->base && b->base);
	if (b->flags & FLOW_INDEX && !(a->flags & FLOW_INDEX)) {
		i->bounds |= a->bound;
		if (a->bound && a->reach != FLOW_ENDLESS && a->reach > i->slack &&
		    !(a->flags & FLOW_LESS))
			i->slack = a->reach;
	} else if (a->flags & FLOW_INDEX && b->constant)
		i->bounds |= a->linear & ~a->base; /* i - n < 0 */
	else if (b->reach == FLOW_ENDLESS)
		i->turns |= a->bound;
	else if (a->reach == FLOW_ENDLESS && b->constant)
		i->turns |= a->bound; /* counts from -n up to 0 */
	if (b->flags & FLOW_INDEX && a->linear & ~a->bound & ~a->base)
		i->unbounded = "parameters are combined to a bound";
}

/* i <= n, or n >= i: one index more than i < n has. */
static bool includes(const gpul_ptx_inst *in, const gpul_flow *a, const gpul_flow *b)
{
	static const uint16_t of_first[] = { GPUL_PTX_MOD_LE, GPUL_PTX_MOD_GT, GPUL_PTX_MOD_LS,
					     GPUL_PTX_MOD_HI };
	static const uint16_t of_second[] = { GPUL_PTX_MOD_GE, GPUL_PTX_MOD_LT, GPUL_PTX_MOD_HS,
					      GPUL_PTX_MOD_LO };
	bool first = a->flags & FLOW_INDEX && b->bound && !(b->flags & FLOW_INDEX);
	bool second = b->flags & FLOW_INDEX && a->bound && !(a->flags & FLOW_INDEX);

	for (unsigned k = 0; k < 4; k++)
		if ((first && gpul_ptx_has_mod(in, of_first[k])) ||
		    (second && gpul_ptx_has_mod(in, of_second[k])))
			return true;
	return false;
}

static void comparison(gpul_inference *i, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	gpul_flow a, b;

	if (in->n_operands < 3)
		return;
	a = gpul_flow_of(i->p, fn, gpul_flow_operand(fn, in, 1));
	b = gpul_flow_of(i->p, fn, gpul_flow_operand(fn, in, 2));
	note_comparison(i, &a, &b);
	note_comparison(i, &b, &a);
	if (i->slack == 0 && includes(in, &a, &b))
		i->slack = 1;
}

/* A barrier that counts its threads works with blocks of the size its author had in mind. */
static void note_barrier(gpul_inference *i, const gpul_flow_func *fn, const gpul_ptx_inst *in)
{
	unsigned at = 1;
	gpul_flow count;

	if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_RED)) /* d, barrier, [count,] predicate */
		at = in->n_operands > 3 ? 2 : in->n_operands;
	if (at >= in->n_operands || i->s->s.reqntid[0])
		return;
	count = gpul_flow_of(i->p, fn, gpul_flow_operand(fn, in, at));
	if (count.constant)
		gpul_signature_doubt(
			i->s, "a barrier waits for %lld threads: a block size is assumed",
			(long long)count.value);
	else if (count.flags != FLOW_NTID || count.linear)
		gpul_signature_doubt(i->s,
				     "for how many threads a barrier waits cannot be told");
}

static void look_through(gpul_inference *i, const gpul_flow_func *fn)
{
	for (uint32_t k = 0; k < fn->f->n_insts; k++) {
		const gpul_ptx_inst *in = &fn->f->insts[k];
		gpul_flow_access a = gpul_flow_access_of(fn, in);

		if (a.address) {
			memory_access(i, fn, &a);
			continue;
		}
		switch (in->opcode) {
		case GPUL_PTX_CALL:
			note_call(i, fn, in);
			break;
		case GPUL_PTX_BAR:
		case GPUL_PTX_BARRIER:
			note_barrier(i, fn, in);
			break;
		case GPUL_PTX_SETP:
		case GPUL_PTX_SET:
		case GPUL_PTX_MIN:
		case GPUL_PTX_MAX:
			comparison(i, fn, in);
			break;
		default:
			other_access(i, fn, in);
			break;
		}
	}
}

/* ---- what the kernel reads of the launch ----------------------------------------- */

static void note_operand(gpul_signature *s, const gpul_ptx_module *m, const gpul_ptx_operand *o)
{
	uint32_t dims = 1;
	uint32_t which = o->index;

	if (o->kind == GPUL_PTX_OP_SYMBOL && o->ref_kind == GPUL_PTX_REF_MODULE_VAR) {
		const gpul_ptx_var *v = &m->vars[o->index];

		s->uses_dynamic_shared |= v->space == GPUL_PTX_MOD_SHARED &&
					  v->linkage == GPUL_PTX_EXTERN && v->bytes == 0;
	}
	if (o->kind != GPUL_PTX_OP_SPECIAL)
		return;
	s->reads_tid |= which == GPUL_PTX_SREG_TID_X || which == GPUL_PTX_SREG_TID_Y ||
			which == GPUL_PTX_SREG_TID_Z || which == GPUL_PTX_SREG_LANEID ||
			which == GPUL_PTX_SREG_WARPID;
	s->reads_ctaid |= which == GPUL_PTX_SREG_CTAID_X || which == GPUL_PTX_SREG_CTAID_Y ||
			  which == GPUL_PTX_SREG_CTAID_Z;
	if (which == GPUL_PTX_SREG_TID_Y || which == GPUL_PTX_SREG_CTAID_Y)
		dims = 2;
	if (which == GPUL_PTX_SREG_TID_Z || which == GPUL_PTX_SREG_CTAID_Z)
		dims = 3;
	if (dims > s->grid_dims)
		s->grid_dims = dims;
	s->uses_dynamic_shared |= o->index == GPUL_PTX_SREG_DYNAMIC_SMEM_SIZE;
}

static void note_launch(gpul_signature *s, const gpul_flow_program *p)
{
	s->reads_tid = s->reads_ctaid = false;
	for (size_t i = 0; i < p->n_funcs; i++)
		for (uint32_t k = 0; k < p->funcs[i].f->n_operands; k++)
			note_operand(s, p->m, &p->funcs[i].f->operands[k]);
}

gpul_status gpul_signature_infer(const gpul_ptx_module *m, const gpul_ptx_func *f,
				 gpul_signature **out, gpul_error *err)
{
	gpul_inference *i = NULL;
	gpul_flow_program p = { 0 };
	gpul_signature_owned *s = NULL;
	const char *why_not = NULL;
	gpul_status st;

	st = gpul_signature_declared(m, f, &s, err);
	if (st)
		return st;
	if (s->s.n_params > FLOW_MAX_PARAMS)
		why_not = "the kernel has more than 64 parameters";
	else
		st = gpul_flow_open(m, f, &p, &why_not, err);
	if (st)
		goto destroy;
	if (why_not) {
		gpul_signature_doubt(s, "%s", why_not);
		*out = &s->s;
		return GPUL_OK;
	}
	i = calloc(1, sizeof *i);
	if (!i) {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory to infer a signature");
		goto close_flow;
	}
	i->p = &p;
	i->s = s;
	st = gpul_evidence_open(&p, &i->e, err);
	if (st)
		goto free_i;
	note_launch(&s->s, &p);
	for (size_t k = 0; k < p.n_funcs; k++)
		look_through(i, &p.funcs[k]);
	gpul_inference_conclude(i);
	*out = &s->s;
	gpul_evidence_close(&i->e);
free_i:
	free(i);
close_flow:
	gpul_flow_close(&p);
destroy:
	if (st)
		gpul_signature_destroy(&s->s);
	return st;
}
