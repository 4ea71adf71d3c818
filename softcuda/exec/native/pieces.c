/* pieces.c — sequences of machine instructions that several rules use. */
#include "softcuda/exec/native/rules_internal.h"

static const struct vector_op equal_d = D0F(0x76), unordered_ps = PS(0xc2), unordered_pd = PD(0xc2), extract = Q3A(0x3b),
			      insert = Q3A(0x3a);
enum { UNORDERED = 3 };

void gpul_native_vector(struct run_compiler *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2)
{
	gpul_code_vector(&c->code, op, d, s1, s2, NO_MASK);
}

void gpul_native_vector_imm(struct run_compiler *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2, unsigned imm)
{
	gpul_code_vector(&c->code, op, d, s1, s2, NO_MASK);
	gpul_code_byte(&c->code, imm);
}

/* Emit korw. */
void gpul_native_mask_or(struct run_compiler *c, unsigned k, unsigned s)
{
	gpul_code_mask(&c->code, MAP_0F, NO_PREFIX, 1, 0x45, k, k, s);
}

/* Emit kortestw. */
void gpul_native_test_mask(struct run_compiler *c)
{
	gpul_code_mask(&c->code, MAP_0F, NO_PREFIX, 0, 0x98, K_TEMP, 0, K_TEMP);
}

void gpul_native_set_all(struct run_compiler *c, unsigned d, uint64_t bits, bool wide)
{
	gpul_code_set64(&c->code, R9, bits);
	gpul_code_broadcast(&c->code, d, R9, wide);
}

unsigned gpul_native_half(struct run_compiler *c, const uint8_t *parts, unsigned h, unsigned temp)
{
	if (h % 2 == 0)
		return parts[h / 2];
	gpul_native_vector_imm(c, extract, parts[h / 2], 0, temp, 1);
	return temp;
}

void gpul_native_narrow_pair(struct run_compiler *c, struct vector_op op, unsigned d, unsigned low, unsigned high)
{
	const unsigned to[] = { d, TEMP + 1 }, from[] = { low, high };

	for (unsigned k = 0; k < 2; k++)
		if (op.map == MAP_0F38) /* a CUT() opcode encodes its destination in ModRM.rm */
			gpul_native_vector(c, op, from[k], 0, to[k]);
		else
			gpul_native_vector(c, op, to[k], 0, from[k]);
	gpul_native_vector_imm(c, insert, d, d, TEMP + 1, 1);
}

static void compare_part(struct run_compiler *c, const struct rule *r, const struct value *d, unsigned k, unsigned mask)
{
	const unsigned lanes = gpul_native_active(c, d->bytes == 8, k);

	if (r->check == CHECK_RANGE) {
		gpul_code_vector(&c->code, equal_d, mask, d->part[k], TEMP, lanes);
	} else { /* unless lanes are inactive, one unordered comparison tests two registers for NaN */
		gpul_code_vector(&c->code, d->bytes == 8 ? unordered_pd : unordered_ps, mask, d->part[k], d->part[c->partial ? k : k + 1],
				 lanes);
		gpul_code_byte(&c->code, UNORDERED);
	}
}

/* Emit code that falls back to the handler if the result of an active lane is NaN (CHECK_NAN) or 0x80000000 (CHECK_RANGE). */
static void check_result(struct run_compiler *c, const struct rule *r, const struct value *d)
{
	const unsigned step = r->check == CHECK_NAN && !c->partial ? 2 : 1;

	if (r->check == CHECK_RANGE)
		gpul_native_set_all(c, TEMP, 0x80000000, false);
	for (unsigned k = 0; k < d->n_parts; k += step) {
		compare_part(c, r, d, k, k ? K_TEMP2 : K_TEMP);
		if (k)
			gpul_native_mask_or(c, K_TEMP, K_TEMP2);
	}
	gpul_native_test_mask(c);
	gpul_native_give_up(c, JUMP_IF_NOT_ZERO);
}

void gpul_native_finish(struct run_compiler *c, const struct rule *r, opref d, struct value *result)
{
	if (r->check != NO_CHECK)
		check_result(c, r, result);
	gpul_values_store(c, d, result);
}
