/* decode_operand.c — converts operands to references; emits copies where a register is wider than its type. */
#include "softcuda/exec/decode/decode_internal.h"

unsigned gpul_container_bytes(unsigned type)
{
	unsigned bytes = gpul_ptx_type_bytes(type);

	return bytes == 1 ? 2 : bytes;
}

static bool is_signed(unsigned type)
{
	return type == GPUL_PTX_MOD_S8 || type == GPUL_PTX_MOD_S16 || type == GPUL_PTX_MOD_S32 || type == GPUL_PTX_MOD_S64;
}

unsigned gpul_type_mod(const gpul_ptx_inst *in)
{
	for (unsigned k = in->n_mods; k-- > 0;)
		if (in->mods[k] <= GPUL_PTX_MOD_S16X2)
			return in->mods[k];
	return 0;
}

unsigned gpul_vector_mod(const gpul_ptx_inst *in)
{
	return gpul_ptx_has_mod(in, GPUL_PTX_MOD_V2)   ? 2
	       : gpul_ptx_has_mod(in, GPUL_PTX_MOD_V4) ? 4
	       : gpul_ptx_has_mod(in, GPUL_PTX_MOD_V8) ? 8
						       : 1;
}

/* ---- registers ------------------------------------------------------------------------------------- */

/* Reserve a register of `bytes` bytes per lane, and return its offset in the frame.  bytes 0: a predicate; 16 predicates share 64 bytes. */
uint32_t gpul_reserve_register(struct decoder *d, unsigned bytes)
{
	uint32_t at = d->frame_bytes;

	if (bytes) {
		d->frame_bytes += bytes * LANES;
		return at;
	}
	if (!d->pred_left) {
		d->pred_at = at;
		d->pred_left = 16;
		d->frame_bytes += 64;
	}
	d->pred_left--;
	d->pred_at += 4;
	return d->pred_at - 4;
}

/* Return a reference to a register of module scope.  These are in bank 2, because all frames of a warp share that bank. */
static opref module_reg_ref(struct gpul_exec_program *p, uint32_t flat, unsigned bytes)
{
	if (p->module_reg_offset[flat] == UINT32_MAX) {
		p->module_reg_offset[flat] = p->specials_bytes;
		p->specials_bytes += bytes ? bytes * LANES : 64;
	}
	return OPREF(BANK_SPECIALS, p->module_reg_offset[flat]);
}

opref gpul_reg_ref(struct decoder *d, uint32_t flat, unsigned *bytes)
{
	*bytes = d->reg_bytes[flat];
	if (flat < d->f->n_module_regs)
		return module_reg_ref(d->p, flat, *bytes);
	if (d->reg_offset[flat] == UINT32_MAX)
		d->reg_offset[flat] = gpul_reserve_register(d, *bytes);
	return OPREF(BANK_REGS, d->reg_offset[flat]);
}

bool gpul_operand_temporary(struct decoder *d, unsigned bytes, opref *out)
{
	unsigned k = 0;

	while (k < d->n_temps && (d->temps[k].used || d->temps[k].bytes != bytes))
		k++;
	if (k == MAX_TEMPS)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "more than %d operands need a width conversion", MAX_TEMPS);
	if (k == d->n_temps) {
		d->temps[k].bytes = (uint8_t)bytes;
		d->temps[k].ref = OPREF(BANK_REGS, gpul_reserve_register(d, bytes));
		d->n_temps++;
	}
	d->temps[k].used = true;
	*out = d->temps[k].ref;
	return true;
}

unsigned gpul_operand_elements(const gpul_ptx_func *f, const gpul_ptx_operand *o)
{
	if (o->kind == GPUL_PTX_OP_VECTOR)
		return o->n_children;
	return o->kind == GPUL_PTX_OP_REG && !o->selector ? gpul_ptx_reg_row(f, o->index)->vector : 1;
}

bool gpul_operand_is_list(const gpul_ptx_func *f, const gpul_ptx_operand *o)
{
	return o->kind == GPUL_PTX_OP_VECTOR || gpul_operand_elements(f, o) > 1;
}

/* Find an element of a register operand.  The elements .x .y .z .w of a vector register are consecutive registers, and o->index is
 * the first of them; if the operand selects one element (%v.y), o->index is that element. */
bool gpul_operand_register(struct decoder *d, const gpul_ptx_operand *o, unsigned element, opref *out, unsigned *bytes)
{
	if (element && element >= gpul_operand_elements(d->f, o))
		return gpul_decode_fail(d, GPUL_EFORMAT, "the register has no element %u", element);
	*out = gpul_reg_ref(d, o->index + element, bytes);
	return true;
}

