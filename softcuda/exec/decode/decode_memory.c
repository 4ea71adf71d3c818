/* decode_memory.c — decodes memory accesses (ld, st, atom, red) and instructions that compute addresses. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/exec/decode/decode_internal.h"

/* ---- address operands --------------------------------------------------------------------------------- */

static int space_of(unsigned mod)
{
	switch (mod) {
	case GPUL_PTX_MOD_GLOBAL:
	case GPUL_PTX_MOD_CONST:
		return SPACE_GLOBAL;
	case GPUL_PTX_MOD_SHARED:
	case GPUL_PTX_MOD_SHARED__CTA:
	case GPUL_PTX_MOD_SHARED__CLUSTER:
		return SPACE_SHARED;
	case GPUL_PTX_MOD_LOCAL:
		return SPACE_LOCAL;
	case GPUL_PTX_MOD_PARAM:
	case GPUL_PTX_MOD_PARAM__ENTRY:
	case GPUL_PTX_MOD_PARAM__FUNC:
		return SPACE_PARAM;
	default:
		return -1;
	}
}

/* Return the address space that the modifiers name; generic if they name none. */
static unsigned space_mod(const gpul_ptx_inst *in)
{
	for (unsigned k = 0; k < in->n_mods; k++)
		if (space_of(in->mods[k]) >= 0)
			return (unsigned)space_of(in->mods[k]);
	return SPACE_GENERIC;
}

static bool symbol_address(struct decoder *d, const gpul_ptx_operand *o, struct insn *i)
{
	struct place at;

	if (!gpul_symbol_place(d, o, &at))
		return false;
	i->flags = (uint8_t)(i->flags & ~SPACE_MASK) | at.space | (at.frame ? FLAG_FRAME : 0);
	i->imm += o->value.i;
	if (at.dynamic) {
		gpul_ptx_operand dynamic = { .kind = GPUL_PTX_OP_SPECIAL, .index = SPECIAL_SHARED_DYNAMIC };

		i->imm += (int64_t)at.value;
		return gpul_operand_source(d, &dynamic, GPUL_PTX_MOD_U64, false, &i->a);
	}
	if (at.space == SPACE_LOCAL || at.space == SPACE_PARAM) {
		i->imm += (int64_t)at.value;
		at.value = 0;
	}
	return gpul_operand_const(d, at.value, 8, &i->a);
}

bool gpul_decode_address(struct decoder *d, const gpul_ptx_operand *o, unsigned space, struct insn *i)
{
	const gpul_ptx_operand *base;
	unsigned bytes;

	if (o->kind != GPUL_PTX_OP_ADDRESS)
		return gpul_decode_fail(d, GPUL_EFORMAT, "an address [...] is expected");
	base = child(d, o, 0);
	i->imm = o->value.i;
	i->flags |= (uint8_t)space;
	if ((i->flags & SPACE_MASK) == SPACE_PARAM && d->f->kind == GPUL_PTX_FUNC_DEVICE && !has_mod(d, GPUL_PTX_MOD_PARAM__ENTRY))
		i->flags = (uint8_t)((i->flags & ~SPACE_MASK) | SPACE_LOCAL);
	switch (base->kind) {
	case GPUL_PTX_OP_REG:
		i->a = gpul_reg_ref(d, base->index, &bytes);
		if (bytes == 4)
			i->flags |= FLAG_ADDRESS_32;
		else if (bytes != 8)
			return gpul_decode_fail(d, GPUL_EFORMAT, "the address register must have 32 or 64 bits");
		return true;
	case GPUL_PTX_OP_INT:
		return gpul_operand_const(d, (uint64_t)base->value.i, 8, &i->a);
	case GPUL_PTX_OP_SYMBOL:
		return symbol_address(d, base, i);
	default:
		return gpul_decode_fail(d, GPUL_EFORMAT, "an address must be a register, a variable or an integer");
	}
}

bool gpul_decode_complete_bytes(struct decoder *d, const gpul_ptx_operand *mbarrier, unsigned bytes)
{
	struct insn made = { .d = OPREF(BANK_SCRATCH, 0), .n = MBAR_COMPLETES };

	return gpul_decode_address(d, mbarrier, SPACE_SHARED, &made) && gpul_operand_const(d, 1, 4, &made.b) &&
	       gpul_operand_const(d, bytes, 4, &made.c) && gpul_emit(d, OP_MBAR_ARRIVE, &made);
}

