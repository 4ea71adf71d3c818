/* decode_async.c — decodes cp.async, cp.async.bulk, mbarrier, clusterlaunchcontrol, and mapa and getctarank, which compute
 * addresses and ranks in a cluster. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/exec/decode/decode_internal.h"

static bool is_shared(unsigned mod)
{
	return mod == GPUL_PTX_MOD_SHARED || mod == GPUL_PTX_MOD_SHARED__CTA || mod == GPUL_PTX_MOD_SHARED__CLUSTER;
}

/* ---- cp.async ------------------------------------------------------------------------------ */

static struct async_copy *new_copy(struct decoder *d, unsigned to_space, unsigned from_space)
{
	struct async_copy *c = gpul_program_alloc(d->p, sizeof *c, d->err);

	if (!c)
		return NULL;
	c->to.src = c->from.src = c->barrier.src = d->src;
	if (!gpul_decode_address(d, &d->operand[0], to_space, &c->to) || !gpul_decode_address(d, &d->operand[1], from_space, &c->from))
		return NULL;
	return c;
}

static bool is_predicate(struct decoder *d, const gpul_ptx_operand *o)
{
	unsigned bytes = 4;

	if (o->kind == GPUL_PTX_OP_REG)
		gpul_reg_ref(d, o->index, &bytes);
	return !bytes;
}

/* Decode cp.async.ca.shared.global [to], [from], bytes{, source bytes or predicate}{, cache policy}. */
static bool decode_copy(struct decoder *d)
{
	const gpul_ptx_operand *size = &d->operand[2], *less = &d->operand[3];
	bool policy = has_mod(d, GPUL_PTX_MOD_L2__CACHE_HINT);
	struct async_copy *c;

	if (d->in->n_operands < 3u + policy || size->kind != GPUL_PTX_OP_INT ||
	    (size->value.i != 4 && size->value.i != 8 && size->value.i != 16))
		return gpul_decode_fail(d, GPUL_EFORMAT, "the size must be 4, 8 or 16 bytes");
	c = new_copy(d, SPACE_SHARED, SPACE_GLOBAL);
	if (!c)
		return false;
	if (d->in->n_operands > 3u + policy) {
		c->ignores = is_predicate(d, less);
		c->has_source_bytes = !c->ignores;
		if (!gpul_operand_source(d, less, c->ignores ? GPUL_PTX_MOD_PRED : GPUL_PTX_MOD_U32, false, &c->source_bytes))
			return false;
	}
	return gpul_emit(d, OP_CP_ASYNC, &(struct insn){ .object = c, .n = (uint8_t)size->value.i });
}

/* Decode cp.async.bulk.TO.FROM...  [to], [from], bytes{, [mbarrier]}{, blocks of the cluster}{, cache policy}. */
static bool decode_bulk(struct decoder *d)
{
	bool barrier = has_mod(d, GPUL_PTX_MOD_MBARRIER__COMPLETE_TX__BYTES);
	bool to_global = d->in->n_mods > 2 && d->in->mods[2] == GPUL_PTX_MOD_GLOBAL;
	bool from_global = d->in->n_mods > 3 && d->in->mods[3] == GPUL_PTX_MOD_GLOBAL;
	const bool multicast = has_mod(d, GPUL_PTX_MOD_MULTICAST__CLUSTER);
	struct async_copy *c;

	if (d->in->n_operands < 3u + barrier + multicast || (multicast && !barrier) || (!barrier && !has_mod(d, GPUL_PTX_MOD_BULK_GROUP)))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this bulk copy is not supported by the software driver");
	c = new_copy(d, to_global ? SPACE_GLOBAL : SPACE_SHARED, from_global ? SPACE_GLOBAL : SPACE_SHARED);
	if (!c || !gpul_operand_source(d, &d->operand[2], GPUL_PTX_MOD_U32, false, &c->source_bytes))
		return false;
	c->has_barrier = barrier;
	c->barrier.n = MBAR_COMPLETES;
	if (barrier && !gpul_decode_address(d, &d->operand[3], SPACE_SHARED, &c->barrier))
		return false;
	if (multicast && !gpul_operand_source(d, &d->operand[4], GPUL_PTX_MOD_U16, true, &c->ranks))
		return false;
	return gpul_emit(d, multicast ? OP_CP_MULTICAST : OP_CP_BULK, &(struct insn){ .object = c });
}