gpul_ptx_operand gpul_operand_element(struct decoder *d, const gpul_ptx_operand *o, unsigned element)
{
	gpul_ptx_operand one;

	if (o->kind == GPUL_PTX_OP_VECTOR)
		return *child(d, o, element);
	one = *o;
	one.index += element;
	one.selector = (uint8_t)(GPUL_PTX_SEL_X + element);
	return one;
}

static enum op cut_op(unsigned from, unsigned to)
{
	return from == 4 && to == 2 ? OP_CUT_32_16 : from == 8 && to == 2 ? OP_CUT_64_16 : from == 8 && to == 4 ? OP_CUT_64_32 : OP_NOP;
}

static enum op extend_op(unsigned from, unsigned to, bool sign)
{
	if (from == 2 && to == 4)
		return sign ? OP_EXT_S16_32 : OP_EXT_U16_32;
	if (from == 2 && to == 8)
		return sign ? OP_EXT_S16_64 : OP_EXT_U16_64;
	if (from == 4 && to == 8)
		return sign ? OP_EXT_S32_64 : OP_EXT_U32_64;
	return OP_NOP;
}

static bool width_error(struct decoder *d, unsigned have, unsigned want)
{
	if (!have || !want)
		return gpul_decode_fail(d, GPUL_EFORMAT,
					have ? "a predicate is expected, not a %u-bit register"
					     : "a %u-bit operand is expected, not a predicate",
					8 * (have ? have : want));
	return gpul_decode_fail(d, GPUL_EFORMAT, "a %u-bit operand is expected, not a %u-bit register", 8 * want, 8 * have);
}

/* Decode an operand `register+constant`: emit an addition; *ref receives the temporary register with the sum. */
static bool add_offset(struct decoder *d, const gpul_ptx_operand *o, unsigned bytes, opref *ref)
{
	const enum op op = bytes == 2 ? OP_ADD_16 : bytes == 4 ? OP_ADD_32 : OP_ADD_64;
	struct insn made = { .a = *ref };

	if (bytes < 2 || bytes > 8)
		return gpul_decode_fail(d, GPUL_EFORMAT, "this register cannot have an offset");
	if (!gpul_operand_const(d, (uint64_t)o->value.i, bytes, &made.b) || !gpul_operand_temporary(d, bytes, &made.d))
		return false;
	*ref = made.d;
	return gpul_emit(d, op, &made);
}

static bool has_offset(const gpul_ptx_operand *o)
{
	return o->value.i && o->selector != GPUL_PTX_SEL_BYTES && o->selector != GPUL_PTX_SEL_HALVES;
}

static bool reg_source(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool narrow_ok, opref *out)
{
	unsigned have, want = gpul_container_bytes(type);
	opref ref, cut;

	if (!gpul_operand_register(d, o, 0, &ref, &have) || (has_offset(o) && !add_offset(d, o, have, &ref)))
		return false;
	if (have == want && !(o->negated && !have)) {
		*out = ref;
		return true;
	}
	if (!want && !have)
		return gpul_operand_temporary(d, 0, out) && gpul_emit(d, OP_NOT_PRED, &(struct insn){ .d = *out, .a = ref });
	if (!narrow_ok || cut_op(have, want) == OP_NOP)
		return width_error(d, have, want);
	if (!gpul_operand_temporary(d, want, &cut))
		return false;
	*out = cut;
	return gpul_emit(d, cut_op(have, want), &(struct insn){ .d = cut, .a = ref });
}

/* ---- constants and special registers ---------------------------------------------------------------- */

bool gpul_operand_const(struct decoder *d, uint64_t bits, unsigned bytes, opref *out)
{
	uint32_t at = gpul_consts_broadcast(&d->p->consts, bits, bytes);

	if (at == UINT32_MAX)
		return gpul_decode_fail(d, GPUL_ENOMEM, "no memory for constants");
	*out = OPREF(BANK_CONSTS, at);
	return true;
}

