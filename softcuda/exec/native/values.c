/* values.c — decides which values a run keeps in vector registers; loads and stores predicates, which are not kept in registers. */
#include "softcuda/exec/native/native_internal.h"

static const struct vector_op load = { MAP_0F, NO_PREFIX, 0, 0x28 }, store32 = { MAP_0F, NO_PREFIX, 0, 0x29 },
			      store64 = { MAP_0F, PREFIX_66, 1, 0x29 },
			      store16 = { MAP_0F, PREFIX_F2, 1, 0x7f }; /* vmovaps, vmovapd (store64), vmovdqu16 (store16) */

enum { VECTOR_BYTES = 64 };

enum gpr gpul_native_bank(opref ref)
{
	static const enum gpr bases[N_BANKS] = { [BANK_REGS] = RAX, [BANK_CONSTS] = RCX, [BANK_SPECIALS] = RDX };

	return bases[ref & 3];
}

static void release(struct run_compiler *c, struct value *v)
{
	for (unsigned k = 0; v->bytes && k < v->n_parts; k++)
		c->free |= 1u << v->part[k];
	v->bytes = 0;
}

void gpul_values_forget(struct run_compiler *c)
{
	for (unsigned k = 0; k < MAX_VALUES; k++)
		c->values[k].bytes = 0;
	c->free = (1u << N_POOL) - 1;
}

/* Return the least recently used value that the current instruction does not use. */
static struct value *oldest(struct run_compiler *c)
{
	struct value *found = NULL;

	for (struct value *v = c->values; v < c->values + MAX_VALUES; v++)
		if (v->bytes && v->used != c->row && (!found || v->used < found->used))
			found = v;
	return found;
}

static unsigned take_register(struct run_compiler *c)
{
	unsigned k;

	if (!c->free)
		release(c, oldest(c)); /* a value is found, because an instruction uses less than half of the registers */
	k = (unsigned)__builtin_ctz(c->free);
	c->free &= ~(1u << k);
	return k;
}

static struct value *take_place(struct run_compiler *c)
{
	struct value *v;

	for (v = c->values; v < c->values + MAX_VALUES; v++)
		if (!v->bytes)
			return v;
	v = oldest(c);
	release(c, v);
	return v;
}

static struct value new_value(struct run_compiler *c, opref ref, unsigned bytes)
{
	const unsigned n = bytes / 2;
	struct value v = { .ref = ref, .bytes = (uint8_t)bytes, .n_parts = (uint8_t)((ref & 3) == BANK_CONSTS ? 1 : n), .used = c->row };

	for (unsigned k = 0; k < n; k++)
		v.part[k] = k < v.n_parts ? (uint8_t)take_register(c) : v.part[0];
	return v;
}

const uint8_t *gpul_values_source(struct run_compiler *c, opref ref, unsigned bytes)
{
	struct value *place, v;

	for (place = c->values; place < c->values + MAX_VALUES; place++)
		if (place->bytes == bytes && place->ref == ref) {
			place->used = c->row;
			return place->part;
		}
	v = new_value(c, ref, bytes);
	for (unsigned k = 0; k < v.n_parts; k++)
		gpul_code_vector_memory(&c->code, load, v.part[k], 0, gpul_native_bank(ref), (ref & ~3u) + VECTOR_BYTES * k, NO_MASK);
	place = take_place(c);
	*place = v;
	return place->part;
}

struct value gpul_values_result(struct run_compiler *c, unsigned bytes)
{
	return new_value(c, BANK_SCRATCH, bytes);
}

void gpul_values_drop(struct run_compiler *c, struct value *result)
{
	release(c, result);
}

/* Forget the values in vector registers that a store to the program's register `ref` makes invalid: values of registers that share its slot
 * in the frame, and values of the same register that were read with another width. */
static void forget_place(struct run_compiler *c, opref ref, unsigned bytes)
{
	const uint32_t from = ref & ~3u, end = from + LANES * bytes;

	for (struct value *v = c->values; v < c->values + MAX_VALUES; v++)
		if (v->bytes && (v->ref & 3) == (ref & 3) && (v->ref & ~3u) < end && from < (v->ref & ~3u) + LANES * v->bytes)
			release(c, v);
}

unsigned gpul_native_active(const struct run_compiler *c, bool of_eight, unsigned k)
{
	static const uint8_t lanes[2][MAX_PARTS] = { { LANES_0, LANES_16 }, { LANES_0, LANES_8, LANES_16, LANES_24 } };

	return c->partial ? lanes[of_eight][k] : NO_MASK;
}

void gpul_values_store(struct run_compiler *c, opref ref, struct value *result)
{
	const bool wide = result->bytes == 8;

	if ((ref & 3) == BANK_SCRATCH) {
		release(c, result);
		return;
	}
	forget_place(c, ref, result->bytes);
	for (unsigned k = 0; k < result->n_parts; k++)
		gpul_code_vector_memory(&c->code,
					wide                 ? store64
					: result->bytes == 4 ? store32
							     : store16,
					result->part[k], 0, gpul_native_bank(ref), (ref & ~3u) + VECTOR_BYTES * k,
					gpul_native_active(c, wide, k));
	result->ref = ref;
	*take_place(c) = *result;
}

void gpul_values_reload(struct run_compiler *c, const struct value *values)
{
	for (const struct value *v = values; v < values + MAX_VALUES; v++)
		for (unsigned k = 0; v->bytes && k < v->n_parts; k++)
			gpul_code_vector_memory(&c->code, load, v->part[k], 0, gpul_native_bank(v->ref), (v->ref & ~3u) + VECTOR_BYTES * k,
						NO_MASK);
}

void gpul_native_load_predicate(struct run_compiler *c, opref ref)
{
	gpul_code_load32(&c->code, R9, gpul_native_bank(ref), ref & ~3u);
}

void gpul_native_combine_predicate(struct run_compiler *c, unsigned op, opref ref)
{
	gpul_code_alu_memory(&c->code, op, R9, gpul_native_bank(ref), ref & ~3u);
}

/* If lanes are inactive, the new predicate is (new & mask) | (old & ~mask). */
void gpul_native_store_predicate(struct run_compiler *c, opref ref)
{
	if ((ref & 3) == BANK_SCRATCH)
		return;
	if (c->partial) {
		gpul_code_load32(&c->code, R10, gpul_native_bank(ref), ref & ~3u);
		gpul_code_alu(&c->code, ALU_XOR, R9, R10);
		gpul_code_alu_memory(&c->code, ALU_AND, R9, RDI, offsetof(struct warp, mask));
		gpul_code_alu(&c->code, ALU_XOR, R9, R10);
	}
	gpul_code_store32(&c->code, R9, gpul_native_bank(ref), ref & ~3u);
}

void gpul_native_give_up(struct run_compiler *c, int condition)
{
	c->slow.jump[c->slow.n_jumps++] = gpul_code_jump(&c->code, condition);
}