/* Decode cp.reduce.async.bulk.TO.FROM...  [to], [from], bytes{, [mbarrier]}{, cache policy}. */
static bool decode_reduce(struct decoder *d)
{
	const unsigned type = gpul_type_mod(d->in), to_mod = d->in->n_mods > 3 ? d->in->mods[3] : 0;
	const bool barrier = has_mod(d, GPUL_PTX_MOD_MBARRIER__COMPLETE_TX__BYTES);
	const int op = gpul_atomic_op(d->in, type);
	struct async_copy *c;

	if (op < 0 || d->in->n_operands < 3u + barrier || (!barrier && !has_mod(d, GPUL_PTX_MOD_BULK_GROUP)))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this reducing copy is not supported by the software driver");
	c = new_copy(d, to_mod == GPUL_PTX_MOD_GLOBAL ? SPACE_GLOBAL : SPACE_SHARED, SPACE_SHARED);
	if (!c || !gpul_operand_source(d, &d->operand[2], GPUL_PTX_MOD_U32, false, &c->source_bytes))
		return false;
	c->has_barrier = barrier;
	c->barrier.n = MBAR_COMPLETES;
	if (barrier && !gpul_decode_address(d, &d->operand[3], SPACE_SHARED, &c->barrier))
		return false;
	c->element_bytes = (uint8_t)gpul_ptx_type_bytes(type);
	c->step = c->to;
	c->step.op = (uint16_t)op;
	c->step.run = gpul_handler((enum op)op);
	c->step.d = c->step.c = OPREF(BANK_SCRATCH, 0);
	c->step.b = OPREF(BANK_SCRATCH, REDUCE_VALUE_AT);
	return gpul_emit(d, OP_CP_REDUCE, &(struct insn){ .object = c });
}

/* Decode cp.async.mbarrier.arrive [m].  Copies complete when they are executed, so .noinc arrives immediately. Without .noinc,
 * the increment of the pending count and the arrival cancel out; the address is decoded only because tools (observers) read it. */
static bool decode_copy_arrive(struct decoder *d)
{
	struct insn made = { .n = MBAR_ARRIVES, .d = OPREF(BANK_SCRATCH, 0) };

	if (!gpul_decode_address(d, &d->operand[0], is_shared(d->in->mods[d->in->n_mods - 2]) ? SPACE_SHARED : SPACE_GENERIC, &made) ||
	    !gpul_operand_const(d, 1, 4, &made.b))
		return false;
	made.c = made.b;
	return gpul_emit(d, has_mod(d, GPUL_PTX_MOD_NOINC) ? OP_MBAR_ARRIVE : OP_NOP, &made);
}

bool gpul_decode_cp(struct decoder *d)
{
	if (!has_mod(d, GPUL_PTX_MOD_ASYNC))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this copy is not supported by the software driver");
	if (has_mod(d, GPUL_PTX_MOD_TENSOR))
		return has_mod(d, GPUL_PTX_MOD_PREFETCH) ? gpul_emit(d, OP_NOP, NULL) : gpul_decode_tensor_copy(d);
	if (has_mod(d, GPUL_PTX_MOD_REDUCE))
		return decode_reduce(d);
	if (has_mod(d, GPUL_PTX_MOD_COMMIT_GROUP) || has_mod(d, GPUL_PTX_MOD_WAIT_GROUP) || has_mod(d, GPUL_PTX_MOD_WAIT_ALL))
		return gpul_emit(d, OP_NOP, NULL);
	if (has_mod(d, GPUL_PTX_MOD_MBARRIER))
		return decode_copy_arrive(d);
	if (has_mod(d, GPUL_PTX_MOD_PREFETCH))
		return gpul_emit(d, OP_PREFETCH, NULL);
	return has_mod(d, GPUL_PTX_MOD_BULK) ? decode_bulk(d) : decode_copy(d);
}

/* ---- mbarrier ------------------------------------------------------------------------------ */

