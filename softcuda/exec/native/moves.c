/* moves.c — generates the code of moves, conversions between widths, comparisons, and logical operations on predicates. */
#include "softcuda/exec/native/rules_internal.h"

static const struct vector_op move = PS(0x28), add_d = D0F(0xfe), add_q = PD(0xd4), or_q = PD(0xeb), shift_q = PD(0x73),
			      zero_extend = D38(0x35), low_words = CUT(0x35), blend_w = Q38(0x66), signs_of_bytes = F3_38(0x29),
			      bytes_of_signs = F3_38(0x28), blend_d = D38(0x64), blend_q = Q38(0x64);
enum {
	RIGHT_BY = 2,
	LEFT_BY = 6,        /* value of ModRM.reg in shift_q (a shift by a constant): the direction of the shift */
	TAKE_MARKED = 0xd8, /* truth table of vpternlogd: a bit of the second operand where the third has a 1, else of the first */
};

/* ---- moves --------------------------------------------------------------------------------------- */

void gpul_native_widen(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes / 2u);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_native_vector(c, r->op, d.part[k], 0, gpul_native_half(c, a, k, TEMP));
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_narrow(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, 2u * r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_native_narrow_pair(c, r->op, d.part[k], a[2 * k], a[2 * k + 1]);
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_copy(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_native_vector(c, move, d.part[k], 0, a[k]);
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_choose(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes), *b = gpul_values_source(c, i->b, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);
	const unsigned lanes = (unsigned)LANES / d.n_parts;

	gpul_native_load_predicate(c, i->c);
	gpul_code_mask_from(&c->code, K_TEMP, R9);
	for (unsigned k = 0; k < d.n_parts; k++) {
		if (k)
			gpul_code_mask_shift(&c->code, K_TEMP2, K_TEMP, k * lanes);
		gpul_code_vector(&c->code,
				 r->bytes == 8   ? blend_q
				 : r->bytes == 4 ? blend_d
						 : blend_w,
				 d.part[k], b[k], a[k], k ? K_TEMP2 : K_TEMP);
	}
	gpul_native_finish(c, r, i->d, &d);
}

static const opref *list_of(const struct run_compiler *c, opref ref)
{
	return (const opref *)(const void *)(c->program->consts.bytes + (ref & ~3u));
}

/* Compile mov.b64 d, {low, high}. */
void gpul_native_pack(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const opref *list = list_of(c, i->a);
	const uint8_t *low = gpul_values_source(c, list[0], 4), *high = gpul_values_source(c, list[1], 4);
	struct value d = gpul_values_result(c, 8);

	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, zero_extend, TEMP, 0, gpul_native_half(c, high, k, TEMP));
		gpul_native_vector_imm(c, shift_q, LEFT_BY, TEMP, TEMP, 32);
		gpul_native_vector(c, zero_extend, d.part[k], 0, gpul_native_half(c, low, k, TEMP + 1));
		gpul_native_vector(c, or_q, d.part[k], d.part[k], TEMP);
	}
	gpul_native_finish(c, r, i->d, &d);
}

/* Compile mov.b64 {low, high}, a. */
void gpul_native_unpack(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const opref *list = list_of(c, i->d);
	const uint8_t *a = gpul_values_source(c, i->a, 8);
	struct value low = gpul_values_result(c, 4), high = gpul_values_result(c, 4);

	for (unsigned k = 0; k < 2; k++) {
		gpul_native_narrow_pair(c, low_words, low.part[k], a[2 * k], a[2 * k + 1]);
		gpul_native_vector_imm(c, shift_q, RIGHT_BY, TEMP + 2, a[2 * k], 32);
		gpul_native_vector_imm(c, shift_q, RIGHT_BY, TEMP + 3, a[2 * k + 1], 32);
		gpul_native_narrow_pair(c, low_words, high.part[k], TEMP + 2, TEMP + 3);
	}
	gpul_native_finish(c, r, list[0], &low);
	gpul_native_finish(c, r, list[1], &high);
}

/* prmt: return which bytes of one source the four nibbles of the selector pick, as an operand of vpshufb; 0x80 gives a zero byte.
 * second: the source is b, whose bytes the selector numbers 4 to 7. */
static uint32_t bytes_of(uint32_t selector, bool second)
{
	uint32_t bytes = 0;

	for (unsigned k = 0; k < 4; k++) {
		const unsigned n = selector >> 4 * k & 7;

		bytes |= (n / 4 == second ? n % 4 : 0x80u) << 8 * k;
	}
	return bytes;
}

/* prmt: return 0xff in each byte for which the selector's nibble asks for the replicated sign of a byte instead of the byte. */
static uint32_t sign_bytes(uint32_t selector)
{
	uint32_t bytes = 0;

	for (unsigned k = 0; k < 4; k++)
		bytes |= (selector >> 4 * k & 8 ? 0xffu : 0) << 8 * k;
	return bytes;
}

/* Emit code that sets d to the control operand of a vpshufb that permutes the bytes of each 32-bit word as `bytes` says. */
static void set_shuffle(struct run_compiler *c, unsigned d, uint32_t bytes)
{
#define WORDS 0, 0x04040404, 0x08080808, 0x0c0c0c0c
	_Alignas(64) static const uint32_t word_offsets[16] = { WORDS, WORDS, WORDS, WORDS };

	gpul_native_set_all(c, d, bytes, false);
	gpul_code_set64(&c->code, R9, (uintptr_t)word_offsets);
	gpul_code_vector_memory(&c->code, add_d, d, d, R9, 0, NO_MASK);
}

