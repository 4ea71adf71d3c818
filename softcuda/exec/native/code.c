/* code.c — encodes x86-64 instructions. */
#include <stdlib.h>
#include <string.h>

#include "softcuda/exec/native/code_internal.h"

bool gpul_code_reserve(struct code *c, size_t n)
{
	const size_t room = 2 * c->room + n;
	uint8_t *grown;

	if (c->room - c->n >= n)
		return true;
	grown = realloc(c->bytes, room);
	if (!grown)
		return false;
	c->bytes = grown;
	c->room = room;
	return true;
}

static void u32(struct code *c, uint32_t u)
{
	for (unsigned k = 0; k < 4; k++)
		gpul_code_byte(c, u >> 8 * k & 0xff);
}

static void u64(struct code *c, uint64_t u)
{
	u32(c, (uint32_t)u);
	u32(c, (uint32_t)(u >> 32));
}

/* ---- vector instructions --------------------------------------------------------------------- */

enum { LENGTH_512 = 2, BROADCAST_OR_ROUND = 0x10 };

/* Write an EVEX prefix, which stores the bits of register numbers inverted.  EVEX.X is bit 4 of a vector register in ModRM.rm. */
static void evex(struct code *c, struct vector_op op, unsigned reg, unsigned v, unsigned rm, bool rm_is_vector, unsigned last)
{
	const unsigned r = ~reg >> 3 & 1, r2 = ~reg >> 4 & 1, b = ~rm >> 3 & 1, x = rm_is_vector ? ~rm >> 4 & 1 : 1;

	gpul_code_byte(c, 0x62);
	gpul_code_byte(c, r << 7 | x << 6 | b << 5 | r2 << 4 | op.map);
	gpul_code_byte(c, (unsigned)op.wide << 7 | (~v & 15) << 3 | 4 | op.prefix);
	gpul_code_byte(c, last | (~v >> 4 & 1) << 3);
	gpul_code_byte(c, op.opcode);
}

static void modrm(struct code *c, unsigned mod, unsigned reg, unsigned rm)
{
	gpul_code_byte(c, mod << 6 | (reg & 7) << 3 | (rm & 7));
}

static void modrm_memory(struct code *c, unsigned reg, enum gpr base, uint32_t disp)
{
	modrm(c, 2, reg, base);
	u32(c, disp);
}

void gpul_code_vector(struct code *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2, unsigned k)
{
	evex(c, op, d, s1, s2, true, LENGTH_512 << 5 | k);
	modrm(c, 3, d, s2);
}

void gpul_code_rounded(struct code *c, struct vector_op op, unsigned d, unsigned s1, unsigned s2, unsigned round)
{
	evex(c, op, d, s1, s2, true, round << 5 | BROADCAST_OR_ROUND);
	modrm(c, 3, d, s2);
}

void gpul_code_vector_memory(struct code *c, struct vector_op op, unsigned d, unsigned s1, enum gpr base, uint32_t disp, unsigned k)
{
	evex(c, op, d, s1, base, false, LENGTH_512 << 5 | k);
	modrm_memory(c, d, base, disp);
}

/* The number of the index register is encoded in three places: bits 0 to 2 in the SIB byte, bit 3 in EVEX.X, and bit 4 in EVEX.V',
 * which in other instructions is bit 4 of a source register. */
void gpul_code_gather(struct code *c, struct vector_op op, unsigned d, enum gpr base, uint32_t disp, unsigned index, unsigned k)
{
	const unsigned x = ~index >> 3 & 1;

	evex(c, op, d, index & 16, base | (x ? 0u : 16u), true, LENGTH_512 << 5 | k);
	modrm(c, 2, d, 4); /* ModRM.rm = 4: a SIB byte follows, with scale 1 */
	gpul_code_byte(c, (index & 7) << 3 | (base & 7));
	u32(c, disp);
}

void gpul_code_broadcast(struct code *c, unsigned d, enum gpr s, bool wide)
{
	evex(c, (struct vector_op){ MAP_0F38, PREFIX_66, wide, 0x7c }, d, 0, s, true, LENGTH_512 << 5);
	modrm(c, 3, d, s);
}

void gpul_code_first(struct code *c, enum gpr d, unsigned s, bool wide)
{
	evex(c, (struct vector_op){ MAP_0F, PREFIX_66, wide, 0x7e }, s, 0, d, true, 0);
	modrm(c, 3, s, d);
}

void gpul_code_mask(struct code *c, unsigned map, unsigned prefix, unsigned length, unsigned opcode, unsigned reg, unsigned v, unsigned rm)
{
	gpul_code_byte(c, 0xc4);
	gpul_code_byte(c, (~reg >> 3 & 1) << 7 | 1 << 6 | (~rm >> 3 & 1) << 5 | map);
	gpul_code_byte(c, (~v & 15) << 3 | length << 2 | prefix);
	gpul_code_byte(c, opcode);
	modrm(c, 3, reg, rm);
}

/* Emit kmovd. */
void gpul_code_mask_from(struct code *c, unsigned k, enum gpr s)
{
	gpul_code_mask(c, MAP_0F, PREFIX_F2, 0, 0x92, k, 0, s);
}

void gpul_code_mask_to(struct code *c, enum gpr d, unsigned k)
{
	gpul_code_mask(c, MAP_0F, PREFIX_F2, 0, 0x93, d, 0, k);
}

/* Emit kshiftrd. */
void gpul_code_mask_shift(struct code *c, unsigned k, unsigned s, unsigned by)
{
	gpul_code_mask(c, MAP_0F3A, PREFIX_66, 0, 0x31, k, 0, s);
	gpul_code_byte(c, by);
}