static unsigned mbarrier_space(const struct decoder *d)
{
	for (unsigned k = 0; k < d->in->n_mods; k++)
		if (is_shared(d->in->mods[k]))
			return SPACE_SHARED;
	return SPACE_GENERIC;
}

/* Decode the operands {state,} [m] {, count or bytes} of arrive, arrive_drop, expect_tx, complete_tx.  With bytes, it arrives once. */
static bool decode_arrive(struct decoder *d)
{
	bool bytes = has_mod(d, GPUL_PTX_MOD_EXPECT_TX) || has_mod(d, GPUL_PTX_MOD_COMPLETE_TX);
	struct insn made = { .d = OPREF(BANK_SCRATCH, 0) };
	unsigned k = 0, n = d->in->n_operands;

	made.n = (has_mod(d, GPUL_PTX_MOD_ARRIVE) || has_mod(d, GPUL_PTX_MOD_ARRIVE_DROP) ? MBAR_ARRIVES : 0) |
		 (has_mod(d, GPUL_PTX_MOD_EXPECT_TX) ? MBAR_EXPECTS : 0) | (has_mod(d, GPUL_PTX_MOD_COMPLETE_TX) ? MBAR_COMPLETES : 0) |
		 (has_mod(d, GPUL_PTX_MOD_ARRIVE_DROP) ? MBAR_DROPS : 0);
	if (made.n & MBAR_ARRIVES && !gpul_operand_dest(d, &d->operand[k++], GPUL_PTX_MOD_B64, false, &made.d))
		return false;
	if (k >= n || !gpul_decode_address(d, &d->operand[k++], mbarrier_space(d), &made) || !gpul_operand_const(d, 1, 4, &made.b))
		return false;
	made.c = made.b;
	if (bytes && k >= n)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the number of bytes is missing");
	if (k < n && !gpul_operand_source(d, &d->operand[k], GPUL_PTX_MOD_U32, false, bytes ? &made.c : &made.b))
		return false;
	return gpul_emit(d, OP_MBAR_ARRIVE, &made);
}

/* Decode the operands of test_wait and try_wait: done, [m], state or parity{, time limit}. */
static bool decode_test(struct decoder *d)
{
	bool parity = has_mod(d, GPUL_PTX_MOD_PARITY);
	struct insn made = { 0 };

	made.n = (parity ? MBAR_PARITY : 0) | (has_mod(d, GPUL_PTX_MOD_TRY_WAIT) ? MBAR_YIELDS : 0);
	return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_PRED, false, &made.d) &&
	       gpul_decode_address(d, &d->operand[1], mbarrier_space(d), &made) &&
	       gpul_operand_source(d, &d->operand[2], parity ? GPUL_PTX_MOD_U32 : GPUL_PTX_MOD_B64, false, &made.b) &&
	       gpul_emit(d, OP_MBAR_TEST, &made);
}

bool gpul_decode_mbarrier(struct decoder *d)
{
	struct insn made = { 0 };
	unsigned verb = d->in->n_mods ? d->in->mods[0] : 0;

	switch (verb) {
	case GPUL_PTX_MOD_INIT:
		return gpul_decode_address(d, &d->operand[0], mbarrier_space(d), &made) &&
		       gpul_operand_source(d, &d->operand[1], GPUL_PTX_MOD_U32, false, &made.b) && gpul_emit(d, OP_MBAR_INIT, &made);
	case GPUL_PTX_MOD_INVAL: /* inval has no effect; tools read its address */
		return gpul_decode_address(d, &d->operand[0], mbarrier_space(d), &made) && gpul_emit(d, OP_NOP, &made);
	case GPUL_PTX_MOD_ARRIVE:
	case GPUL_PTX_MOD_ARRIVE_DROP:
	case GPUL_PTX_MOD_EXPECT_TX:
	case GPUL_PTX_MOD_COMPLETE_TX:
		return decode_arrive(d);
	case GPUL_PTX_MOD_TEST_WAIT:
	case GPUL_PTX_MOD_TRY_WAIT:
		return d->in->n_operands >= 3 ? decode_test(d) : gpul_decode_fail(d, GPUL_EFORMAT, "operands are missing");
	case GPUL_PTX_MOD_PENDING_COUNT:
		return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_B32, false, &made.d) &&
		       gpul_operand_source(d, &d->operand[1], GPUL_PTX_MOD_B64, false, &made.a) && gpul_emit(d, OP_MBAR_PENDING, &made);
	default:
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this mbarrier operation is not supported");
	}
}