/* ---- ld and st ---------------------------------------------------------------------------------------- */

/* Return the index in GPUL_LOAD_KINDS of the load with these sizes in bytes; -1: there is no such load. */
static int load_kind(unsigned memory, bool sign, unsigned reg)
{
	int n = 0;

#define X(name, mem_type, reg_type) \
	if (sizeof(mem_type) == memory && sizeof(reg_type) == reg && (memory == reg || sign == (#name[0] == 'S'))) \
		return n; \
	n++;
	GPUL_LOAD_KINDS(X)
#undef X
	return -1;
}

static int store_kind(unsigned memory, unsigned reg)
{
	int n = 0;

#define X(name, mem_type, reg_type) \
	if (sizeof(mem_type) == memory && sizeof(reg_type) == reg) \
		return n; \
	n++;
	GPUL_STORE_KINDS(X)
#undef X
	return -1;
}

bool gpul_is_ordered(const gpul_ptx_inst *in)
{
	return gpul_ptx_has_mod(in, GPUL_PTX_MOD_VOLATILE) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_RELAXED) ||
	       gpul_ptx_has_mod(in, GPUL_PTX_MOD_ACQUIRE) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_RELEASE) ||
	       gpul_ptx_has_mod(in, GPUL_PTX_MOD_MMIO);
}

static bool add_data_element(struct decoder *d, const gpul_ptx_operand *o, unsigned element, unsigned type, struct data *out)
{
	unsigned bytes = gpul_container_bytes(type);
	opref ref = OPREF(BANK_SCRATCH, 0);

	if (o->kind == GPUL_PTX_OP_REG && !o->value.i) {
		if (!gpul_operand_register(d, o, element, &ref, &bytes))
			return false;
	} else if (o->kind != GPUL_PTX_OP_SINK && !gpul_operand_source(d, o, type, true, &ref)) {
		return false;
	}
	out->refs[out->n++] = ref;
	if (bytes == 16) {
		out->refs[out->n++] = ref + 8 * LANES;
		bytes = 8;
	}
	if (!bytes || (o->kind != GPUL_PTX_OP_SINK && out->reg_bytes && out->reg_bytes != bytes))
		return gpul_decode_fail(d, GPUL_EFORMAT, "the registers of the vector have different widths");
	if (o->kind != GPUL_PTX_OP_SINK || !out->reg_bytes)
		out->reg_bytes = bytes;
	return true;
}

bool gpul_read_data(struct decoder *d, const gpul_ptx_operand *o, unsigned type, struct data *out)
{
	unsigned n = gpul_vector_mod(d->in);
	bool list = o->kind == GPUL_PTX_OP_VECTOR;

	*out = (struct data){ .memory_bytes = gpul_ptx_type_bytes(type) };
	if (!out->memory_bytes)
		return gpul_decode_fail(d, GPUL_EFORMAT, "this type cannot be loaded or stored");
	if (out->memory_bytes == 16)
		out->memory_bytes = 8;
	if (list ? o->n_children != n : n > 1 && o->kind != GPUL_PTX_OP_REG)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a vector of %u elements is expected", n);
	for (unsigned k = 0; k < n; k++) /* without a list, o is a vector register and k selects its element */
		if (!add_data_element(d, list ? child(d, o, k) : o, list ? 0 : k, type, out))
			return false;
	return true;
}

/* Set *ref to the register, with *n = 0, or, if there are several, to a list of *n registers. */
static bool set_data(struct decoder *d, const struct data *data, opref *ref, uint8_t *n)
{
	uint32_t at;

	*ref = data->refs[0];
	*n = 0;
	if (data->n == 1)
		return true;
	if (data->n * data->memory_bytes > 32)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the vector has more than 32 bytes");
	at = gpul_consts_list(&d->p->consts, data->refs, data->n);
	if (at == UINT32_MAX)
		return gpul_decode_fail(d, GPUL_ENOMEM, "no memory for constants");
	*ref = OPREF(BANK_CONSTS, at);
	*n = (uint8_t)data->n;
	return true;
}

bool gpul_decode_ld(struct decoder *d)
{
	unsigned type = gpul_type_mod(d->in);
	struct insn made = { 0 };
	struct data data;
	enum op op;
	int kind;

	if (!gpul_read_data(d, &d->operand[0], type, &data) || !gpul_decode_address(d, &d->operand[1], space_mod(d->in), &made) ||
	    !set_data(d, &data, &made.d, &made.n))
		return false;
	kind = load_kind(data.memory_bytes, type == GPUL_PTX_MOD_S8 || type == GPUL_PTX_MOD_S16 || type == GPUL_PTX_MOD_S32,
			 data.reg_bytes);
	if (kind < 0)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a %u-bit register is too narrow for this type", 8 * data.reg_bytes);
	made.e = (opref)kind;
	if (has_mod(d, GPUL_PTX_MOD_ACQUIRE))
		made.flags |= FLAG_ACQUIRE;
	op = gpul_is_ordered(d->in) ? OP_LDO : made.n ? OP_LDV : (enum op)(OP_LD_U8_16 + kind);
	if ((made.flags & SPACE_MASK) == SPACE_PARAM && child(d, &d->operand[1], 0)->kind == GPUL_PTX_OP_SYMBOL) {
		uint64_t end = (uint64_t)made.imm + data.n * data.memory_bytes;

		if (made.imm < 0 || end > d->code->param_bytes)
			return gpul_decode_fail(d, GPUL_EFORMAT, "the address is beyond the kernel's %u bytes of parameters",
						d->code->param_bytes);
		if (made.imm % (data.n * data.memory_bytes) == 0)
			op = OP_LD_PARAM; /* if the address is misaligned, the general load is used, because it reports the fault */
	}
	return gpul_emit(d, op, &made);
}

bool gpul_decode_st(struct decoder *d)
{
	unsigned type = gpul_type_mod(d->in);
	struct insn made = { 0 };
	struct data data;
	int kind;

	if (has_mod(d, GPUL_PTX_MOD_BULK))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "bulk stores are not supported by the software driver");
	if (!gpul_read_data(d, &d->operand[1], type, &data) || !gpul_decode_address(d, &d->operand[0], space_mod(d->in), &made) ||
	    !set_data(d, &data, &made.b, &made.n))
		return false;
	kind = store_kind(data.memory_bytes, data.reg_bytes);
	if (kind < 0)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a %u-bit register is too narrow for this type", 8 * data.reg_bytes);
	made.e = (opref)kind;
	if (has_mod(d, GPUL_PTX_MOD_RELEASE))
		made.flags |= FLAG_RELEASE;
	return gpul_emit(d,
			 gpul_is_ordered(d->in) ? OP_STO
			 : made.n               ? OP_STV
						: (enum op)(OP_ST_8_16 + kind),
			 &made) &&
	       (!has_mod(d, GPUL_PTX_MOD_ASYNC) || gpul_decode_complete_bytes(d, &d->operand[2], data.n * data.memory_bytes));
}

