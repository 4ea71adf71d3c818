/* infer.c — gpul_signature_infer(): collects facts about each parameter from the dataflow and type evidence.
 *
 * A parameter is a BUFFER if the address of some access is based on it; a COUNT if it is compared with a value that depends on the
 * thread index, and no address depends on it; else a SCALAR.  For every access, infer.c also checks whether a buffer of COUNT
 * elements, or of one element per thread, is big enough.  If the code does not show a fact, the signature is incomplete; why_not is
 * the first such reason. */
#include <stdio.h>
#include <stdlib.h>

#include "loader/signature/interval/signature_launch_internal.h"

/* ---- names ----------------------------------------------------------------------- */

static void name_leaves(gpul_inference *i)
{
	for (uint32_t k = 0; k < i->p->n_leaves; k++) {
		const gpul_leaf *leaf = &i->p->leaves[k];
		char *name = i->names[k];

		if (gpul_leaf_is_member(i->p, leaf))
			snprintf(name, sizeof i->names[k], "the member at %u of parameter %u", leaf->offset, leaf->param);
		else
			snprintf(name, sizeof i->names[k], "parameter %u", leaf->param);
	}
}

const char *gpul_leaf_name(const gpul_inference *i, uint64_t set)
{
	return set ? i->names[gpul_first_param(set)] : "another value";
}

/* ---- accesses -------------------------------------------------------------------- */

/* True, after recording the reason, if the required size of a buffer cannot be derived from an address into it. */
static bool index_is_unknown(gpul_inference *i, const gpul_absval *a)
{
	uint64_t others = a->linear & ~a->base;
	const char *name = gpul_leaf_name(i, a->base);

	if (a->flags & AV_TWO_BASES)
		gpul_unsized(i->s, "an address is the sum of %s and another parameter", name);
	else if (a->loaded_from || a->flags & (AV_LOADED | AV_EXTERNAL))
		gpul_unsized(i->s, "an index into %s is read from memory", name);
	else if (others)
		gpul_unsized(i->s, "an index into %s depends on %s", name, gpul_leaf_name(i, others));
	else if (a->flags & AV_OPAQUE)
		gpul_unsized(i->s,
			     "an index into %s is computed by an operation "
			     "that is not analysed",
			     name);
	else if (a->flags & AV_QUADRATIC)
		gpul_unsized(i->s, "an index into %s grows with the square of the launch size", name);
	else if (a->stride == AV_UNBOUNDED || a->block_stride == AV_UNBOUNDED || a->outer_stride == AV_UNBOUNDED)
		gpul_unsized(i->s, "an index into %s has an unknown stride", name);
	else
		return false;
	return true;
}

/* Record how many elements the buffer must have, so that this access is inside. */
static void check_extent(gpul_inference *i, const gpul_absval *a, uint64_t element, unsigned vector, param_facts *facts)
{
	uint64_t last = a->offset + element * (vector - 1); /* offset of the last element of a vector access */
	uint64_t step = ((a->stride > a->block_stride ? a->stride : a->block_stride) + element - 1) / element;

	if (step > MAX_VECTOR)
		gpul_unsized(i->s, "each thread accesses a row of %llu elements", (unsigned long long)step);
	else if (step > facts->vector)
		facts->vector = (uint32_t)step;
	if (a->offset == AV_UNBOUNDED) {
		i->unbounded_loop = true;
		if (a->growth > facts->growth)
			facts->growth = a->growth;
	} else if (last > GPUL_ASSUMED_BYTES_MAX) {
		gpul_unsized(i->s, "a buffer is accessed at element %llu, and would need more than 64 MiB",
			     (unsigned long long)(last / element));
	} else if (!(a->flags & AV_INDEX) && last / element >= INVENTED_ELEMENTS) {
		gpul_unsized(i->s, "a buffer is accessed at element %llu", (unsigned long long)(last / element));
	} else if (a->flags & AV_INDEX && last / element >= facts->vector) {
		i->needs_count = "threads access elements beyond their own";
		if (last > facts->offset)
			facts->offset = last;
		i->negative_index |= (a->flags & AV_NEGATIVE) != 0;
	}
	if (a->outer_stride > element * facts->vector && !i->s->s.reqntid[0])
		gpul_unsized(i->s, "each block accesses a row of %llu elements", (unsigned long long)(a->outer_stride / element));
}