/* Compile prmt with a constant selector. */
void gpul_native_permute(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, 4), *b = gpul_values_source(c, i->b, 4);
	struct value d = gpul_values_result(c, 4);
	uint32_t selector;

	memcpy(&selector, c->program->consts.bytes + (i->c & ~3u), sizeof selector);
	set_shuffle(c, TEMP, bytes_of(selector, false));
	set_shuffle(c, TEMP + 1, bytes_of(selector, true));
	gpul_native_set_all(c, TEMP + 2, sign_bytes(selector), false);
	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, r->op, d.part[k], a[k], TEMP);
		gpul_native_vector(c, r->op, TEMP + 3, b[k], TEMP + 1);
		gpul_native_vector(c, or_q, d.part[k], d.part[k], TEMP + 3);
		if (!sign_bytes(selector))
			continue;
		gpul_native_vector(c, signs_of_bytes, K_TEMP, 0, d.part[k]);
		gpul_native_vector(c, bytes_of_signs, TEMP + 3, 0, K_TEMP);
		gpul_native_vector_imm(c, r->op2, d.part[k], TEMP + 3, TEMP + 2, TAKE_MARKED);
	}
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_address(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	gpul_native_set_all(c, TEMP, (uint64_t)i->imm, r->bytes == 8);
	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_native_vector(c, r->bytes == 8 ? add_q : add_d, d.part[k], a[k], TEMP);
	gpul_native_finish(c, r, i->d, &d);
}

/* ---- comparisons ----------------------------------------------------------------------------------- */

/* The immediate of vcmpps and vcmppd, and that of vpcmpd and similar, for each value of enum compare. */
static const uint8_t float_predicates[] = {
	[CMP_EQ] = 0x00,  [CMP_NE] = 0x0c,  [CMP_LT] = 0x11,  [CMP_LE] = 0x12,  [CMP_GT] = 0x1e,  [CMP_GE] = 0x1d,  [CMP_EQU] = 0x08,
	[CMP_NEU] = 0x04, [CMP_LTU] = 0x19, [CMP_LEU] = 0x1a, [CMP_GTU] = 0x16, [CMP_GEU] = 0x15, [CMP_NUM] = 0x07, [CMP_NAN] = 0x03,
};
static const uint8_t int_predicates[] = { [CMP_EQ] = 0, [CMP_NE] = 4, [CMP_LT] = 1, [CMP_LE] = 2, [CMP_GT] = 6, [CMP_GE] = 5 };

static void compare(struct run_compiler *c, struct vector_op op, unsigned k, unsigned a, unsigned b, unsigned predicate)
{
	gpul_code_vector(&c->code, op, k, a, b, NO_MASK);
	gpul_code_byte(&c->code, predicate);
}

/* Emit code that compares all lanes (a vector register holds 32, 16 or 8 lanes), and sets R9 to the 32 results. */
static void compare_lanes(struct run_compiler *c, const struct insn *i, unsigned bytes, struct vector_op op, unsigned predicate)
{
	const uint8_t *a = gpul_values_source(c, i->a, bytes), *b = gpul_values_source(c, i->b, bytes);

	for (unsigned n = 0; n < (bytes == 2 ? 1 : 2); n++) {
		const unsigned k = n ? K_TEMP2 : K_TEMP;

		if (bytes < 8) {
			compare(c, op, k, a[n], b[n], predicate);
			continue;
		}
		compare(c, op, k, a[2 * n], b[2 * n], predicate);
		compare(c, op, K_TEMP3, a[2 * n + 1], b[2 * n + 1], predicate);
		gpul_code_mask(&c->code, MAP_0F, PREFIX_66, 1, 0x4b, k, K_TEMP3, k); /* kunpckbw: two masks of 8 lanes become one of 16 */
	}
	if (bytes > 2)
		gpul_code_mask(&c->code, MAP_0F, NO_PREFIX, 1, 0x4b, K_TEMP, K_TEMP2, K_TEMP); /* kunpckwd: 16 lanes to 32 */
	gpul_code_mask_to(&c->code, R9, K_TEMP);
}

void gpul_native_comparison(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	compare_lanes(c, i, r->bytes, r->op, r->immediate);
	gpul_native_store_predicate(c, i->d);
}

void gpul_native_any_comparison(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	static const struct vector_op floats[] = { PS(0xc2), PD(0xc2) }, signs[] = { D3A(0x1f), Q3A(0x1f) },
				      unsigneds[] = { D3A(0x1e), Q3A(0x1e) };
	static const uint8_t combined[] = { [COMBINE_AND] = ALU_AND, [COMBINE_OR] = ALU_OR, [COMBINE_XOR] = ALU_XOR };
	const bool wide = r->bytes == 8, is_float = i->flags & COMPARE_FLOAT;
	const struct vector_op op = is_float ? floats[wide] : (i->flags & COMPARE_SIGNED) ? signs[wide] : unsigneds[wide];
	const unsigned how = i->flags & COMBINE_MASK;

	compare_lanes(c, i, r->bytes, op, is_float ? float_predicates[i->n] : int_predicates[i->n]);
	if (how != COMBINE_NONE)
		gpul_native_combine_predicate(c, combined[how], i->c);
	gpul_native_store_predicate(c, i->d);
}

/* Compile an operation on predicates.  r->immediate is the opcode; 0: the operation is a move. */
void gpul_native_logic(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	gpul_native_load_predicate(c, i->a);
	if (r->immediate)
		gpul_native_combine_predicate(c, r->immediate, i->b);
	gpul_native_store_predicate(c, i->d);
}

void gpul_native_logic_not(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	(void)r;
	gpul_native_load_predicate(c, i->a);
	gpul_code_not(&c->code, R9);
	gpul_native_store_predicate(c, i->d);
}