/* ---- atom and red --------------------------------------------------------------------------------------- */

static const struct {
	uint16_t mod, type, op;
} atomics[] = {
#define M(x) GPUL_PTX_MOD_##x
	{ M(ADD), M(U32), OP_ATOM_ADD_32 },        { M(ADD), M(S32), OP_ATOM_ADD_32 },        { M(ADD), M(U64), OP_ATOM_ADD_64 },
	{ M(ADD), M(S64), OP_ATOM_ADD_64 },        { M(ADD), M(F32), OP_ATOM_ADD_F32 },       { M(ADD), M(F64), OP_ATOM_ADD_F64 },
	{ M(ADD), M(F16), OP_ATOM_ADD_F16 },       { M(ADD), M(BF16), OP_ATOM_ADD_BF16 },     { M(ADD), M(F16X2), OP_ATOM_ADD_F16X2 },
	{ M(ADD), M(BF16X2), OP_ATOM_ADD_BF16X2 }, { M(MIN), M(U32), OP_ATOM_MIN_U32 },       { M(MIN), M(S32), OP_ATOM_MIN_S32 },
	{ M(MIN), M(U64), OP_ATOM_MIN_U64 },       { M(MIN), M(S64), OP_ATOM_MIN_S64 },       { M(MIN), M(F16), OP_ATOM_MIN_F16 },
	{ M(MIN), M(F16X2), OP_ATOM_MIN_F16X2 },   { M(MIN), M(BF16), OP_ATOM_MIN_BF16 },     { M(MIN), M(BF16X2), OP_ATOM_MIN_BF16X2 },
	{ M(MAX), M(U32), OP_ATOM_MAX_U32 },       { M(MAX), M(S32), OP_ATOM_MAX_S32 },       { M(MAX), M(U64), OP_ATOM_MAX_U64 },
	{ M(MAX), M(S64), OP_ATOM_MAX_S64 },       { M(MAX), M(F16), OP_ATOM_MAX_F16 },       { M(MAX), M(F16X2), OP_ATOM_MAX_F16X2 },
	{ M(MAX), M(BF16), OP_ATOM_MAX_BF16 },     { M(MAX), M(BF16X2), OP_ATOM_MAX_BF16X2 }, { M(AND), M(B32), OP_ATOM_AND_32 },
	{ M(AND), M(B64), OP_ATOM_AND_64 },        { M(OR), M(B32), OP_ATOM_OR_32 },          { M(OR), M(B64), OP_ATOM_OR_64 },
	{ M(XOR), M(B32), OP_ATOM_XOR_32 },        { M(XOR), M(B64), OP_ATOM_XOR_64 },        { M(EXCH), M(B32), OP_ATOM_EXCH_32 },
	{ M(EXCH), M(B64), OP_ATOM_EXCH_64 },      { M(EXCH), M(B128), OP_ATOM_EXCH_128 },    { M(CAS), M(B16), OP_ATOM_CAS_16 },
	{ M(CAS), M(B32), OP_ATOM_CAS_32 },        { M(CAS), M(B64), OP_ATOM_CAS_64 },        { M(CAS), M(B128), OP_ATOM_CAS_128 },
	{ M(INC), M(U32), OP_ATOM_INC_U32 },       { M(DEC), M(U32), OP_ATOM_DEC_U32 },
#undef M
};