static uint64_t bits_of_double(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static uint64_t bits_of_float(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* Return the bits of a literal, converted to `type`. */
static uint64_t literal_bits(const gpul_ptx_operand *o, unsigned type)
{
	bool wide = gpul_ptx_type_bytes(type) == 8;
	double x;
	float y;

	if (o->kind == GPUL_PTX_OP_F64) {
		memcpy(&x, &o->value.f64, sizeof x);
		return wide ? o->value.f64 : bits_of_float((float)x);
	}
	if (o->kind == GPUL_PTX_OP_F32) {
		memcpy(&y, &o->value.f32, sizeof y);
		return wide ? bits_of_double(y) : o->value.f32;
	}
	if (type == GPUL_PTX_MOD_F32)
		return bits_of_float((float)o->value.i);
	if (type == GPUL_PTX_MOD_F64)
		return bits_of_double((double)o->value.i);
	return (uint64_t)o->value.i;
}

static bool is_clock(unsigned special)
{
	switch (special) {
	case GPUL_PTX_SREG_CLOCK:
	case GPUL_PTX_SREG_CLOCK_HI:
	case GPUL_PTX_SREG_CLOCK64:
	case GPUL_PTX_SREG_GLOBALTIMER:
	case GPUL_PTX_SREG_GLOBALTIMER_LO:
	case GPUL_PTX_SREG_GLOBALTIMER_HI:
		return true;
	default:
		return false;
	}
}

static bool special_slot(struct decoder *d, unsigned special, unsigned bytes, uint32_t *offset)
{
	struct gpul_exec_program *p = d->p;

	for (uint32_t k = 0; k < p->n_specials; k++)
		if (p->specials[k].special == special && p->specials[k].bytes == bytes) {
			*offset = p->specials[k].offset;
			return true;
		}
	if (p->n_specials == MAX_SPECIAL_SLOTS)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "the instruction uses too many special registers");
	*offset = p->specials_bytes;
	p->specials[p->n_specials++] = (struct special_slot){ (uint16_t)special, (uint8_t)bytes, *offset };
	p->specials_bytes += bytes * LANES;
	return true;
}

static bool special_source(struct decoder *d, unsigned special, unsigned type, opref *out)
{
	unsigned bytes = gpul_container_bytes(type);
	uint32_t offset = 0;

	if (!bytes) /* %is_explicit_cluster, the only special register that is a predicate */
		bytes = 4;
	if (bytes > 8)
		return width_error(d, 8, bytes);
	if (!special_slot(d, special, bytes, &offset))
		return false;
	*out = OPREF(BANK_SPECIALS, offset);
	return !is_clock(special) || gpul_emit(d, OP_READ_CLOCK, &(struct insn){ .d = *out, .e = special, .n = (uint8_t)bytes });
}

/* ---- symbols ------------------------------------------------------------------------------------------ */

static bool var_place(struct decoder *d, const gpul_ptx_operand *o, const gpul_ptx_var *v, uint64_t address, uint32_t offset,
		      struct place *out)
{
	out->bytes = (uint32_t)v->bytes;
	if (gpul_var_is_reference(v) && address) { /* the value of a .texref or .surfref is its handle */
		out->space = SPACE_GLOBAL;
		out->value = address;
		return true;
	}
	switch (v->space) {
	case GPUL_PTX_MOD_GLOBAL:
	case GPUL_PTX_MOD_CONST:
		if (!address)
			return gpul_decode_fail(d, GPUL_EFORMAT, "%s is declared extern but not defined", gpul_ptx_name(d->m, v->name));
		out->space = SPACE_GLOBAL;
		out->value = address;
		return true;
	case GPUL_PTX_MOD_SHARED:
		out->space = SPACE_SHARED;
		out->dynamic = v->linkage == GPUL_PTX_EXTERN && !v->bytes;
		out->value = offset;
		return true;
	case GPUL_PTX_MOD_LOCAL:
	case GPUL_PTX_MOD_PARAM:
		out->space = SPACE_LOCAL;
		out->frame = o->ref_kind != GPUL_PTX_REF_MODULE_VAR;
		out->value = offset;
		return true;
	default:
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "%s: separate samplers are not supported by the software driver",
					gpul_ptx_name(d->m, v->name));
	}
}

bool gpul_symbol_place(struct decoder *d, const gpul_ptx_operand *o, struct place *out)
{
	bool kernel = d->f->kind == GPUL_PTX_FUNC_ENTRY;
	const gpul_ptx_func *f;

	*out = (struct place){ 0 };
	switch (o->ref_kind) {
	case GPUL_PTX_REF_MODULE_VAR:
		return var_place(d, o, &d->m->vars[o->index], d->p->variables[o->index].address, d->p->shared_offset[o->index], out);
	case GPUL_PTX_REF_FUNC_VAR:
		return var_place(d, o, &d->f->vars[o->index], d->code->var_address[o->index], d->code->var_offset[o->index], out);
	case GPUL_PTX_REF_PARAM:
	case GPUL_PTX_REF_RET: {
		const struct local_slot *s = o->ref_kind == GPUL_PTX_REF_PARAM ? &d->code->params[o->index] : &d->code->rets[o->index];

		out->space = kernel ? SPACE_PARAM : SPACE_LOCAL;
		out->frame = !kernel;
		out->value = s->offset;
		out->bytes = s->bytes;
		return true;
	}
	case GPUL_PTX_REF_FUNC:
		f = &d->m->funcs[o->index];
		if (f->definition == GPUL_PTX_NONE)
			return gpul_decode_fail(d, GPUL_EFORMAT, "%s is declared but not defined", gpul_ptx_name(d->m, f->name));
		out->space = SPACE_GLOBAL;
		out->value = (uintptr_t)&d->p->code[f->definition];
		return true;
	default:
		return gpul_decode_fail(d, GPUL_EFORMAT, "the symbol is neither a variable nor a function");
	}
}