static void note_access(gpul_inference *i, const gpul_dataflow_func *fn, const gpul_inst_access *a, const gpul_absval *address)
{
	const gpul_ptx_operand *value = a->result ? a->result : a->value;
	unsigned bytes = gpul_ptx_type_bytes(a->type);
	bool unknown = index_is_unknown(i, address);
	uint16_t mask = 0;

	if (value && value->kind == GPUL_PTX_OP_VECTOR)
		for (uint32_t k = 0; k < value->n_children; k++)
			mask |= gpul_evidence_of(&i->e, gpul_operand_node(fn, &fn->f->operands[value->first_child + k]));
	else if (value)
		mask = gpul_evidence_of(&i->e, gpul_operand_node(fn, value));
	i->in_index |= address->linear & ~address->base;
	i->read_indexes |= address->loaded_from;
	for (uint64_t set = address->base; set; set &= set - 1) {
		param_facts *facts = &i->facts[gpul_first_param(set)];

		facts->accessed = true;
		if (a->synchronizes)
			gpul_incomplete(i->s,
					"the kernel may wait for another thread to write "
					"to the buffer of %s",
					gpul_leaf_name(i, set));
		facts->loaded |= a->loads;
		facts->stored |= a->stores;
		facts->evidence |= mask;
		facts->fallback |= gpul_evidence_of_type(a->type);
		facts->widths |= bytes;
		if (a->vector > facts->vector)
			facts->vector = a->vector;
		if (!unknown && bytes)
			check_extent(i, address, bytes, a->vector, facts);
	}
}

/* Record an access to shared memory: if each thread has a row of a .shared array, the number of rows limits the block size. */
static void note_shared_access(gpul_inference *i, const gpul_absval *a)
{
	gpul_signature *s = &i->s->s;
	uint64_t threads;

	if (!a->stride || a->stride == AV_UNBOUNDED || !a->array_bytes || a->flags & AV_NOT_UNIQUE)
		return;
	threads = a->array_bytes / a->stride;
	if (threads == 0)
		gpul_incomplete(i->s, "a thread accesses shared memory beyond the end of an array");
	else if (threads <= UINT32_MAX && (!s->shared_threads || threads < s->shared_threads))
		s->shared_threads = (uint32_t)threads;
}

static void check_access(gpul_inference *i, const gpul_dataflow_func *fn, const gpul_inst_access *a)
{
	gpul_absval address = gpul_absval_of(i->p, fn, a->address);

	if (!address.defined || a->space == GPUL_PTX_MOD_PARAM)
		return;
	if (a->stores && a->value) { /* the stored address may be used elsewhere: it escapes */
		uint64_t base = gpul_absval_of(i->p, fn, a->value).base;

		for (; base && !(address.flags & AV_LOCAL); base &= base - 1)
			i->facts[gpul_first_param(base)].escapes = true;
	}
	if (address.flags & AV_SHARED)
		note_shared_access(i, &address);
	if (a->space != GPUL_PTX_MOD_NONE && a->space != GPUL_PTX_MOD_GLOBAL)
		return;
	if (address.base)
		note_access(i, fn, a, &address);
	else if (address.loaded_from && !(address.flags & AV_ADDRESS))
		gpul_incomplete(i->s, "%s points to pointers", gpul_leaf_name(i, address.loaded_from));
	else if (!(address.flags & (AV_ADDRESS | AV_EXTERNAL)))
		gpul_incomplete(i->s, "an address does not come from a parameter");
}

/* Handle an instruction with addresses that the analysis does not model: it shows which parameters are buffers, but not their types. */
static void check_other_inst(gpul_inference *i, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	if (in->opcode == GPUL_PTX_PREFETCH || in->opcode == GPUL_PTX_PREFETCHU)
		return;
	for (unsigned k = 0; k < in->n_operands; k++) {
		const gpul_ptx_operand *o = gpul_inst_operand(fn->f, in, k);
		uint64_t base = o->kind == GPUL_PTX_OP_ADDRESS ? gpul_absval_of(i->p, fn, o).base : 0;

		for (; base; base &= base - 1) {
			i->facts[gpul_first_param(base)].accessed = true;
			gpul_incomplete(i->s, "%s is used by %s, which is not analysed", gpul_leaf_name(i, base),
					gpul_ptx_opcode_text(in->opcode));
		}
	}
}

/* ---- calls and comparisons ------------------------------------------------------- */