static int find_atomic(const gpul_ptx_inst *in, unsigned type)
{
	for (size_t k = 0; k < sizeof atomics / sizeof atomics[0]; k++)
		if (atomics[k].type == type && gpul_ptx_has_mod(in, atomics[k].mod))
			return (int)k;
	return -1;
}

int gpul_atomic_op(const gpul_ptx_inst *in, unsigned type)
{
	const int k = find_atomic(in, type);

	return k < 0 ? -1 : atomics[k].op;
}

static bool decode_atomic(struct decoder *d)
{
	unsigned type = gpul_type_mod(d->in), first = d->in->opcode == GPUL_PTX_ATOM;
	int k = find_atomic(d->in, type);
	bool cas = k >= 0 && atomics[k].mod == GPUL_PTX_MOD_CAS;
	struct insn made = { .d = OPREF(BANK_SCRATCH, 0), .c = OPREF(BANK_SCRATCH, 0) };

	if (k < 0)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this atomic operation is not supported");
	if (d->in->n_operands < first + 2 + cas)
		return gpul_decode_fail(d, GPUL_EFORMAT, "operands are missing");
	if (!gpul_decode_address(d, &d->operand[first], space_mod(d->in), &made))
		return false;
	if (gpul_vector_mod(d->in) > 1) {
		uint8_t n;

		if (atomics[k].op < OP_ATOM_ADD_F32 || atomics[k].op > OP_ATOM_MAX_BF16X2)
			return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this atomic operation is not supported on vectors");
		if ((first && !gpul_operand_list(d, &d->operand[0], type, true, &made.d, &n)) ||
		    !gpul_operand_list(d, &d->operand[first + 1], type, false, &made.b, &made.n))
			return false;
		if (!first) {
			opref scratch[MAX_VECTOR];

			for (unsigned e = 0; e < MAX_VECTOR; e++)
				scratch[e] = OPREF(BANK_SCRATCH, 0);
			made.d = OPREF(BANK_CONSTS, gpul_consts_list(&d->p->consts, scratch, MAX_VECTOR));
		}
		return gpul_emit(d, atomics[k].op, &made);
	}
	if ((first && !gpul_operand_dest(d, &d->operand[0], type, false, &made.d)) ||
	    !gpul_operand_source(d, &d->operand[first + 1], type, false, &made.b) ||
	    (cas && !gpul_operand_source(d, &d->operand[first + 2], type, false, &made.c)))
		return false;
	return gpul_emit(d, atomics[k].op, &made);
}

/* Decode atom or red.  red.async [a], b, [mbarrier] completes when it is executed, like st.async and asynchronous copies. */
bool gpul_decode_atomic(struct decoder *d)
{
	return decode_atomic(d) && (!has_mod(d, GPUL_PTX_MOD_ASYNC) ||
				    gpul_decode_complete_bytes(d, &d->operand[2], gpul_ptx_type_bytes(gpul_type_mod(d->in))));
}

