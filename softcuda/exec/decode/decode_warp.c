/* decode_warp.c — decodes instructions in which lanes exchange data: shfl vote match redux elect activemask. */
#include "softcuda/exec/decode/decode_internal.h"

static bool expect_operands(struct decoder *d, unsigned n)
{
	return d->in->n_operands == n || gpul_decode_fail(d, GPUL_EFORMAT, "%u operands are expected", n);
}

static bool word_source(struct decoder *d, unsigned k, opref *out)
{
	return gpul_operand_source(d, &d->operand[k], GPUL_PTX_MOD_B32, false, out);
}

bool gpul_decode_shfl(struct decoder *d)
{
	bool sync = has_mod(d, GPUL_PTX_MOD_SYNC);
	struct insn made = { .n = sync, .flags = d->operand[0].kind == GPUL_PTX_OP_PAIR };
	enum op op = has_mod(d, GPUL_PTX_MOD_UP)     ? OP_SHFL_UP
		     : has_mod(d, GPUL_PTX_MOD_DOWN) ? OP_SHFL_DOWN
		     : has_mod(d, GPUL_PTX_MOD_BFLY) ? OP_SHFL_BFLY
						     : OP_SHFL_IDX;

	return expect_operands(d, sync ? 5 : 4) &&
	       gpul_operand_pair(d, &d->operand[0], GPUL_PTX_MOD_B32, GPUL_PTX_MOD_PRED, false, &made.d, &made.d2) &&
	       word_source(d, 1, &made.a) && word_source(d, 2, &made.b) && word_source(d, 3, &made.c) &&
	       (!sync || word_source(d, 4, &made.e)) && gpul_emit(d, op, &made);
}

bool gpul_decode_vote(struct decoder *d)
{
	bool sync = has_mod(d, GPUL_PTX_MOD_SYNC), ballot = has_mod(d, GPUL_PTX_MOD_BALLOT);
	struct insn made = { .n = sync };
	enum op op = ballot                         ? OP_VOTE_BALLOT
		     : has_mod(d, GPUL_PTX_MOD_ALL) ? OP_VOTE_ALL
		     : has_mod(d, GPUL_PTX_MOD_ANY) ? OP_VOTE_ANY
						    : OP_VOTE_UNI;

	return expect_operands(d, sync ? 3 : 2) &&
	       gpul_operand_dest(d, &d->operand[0], ballot ? GPUL_PTX_MOD_B32 : GPUL_PTX_MOD_PRED, false, &made.d) &&
	       gpul_operand_source(d, &d->operand[1], GPUL_PTX_MOD_PRED, false, &made.a) && (!sync || word_source(d, 2, &made.b)) &&
	       gpul_emit(d, op, &made);
}

bool gpul_decode_match(struct decoder *d)
{
	bool wide = has_mod(d, GPUL_PTX_MOD_B64), all = has_mod(d, GPUL_PTX_MOD_ALL);
	struct insn made = { 0 };
	enum op op = all ? (wide ? OP_MATCH_ALL_64 : OP_MATCH_ALL_32) : wide ? OP_MATCH_ANY_64 : OP_MATCH_ANY_32;

	return expect_operands(d, 3) &&
	       gpul_operand_pair(d, &d->operand[0], GPUL_PTX_MOD_B32, all ? GPUL_PTX_MOD_PRED : 0, false, &made.d, &made.d2) &&
	       gpul_operand_source(d, &d->operand[1], wide ? GPUL_PTX_MOD_B64 : GPUL_PTX_MOD_B32, false, &made.a) &&
	       word_source(d, 2, &made.b) && gpul_emit(d, op, &made);
}

bool gpul_decode_redux(struct decoder *d)
{
	static const struct {
		uint16_t mod, type, op;
	} rows[] = {
		{ GPUL_PTX_MOD_ADD, GPUL_PTX_MOD_U32, OP_REDUX_ADD },
		{ GPUL_PTX_MOD_ADD, GPUL_PTX_MOD_S32, OP_REDUX_ADD },
		{ GPUL_PTX_MOD_MIN, GPUL_PTX_MOD_U32, OP_REDUX_MIN_U32 },
		{ GPUL_PTX_MOD_MIN, GPUL_PTX_MOD_S32, OP_REDUX_MIN_S32 },
		{ GPUL_PTX_MOD_MAX, GPUL_PTX_MOD_U32, OP_REDUX_MAX_U32 },
		{ GPUL_PTX_MOD_MAX, GPUL_PTX_MOD_S32, OP_REDUX_MAX_S32 },
		{ GPUL_PTX_MOD_AND, GPUL_PTX_MOD_B32, OP_REDUX_AND },
		{ GPUL_PTX_MOD_OR, GPUL_PTX_MOD_B32, OP_REDUX_OR },
		{ GPUL_PTX_MOD_XOR, GPUL_PTX_MOD_B32, OP_REDUX_XOR },
		{ GPUL_PTX_MOD_MIN, GPUL_PTX_MOD_F32, OP_REDUX_F32 }, /* redux of .f32 exists from sm_100a on */
		{ GPUL_PTX_MOD_MAX, GPUL_PTX_MOD_F32, OP_REDUX_F32 },
	};
	struct insn made = { .e = (has_mod(d, GPUL_PTX_MOD_MAX) ? REDUX_MAX : 0) | (has_mod(d, GPUL_PTX_MOD_ABS) ? REDUX_ABS : 0) |
				  (has_mod(d, GPUL_PTX_MOD_NaN) ? REDUX_NAN : 0) };

	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
		if (has_mod(d, rows[k].mod) && has_mod(d, rows[k].type))
			return expect_operands(d, 3) && gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_B32, false, &made.d) &&
			       word_source(d, 1, &made.a) && word_source(d, 2, &made.b) && gpul_emit(d, rows[k].op, &made);
	return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this reduction is not supported");
}

bool gpul_decode_elect(struct decoder *d)
{
	struct insn made = { 0 };

	return expect_operands(d, 2) &&
	       gpul_operand_pair(d, &d->operand[0], GPUL_PTX_MOD_B32, GPUL_PTX_MOD_PRED, false, &made.d, &made.d2) &&
	       word_source(d, 1, &made.a) && gpul_emit(d, OP_ELECT, &made);
}

bool gpul_decode_activemask(struct decoder *d)
{
	struct insn made = { 0 };

	return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_B32, false, &made.d) && gpul_emit(d, OP_ACTIVEMASK, &made);
}