static void note_call(gpul_inference *i, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	gpul_inst_call c = gpul_inst_call_parts(fn->f, in);
	gpul_absval target = { 0 };

	if (gpul_dataflow_callee(i->p, c.target))
		return;
	if (c.target)
		target = gpul_absval_of(i->p, fn, c.target);
	if (target.loaded_from)
		gpul_incomplete(i->s, "a function pointer in the buffer of %s is called", gpul_leaf_name(i, target.loaded_from));
	for (; target.base; target.base &= target.base - 1)
		i->facts[gpul_first_param(target.base)].called = true;
	for (uint32_t k = 0; c.args && k < c.args->n_children; k++) {
		const gpul_ptx_operand *arg = &fn->f->operands[c.args->first_child + k];
		uint32_t node = gpul_operand_node(fn, arg);
		gpul_absval f = node != GPUL_PTX_NONE ? i->p->values[node] : gpul_absval_of(i->p, fn, arg);
		uint64_t base = f.base;

		if (f.flags & AV_LOCAL) /* the argument points to an array of arguments in local memory, as for vprintf */
			base |= i->p->values[i->p->local_cell].base;
		for (; base; base &= base - 1)
			i->facts[gpul_first_param(base)].escapes = true;
	}
}

/* Record that a loop counter, which grows by `growth` in each iteration, is compared with the parameters in `bound`. */
static void note_loop(gpul_inference *i, uint64_t bound, uint64_t growth)
{
	if (bound && (!i->counter_growth || growth < i->counter_growth))
		i->counter_growth = growth;
	i->loop_bounds |= bound;
}

/* Record the facts that a comparison of a with b shows, if one is a thread index or loop counter and the other is a parameter. */
static void note_comparison(gpul_inference *i, const gpul_absval *a, const gpul_absval *b)
{
	/* In p < end, `end` is the end of a buffer, whose size the code does not show. */
	for (uint64_t ends = b->base ? a->base & ~b->base : 0; ends; ends &= ends - 1)
		i->facts[gpul_first_param(ends)].is_end = true;
	i->index_checked |= (a->flags & AV_INDEX && b->constant) || (a->base && b->base);
	if (b->flags & AV_INDEX && !(a->flags & AV_INDEX)) {
		i->index_bounds |= a->bound;
		if (a->bound && a->offset != AV_UNBOUNDED && a->offset > i->bound_offset && !(a->flags & AV_NEGATIVE))
			i->bound_offset = a->offset;
	} else if (a->flags & AV_INDEX && b->constant)
		i->index_bounds |= a->linear & ~a->base; /* a comparison such as i - n < 0 */
	else if (b->offset == AV_UNBOUNDED)
		note_loop(i, a->bound, b->growth);
	else if (a->offset == AV_UNBOUNDED && b->constant)
		note_loop(i, a->bound, a->growth); /* a counter from -n up to 0 */
	if (b->flags & AV_INDEX && a->linear & ~a->bound & ~a->base)
		i->needs_count = "the bound of an index is computed from several parameters";
}

/* True for i <= n and n >= i, where n itself is a valid index. */
static bool bound_is_inclusive(const gpul_ptx_inst *in, const gpul_absval *a, const gpul_absval *b)
{
	static const uint16_t of_first[] = { GPUL_PTX_MOD_LE, GPUL_PTX_MOD_GT, GPUL_PTX_MOD_LS, GPUL_PTX_MOD_HI };
	static const uint16_t of_second[] = { GPUL_PTX_MOD_GE, GPUL_PTX_MOD_LT, GPUL_PTX_MOD_HS, GPUL_PTX_MOD_LO };
	bool first = a->flags & AV_INDEX && b->bound && !(b->flags & AV_INDEX);
	bool second = b->flags & AV_INDEX && a->bound && !(a->flags & AV_INDEX);

	for (unsigned k = 0; k < 4; k++)
		if ((first && gpul_ptx_has_mod(in, of_first[k])) || (second && gpul_ptx_has_mod(in, of_second[k])))
			return true;
	return false;
}

static void check_comparison(gpul_inference *i, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	gpul_absval a, b;

	if (in->n_operands < 3)
		return;
	a = gpul_absval_of(i->p, fn, gpul_inst_operand(fn->f, in, 1));
	b = gpul_absval_of(i->p, fn, gpul_inst_operand(fn->f, in, 2));
	note_comparison(i, &a, &b);
	note_comparison(i, &b, &a);
	if (i->bound_offset == 0 && bound_is_inclusive(in, &a, &b))
		i->bound_offset = 1;
}