/* ---- mov of an address, cvta, isspacep ------------------------------------------------------------------ */

/* Emit code that stores the address of a variable in register `to` of `bytes` bytes. */
static bool emit_symbol_address(struct decoder *d, const gpul_ptx_operand *o, opref to, unsigned bytes)
{
	struct insn made = { .d = to };
	struct place at;
	gpul_ptx_operand dynamic = { .kind = GPUL_PTX_OP_SPECIAL, .index = SPECIAL_SHARED_DYNAMIC };

	if (!gpul_symbol_place(d, o, &at))
		return false;
	made.imm = (int64_t)at.value + o->value.i;
	if (at.frame)
		return gpul_emit(d, bytes == 8 ? OP_LOCAL_ADDR_64 : OP_LOCAL_ADDR_32, &made);
	if (at.dynamic) {
		if (!gpul_operand_source(d, &dynamic, bytes == 8 ? GPUL_PTX_MOD_U64 : GPUL_PTX_MOD_U32, false, &made.a))
			return false;
	} else if (!gpul_operand_const(d, 0, bytes, &made.a)) {
		return false;
	}
	return gpul_emit(d, bytes == 8 ? OP_ADDR_64 : OP_ADDR_32, &made);
}

bool gpul_decode_mov_symbol(struct decoder *d)
{
	unsigned type = gpul_type_mod(d->in), bytes = gpul_container_bytes(type);
	opref to;

	if (bytes != 4 && bytes != 8)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the address register must have 32 or 64 bits");
	return gpul_operand_dest(d, &d->operand[0], type, false, &to) && emit_symbol_address(d, &d->operand[1], to, bytes);
}

bool gpul_decode_cvta(struct decoder *d)
{
	unsigned type = gpul_type_mod(d->in), space = space_mod(d->in);
	struct insn made = { .flags = (uint8_t)space };

	if (gpul_container_bytes(type) != 8)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "only 64-bit addresses are interpreted");
	if (!gpul_operand_dest(d, &d->operand[0], type, false, &made.d))
		return false;
	if (d->operand[1].kind == GPUL_PTX_OP_SYMBOL) {
		if (!emit_symbol_address(d, &d->operand[1], made.d, 8))
			return false;
		made.a = made.d;
	} else if (!gpul_operand_source(d, &d->operand[1], type, false, &made.a)) {
		return false;
	}
	if (space == SPACE_GLOBAL)
		return gpul_emit(d, OP_ADDR_64, &made);
	if (space == SPACE_PARAM && d->f->kind == GPUL_PTX_FUNC_DEVICE && !has_mod(d, GPUL_PTX_MOD_PARAM__ENTRY))
		made.flags = SPACE_LOCAL;
	return gpul_emit(d, has_mod(d, GPUL_PTX_MOD_TO) ? OP_FROM_GENERIC : OP_TO_GENERIC, &made);
}

/* Return the address ranges of the program's .const variables, which the interpreter keeps in global memory; NULL: out of memory. */
static const struct address_ranges *const_ranges(struct decoder *d)
{
	struct address_ranges *r;

	if (d->p->const_ranges)
		return d->p->const_ranges;
	r = gpul_program_alloc(d->p, sizeof *r + d->m->n_vars * sizeof r->at[0], d->err);
	for (uint32_t k = 0; r && k < d->m->n_vars; k++) {
		const struct variable *v = &d->p->variables[k];

		if (d->m->vars[k].space != GPUL_PTX_MOD_CONST || !v->address)
			continue;
		r->at[r->n].begin = v->address;
		r->at[r->n++].end = v->address + v->bytes;
	}
	d->p->const_ranges = r;
	return r;
}

bool gpul_decode_isspacep(struct decoder *d)
{
	struct insn made = { .flags = (uint8_t)space_mod(d->in), .n = has_mod(d, GPUL_PTX_MOD_SHARED__CLUSTER) };
	const bool constant = has_mod(d, GPUL_PTX_MOD_CONST);

	if (constant) {
		made.object = const_ranges(d);
		if (!made.object)
			return false;
	}
	return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_PRED, false, &made.d) &&
	       gpul_operand_source(d, &d->operand[1], GPUL_PTX_MOD_U64, false, &made.a) &&
	       gpul_emit(d, constant ? OP_ISSPACEP_CONST : OP_ISSPACEP, &made);
}