/* ---- instructions on general registers --------------------------------------------------------- */

static void rex(struct code *c, bool wide, unsigned reg, unsigned rm)
{
	const unsigned byte = 0x40u | (unsigned)wide << 3 | (reg >> 3 & 1) << 2 | (rm >> 3 & 1);

	if (byte != 0x40)
		gpul_code_byte(c, byte);
}

static void with_memory(struct code *c, bool wide, unsigned opcode, unsigned reg, enum gpr base, uint32_t disp)
{
	rex(c, wide, reg, base);
	gpul_code_byte(c, opcode);
	modrm_memory(c, reg, base, disp);
}

void gpul_code_load32(struct code *c, enum gpr d, enum gpr base, uint32_t disp)
{
	with_memory(c, false, 0x8b, d, base, disp);
}

void gpul_code_load64(struct code *c, enum gpr d, enum gpr base, uint32_t disp)
{
	with_memory(c, true, 0x8b, d, base, disp);
}

void gpul_code_store32(struct code *c, enum gpr s, enum gpr base, uint32_t disp)
{
	with_memory(c, false, 0x89, s, base, disp);
}

void gpul_code_alu(struct code *c, unsigned op, enum gpr d, enum gpr s)
{
	rex(c, false, d, s);
	gpul_code_byte(c, op);
	modrm(c, 3, d, s);
}

void gpul_code_alu64(struct code *c, unsigned op, enum gpr d, enum gpr s)
{
	rex(c, true, d, s);
	gpul_code_byte(c, op);
	modrm(c, 3, d, s);
}

void gpul_code_alu64_memory(struct code *c, unsigned op, enum gpr d, enum gpr base, uint32_t disp)
{
	with_memory(c, true, op, d, base, disp);
}

void gpul_code_alu_memory(struct code *c, unsigned op, enum gpr d, enum gpr base, uint32_t disp)
{
	with_memory(c, false, op, d, base, disp);
}

void gpul_code_not(struct code *c, enum gpr d)
{
	rex(c, false, 0, d);
	gpul_code_byte(c, 0xf7);
	modrm(c, 3, 2, d);
}

void gpul_code_test_byte(struct code *c, enum gpr d, unsigned bits)
{
	gpul_code_byte(c, 0x40 | (d >> 3 & 1)); /* a REX prefix, because without it the low bytes of RSI and RDI cannot be encoded */
	gpul_code_byte(c, 0xf6);
	modrm(c, 3, 0, d);
	gpul_code_byte(c, bits);
}

void gpul_code_store_byte(struct code *c, enum gpr base, uint32_t disp, unsigned byte)
{
	with_memory(c, false, 0xc6, 0, base, disp);
	gpul_code_byte(c, byte);
}

void gpul_code_compare_byte(struct code *c, enum gpr base, uint32_t disp, unsigned byte)
{
	with_memory(c, false, 0x80, 7, base, disp);
	gpul_code_byte(c, byte);
}

void gpul_code_set64(struct code *c, enum gpr d, uint64_t value)
{
	rex(c, true, 0, d);
	gpul_code_byte(c, 0xb8 | (d & 7));
	u64(c, value);
}

void gpul_code_lea(struct code *c, enum gpr d, enum gpr base, uint32_t disp)
{
	with_memory(c, true, 0x8d, d, base, disp);
}

void gpul_code_push(struct code *c, enum gpr s)
{
	rex(c, false, 0, s);
	gpul_code_byte(c, 0x50 | (s & 7));
}

void gpul_code_pop(struct code *c, enum gpr d)
{
	rex(c, false, 0, d);
	gpul_code_byte(c, 0x58 | (d & 7));
}

/* Emit cmp dword [base + disp], -1. */
void gpul_code_compare_all_ones(struct code *c, enum gpr base, uint32_t disp)
{
	with_memory(c, false, 0x83, 7, base, disp);
	gpul_code_byte(c, 0xff);
}

void gpul_code_vzeroupper(struct code *c)
{
	gpul_code_byte(c, 0xc5);
	gpul_code_byte(c, 0xf8);
	gpul_code_byte(c, 0x77);
}

void gpul_code_call(struct code *c, enum gpr function)
{
	rex(c, false, 0, function);
	gpul_code_byte(c, 0xff);
	modrm(c, 3, 2, function);
}

void gpul_code_go_to(struct code *c, enum gpr place)
{
	rex(c, false, 0, place);
	gpul_code_byte(c, 0xff);
	modrm(c, 3, 4, place);
}

void gpul_code_return(struct code *c)
{
	gpul_code_byte(c, 0xc3);
}

size_t gpul_code_jump(struct code *c, int condition)
{
	if (condition == JUMP) {
		gpul_code_byte(c, 0xe9);
	} else {
		gpul_code_byte(c, 0x0f);
		gpul_code_byte(c, 0x80u | (unsigned)condition);
	}
	u32(c, 0);
	return c->n;
}

static void set_distance(struct code *c, size_t jump, size_t place)
{
	const uint32_t distance = (uint32_t)(place - jump);

	memcpy(c->bytes + jump - sizeof distance, &distance, sizeof distance);
}

void gpul_code_jump_here(struct code *c, size_t jump)
{
	set_distance(c, jump, c->n);
}

void gpul_code_jump_to(struct code *c, int condition, size_t place)
{
	set_distance(c, gpul_code_jump(c, condition), place);
}