/* ---- clusterlaunchcontrol ------------------------------------------------------------------ */

enum { RESPONSE_BYTES = 16 };

/* Decode try_cancel [response], [mbarrier]: the request to cancel a block always fails, as PTX allows, so every block runs. */
static bool decode_try_cancel(struct decoder *d)
{
	for (unsigned at = 0; at < RESPONSE_BYTES; at += 8) {
		struct insn made = { 0 };

		if (!gpul_decode_address(d, &d->operand[0], SPACE_SHARED, &made) || !gpul_operand_const(d, 0, 8, &made.b))
			return false;
		made.imm += at;
		if (!gpul_emit(d, OP_ST_64_64, &made))
			return false;
	}
	return gpul_decode_complete_bytes(d, &d->operand[1], RESPONSE_BYTES);
}

/* Decode query_cancel: is_canceled gives false; get_first_ctaid, which PTX leaves undefined after a failed try_cancel, gives 0. */
bool gpul_decode_launch_control(struct decoder *d)
{
	const gpul_ptx_operand *o = &d->operand[0];
	const unsigned type = has_mod(d, GPUL_PTX_MOD_IS_CANCELED) ? GPUL_PTX_MOD_PRED : GPUL_PTX_MOD_B32;

	if (has_mod(d, GPUL_PTX_MOD_TRY_CANCEL))
		return decode_try_cancel(d);
	for (unsigned k = 0; k < gpul_operand_elements(d->f, o); k++) {
		const gpul_ptx_operand one = gpul_operand_is_list(d->f, o) ? gpul_operand_element(d, o, k) : *o;
		struct insn made = { 0 };

		if (!gpul_operand_dest(d, &one, type, false, &made.d) || !gpul_operand_const(d, 0, gpul_container_bytes(type), &made.a) ||
		    !gpul_emit(d, type == GPUL_PTX_MOD_PRED ? OP_MOV_PRED : OP_MOV_32, &made))
			return false;
	}
	return true;
}

/* ---- clusters ---------------------------------------------------------------------------------- */

static bool is_generic(const struct decoder *d)
{
	return !has_mod(d, GPUL_PTX_MOD_SHARED__CLUSTER) && !has_mod(d, GPUL_PTX_MOD_SHARED);
}

/* Decode mapa d, a, rank.  If a is a variable instead of a register, its address is first stored in d. */
bool gpul_decode_mapa(struct decoder *d)
{
	const unsigned type = gpul_type_mod(d->in), bytes = gpul_container_bytes(type);
	struct insn made = { .n = is_generic(d) }, copy = { 0 };

	if (!gpul_operand_dest(d, &d->operand[0], type, false, &made.d) ||
	    !gpul_operand_source(d, &d->operand[2], GPUL_PTX_MOD_U32, false, &made.b))
		return false;
	if (d->operand[1].kind == GPUL_PTX_OP_SYMBOL) {
		copy.a = made.b;
		if (!gpul_operand_temporary(d, 4, &copy.d) || !gpul_emit(d, OP_MOV_32, &copy) || !gpul_decode_mov_symbol(d))
			return false;
		made.a = made.d;
		made.b = copy.d;
	} else if (!gpul_operand_source(d, &d->operand[1], type, false, &made.a)) {
		return false;
	}
	return gpul_emit(d, bytes == 8 ? OP_MAPA_64 : OP_MAPA_32, &made);
}

bool gpul_decode_getctarank(struct decoder *d)
{
	struct insn made = { .n = is_generic(d) };
	unsigned bytes = 4;

	if (d->operand[1].kind == GPUL_PTX_OP_REG)
		gpul_reg_ref(d, d->operand[1].index, &bytes);
	return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_U32, false, &made.d) &&
	       gpul_operand_source(d, &d->operand[1], bytes == 8 ? GPUL_PTX_MOD_U64 : GPUL_PTX_MOD_U32, false, &made.a) &&
	       gpul_emit(d, bytes == 8 ? OP_CTARANK_64 : OP_CTARANK_32, &made);
}