static bool symbol_source(struct decoder *d, const gpul_ptx_operand *o, unsigned type, opref *out)
{
	struct place at;

	if (!gpul_symbol_place(d, o, &at))
		return false;
	if (at.frame || at.dynamic || !gpul_container_bytes(type))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this address is only supported as the source of mov");
	return gpul_operand_const(d, at.value + (uint64_t)o->value.i, gpul_container_bytes(type), out);
}

/* ---- sources, destinations, lists ------------------------------------------------------------------- */

bool gpul_operand_source(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool narrow_ok, opref *out)
{
	switch (o->kind) {
	case GPUL_PTX_OP_REG:
		return reg_source(d, o, type, narrow_ok, out);
	case GPUL_PTX_OP_SPECIAL:
		return special_source(d, o->index, type, out);
	case GPUL_PTX_OP_INT:
	case GPUL_PTX_OP_F32:
	case GPUL_PTX_OP_F64: {
		uint64_t bits = literal_bits(o, type);

		if (type == GPUL_PTX_MOD_PRED)
			bits = (bits != 0) != o->negated;
		if (gpul_container_bytes(type) > 8)
			return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "128-bit immediates are not supported");
		return gpul_operand_const(d, bits, gpul_container_bytes(type), out);
	}
	case GPUL_PTX_OP_SYMBOL:
		return symbol_source(d, o, type, out);
	case GPUL_PTX_OP_SINK:
		*out = OPREF(BANK_SCRATCH, 0);
		return true;
	default:
		return gpul_decode_fail(d, GPUL_EFORMAT, "an operand is %s", o->kind == OPERAND_MISSING ? "missing" : "of the wrong kind");
	}
}

bool gpul_operand_dest(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool narrow_ok, opref *out)
{
	unsigned have, want = gpul_container_bytes(type);
	opref ref;

	if (o->kind == GPUL_PTX_OP_SINK) {
		*out = OPREF(BANK_SCRATCH, 0);
		return true;
	}
	if (o->kind != GPUL_PTX_OP_REG)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the destination is %s",
					o->kind == OPERAND_MISSING ? "missing" : "not a register");
	if (!gpul_operand_register(d, o, 0, &ref, &have))
		return false;
	if (have == want) {
		*out = ref;
		return true;
	}
	if (!narrow_ok || extend_op(want, have, false) == OP_NOP || d->n_pending == MAX_PENDING)
		return width_error(d, have, want);
	if (!gpul_operand_temporary(d, want, out))
		return false;
	d->pending[d->n_pending++] = (struct pending){ *out, ref, extend_op(want, have, is_signed(type)) };
	return true;
}

bool gpul_operand_emit_pending(struct decoder *d)
{
	for (unsigned k = 0; k < d->n_pending; k++)
		if (!gpul_emit(d, d->pending[k].op, &(struct insn){ .d = d->pending[k].to, .a = d->pending[k].from }))
			return false;
	d->n_pending = 0;
	return true;
}

bool gpul_operand_list(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool dest, opref *out, uint8_t *n)
{
	opref list[MAX_VECTOR];
	uint32_t at;

	const unsigned n_elements = gpul_operand_elements(d->f, o);

	if (!n_elements || n_elements > MAX_VECTOR)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the vector has %u elements; from 1 to %d are supported", n_elements, MAX_VECTOR);
	for (unsigned k = 0; k < n_elements; k++) {
		const gpul_ptx_operand one = gpul_operand_element(d, o, k);
		bool ok = dest ? gpul_operand_dest(d, &one, type, true, &list[k]) : gpul_operand_source(d, &one, type, true, &list[k]);

		if (!ok)
			return false;
	}
	at = gpul_consts_list(&d->p->consts, list, n_elements);
	if (at == UINT32_MAX)
		return gpul_decode_fail(d, GPUL_ENOMEM, "no memory for constants");
	*out = OPREF(BANK_CONSTS, at);
	*n = (uint8_t)n_elements;
	return true;
}

bool gpul_operand_pair(struct decoder *d, const gpul_ptx_operand *o, unsigned type, unsigned type2, bool narrow_ok, opref *out, opref *out2)
{
	*out2 = OPREF(BANK_SCRATCH, 0);
	if (o->kind != GPUL_PTX_OP_PAIR)
		return gpul_operand_dest(d, o, type, narrow_ok, out);
	if (!type2)
		return gpul_decode_fail(d, GPUL_EFORMAT, "two destinations are given, one is expected");
	return gpul_operand_dest(d, child(d, o, 0), type, narrow_ok, out) && gpul_operand_dest(d, child(d, o, 1), type2, false, out2);
}