/* Check a barrier with a constant thread count, which works only with the block size that the kernel's author assumed. */
static void check_barrier(gpul_inference *i, const gpul_dataflow_func *fn, const gpul_ptx_inst *in)
{
	unsigned at = 1;
	gpul_absval count;

	if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_RED)) /* operands: d, barrier, [count,] predicate */
		at = in->n_operands > 3 ? 2 : in->n_operands;
	if (at >= in->n_operands || i->s->s.reqntid[0])
		return;
	count = gpul_absval_of(i->p, fn, gpul_inst_operand(fn->f, in, at));
	if (count.constant)
		gpul_incomplete(i->s, "a barrier waits for %lld threads, so the kernel assumes a block size", (long long)count.value);
	else if (count.flags != AV_NTID || count.linear)
		gpul_incomplete(i->s, "a barrier waits for an unknown number of threads");
}

static void scan_func(gpul_inference *i, const gpul_dataflow_func *fn)
{
	for (uint32_t k = 0; k < fn->f->n_insts; k++) {
		const gpul_ptx_inst *in = &fn->f->insts[k];
		gpul_inst_access a = gpul_inst_access_of(fn->f, in);

		if (a.address) {
			check_access(i, fn, &a);
			continue;
		}
		switch (in->opcode) {
		case GPUL_PTX_CALL:
			note_call(i, fn, in);
			break;
		case GPUL_PTX_BAR:
		case GPUL_PTX_BARRIER:
			check_barrier(i, fn, in);
			break;
		case GPUL_PTX_SETP:
		case GPUL_PTX_SET:
		case GPUL_PTX_MIN:
		case GPUL_PTX_MAX:
			check_comparison(i, fn, in);
			break;
		default:
			check_other_inst(i, fn, in);
			break;
		}
	}
}

/* ---- special registers ----------------------------------------------------------- */

static void note_operand(gpul_signature *s, const gpul_ptx_module *m, const gpul_ptx_operand *o)
{
	uint32_t dims = 1;
	uint32_t which = o->index;

	if (o->kind == GPUL_PTX_OP_SYMBOL && o->ref_kind == GPUL_PTX_REF_MODULE_VAR) {
		const gpul_ptx_var *v = &m->vars[o->index];

		s->uses_dynamic_shared |= v->space == GPUL_PTX_MOD_SHARED && v->linkage == GPUL_PTX_EXTERN && v->bytes == 0;
	}
	if (o->kind != GPUL_PTX_OP_SPECIAL)
		return;
	s->reads_tid |= which == GPUL_PTX_SREG_TID_X || which == GPUL_PTX_SREG_TID_Y || which == GPUL_PTX_SREG_TID_Z ||
			which == GPUL_PTX_SREG_LANEID || which == GPUL_PTX_SREG_WARPID;
	s->reads_ctaid |= which == GPUL_PTX_SREG_CTAID_X || which == GPUL_PTX_SREG_CTAID_Y || which == GPUL_PTX_SREG_CTAID_Z;
	if (which == GPUL_PTX_SREG_TID_Y || which == GPUL_PTX_SREG_CTAID_Y)
		dims = 2;
	if (which == GPUL_PTX_SREG_TID_Z || which == GPUL_PTX_SREG_CTAID_Z)
		dims = 3;
	if (dims > s->grid_dims)
		s->grid_dims = dims;
	s->uses_dynamic_shared |= o->index == GPUL_PTX_SREG_DYNAMIC_SMEM_SIZE;
}

gpul_status gpul_signature_infer(const gpul_ptx_module *m, const gpul_ptx_func *f, gpul_signature **out, gpul_error *err)
{
	gpul_inference *i = NULL;
	gpul_dataflow p = { 0 };
	gpul_signature_owned *s = NULL;
	const char *why_not = NULL;
	gpul_status st;

	st = gpul_signature_declared(m, f, &s, err);
	if (st)
		return st;
	st = gpul_dataflow_open(m, f, &p, &why_not, err);
	if (st)
		goto destroy;
	if (why_not) {
		gpul_incomplete(s, "%s", why_not);
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
	name_leaves(i);
	st = gpul_evidence_open(&p, &i->e, err);
	if (st)
		goto free_i;
	s->s.reads_tid = s->s.reads_ctaid = false;
	for (size_t k = 0; k < p.n_funcs; k++) {
		for (uint32_t o = 0; o < p.funcs[k].f->n_operands; o++)
			note_operand(&s->s, m, &p.funcs[k].f->operands[o]);
		scan_func(i, &p.funcs[k]);
	}
	st = gpul_inference_assign_roles(i, err);
	if (st == GPUL_OK)
		gpul_assume_launch(i);
	if (st == GPUL_OK)
		*out = &s->s;
	gpul_evidence_close(&i->e);
free_i:
	free(i);
close_flow:
	gpul_dataflow_close(&p);
destroy:
	if (st)
		gpul_signature_destroy(&s->s);
	return st;
}
