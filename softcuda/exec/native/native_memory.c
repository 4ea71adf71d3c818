/* native_memory.c — loads and stores in global memory, in shared memory (with 32-bit addresses), and in local memory; and loads of
 * parameters.
 *
 *     addresses of the lanes are       checked address               load                    store
 *     a row: first + lane * bytes      first, for 32 elements        2 or 4 vectors          2 or 4 vectors
 *     all equal                        first, for one element        one element, broadcast  a scatter
 *     anything else                    that of each lane             a gather                a scatter
 *
 * The first two kinds are only for warps without inactive lanes, and not for local memory, which is private to each lane. A global
 * address must be in the range that this instruction accessed last (struct range_slot); an offset must be below the size of the
 * block's shared memory or of the lane's local memory. The handler executes all other accesses, and reports faults. */
#include "softcuda/exec/exec_memory_internal.h"
#include "softcuda/exec/native/rules_internal.h"
#include "softcuda/exec/warp/warp_internal.h"

struct site {
	const struct insn *i;
	bool wide; /* true: 64-bit global addresses; false: 32-bit offsets in shared or local memory */
	bool local, load;
	unsigned bytes, n_parts; /* bytes per element; number of vector registers for 32 addresses */
};

/* Opcodes for addresses: [0] for 32 bits, [1] for 64 bits. */
static const struct vector_op sub[] = { D0F(0xfa), PD(0xfb) }, add[] = { D0F(0xfe), PD(0xd4) }, or [] = { D0F(0xeb), PD(0xeb) },
			      broadcast_first[] = { D38(0x58), Q38(0x59) }, test[] = { D38(0x27), Q38(0x27) },
			      compare_signed[] = { D3A(0x1f), Q3A(0x1f) }, compare_unsigned[] = { D3A(0x1e), Q3A(0x1e) };
/* Opcodes for elements: [0] for 32 bits, [1] for 64 bits; gather and scatter are indexed by [width of address][width of element]. */
static const struct vector_op load_row[] = { PS(0x10), PD(0x10) }, store_row[] = { PS(0x11), PD(0x11) },
			      gather[2][2] = { { D38(0x90), Q38(0x90) }, { D38(0x91), Q38(0x91) } },
			      scatter[2][2] = { { D38(0xa0), Q38(0xa0) }, { D38(0xa1), Q38(0xa1) } };
static const struct vector_op move = PS(0x28), extract = Q3A(0x3b), insert = Q3A(0x3a), multiply = D38(0x40), low_words = CUT(0x35);
enum { NOT_EQUAL = 4, GREATER = 6, VECTOR_BYTES = 64 };

/* The distance of each lane's address from that of lane 0, if the addresses are a row of elements of b bytes. */
#define EIGHT(n, b) \
	(n) * (b), ((n) + 1) * (b), ((n) + 2) * (b), ((n) + 3) * (b), ((n) + 4) * (b), ((n) + 5) * (b), ((n) + 6) * (b), ((n) + 7) * (b)
#define ROW(b) { EIGHT(0, b), EIGHT(8, b), EIGHT(16, b), EIGHT(24, b) }
_Alignas(64) static const uint32_t row32[2][LANES] = { ROW(4), ROW(8) };
_Alignas(64) static const uint64_t row64[2][LANES] = { ROW(4), ROW(8) };
_Alignas(64) static const uint32_t lane_numbers[LANES] = ROW(1);

static bool find_site(const struct insn *i, struct site *s)
{
	const unsigned space = i->flags & SPACE_MASK,
		       others = i->flags & ~(unsigned)(SPACE_MASK | FLAG_ADDRESS_32 | (space == SPACE_LOCAL ? FLAG_FRAME : 0));
	const bool narrow = i->flags & FLAG_ADDRESS_32;

	*s = (struct site){ .i = i, .local = space == SPACE_LOCAL, .load = i->op == OP_LD_U32_32 || i->op == OP_LD_U64_64 };
	s->wide = space == SPACE_GLOBAL || space == SPACE_GENERIC;
	s->bytes = i->op == OP_LD_U32_32 || i->op == OP_ST_32_32 ? 4 : i->op == OP_LD_U64_64 || i->op == OP_ST_64_64 ? 8 : 0;
	s->n_parts = s->wide ? 4 : 2;
	if (!s->bytes || others || i->imm % (int)s->bytes || i->imm != (int32_t)i->imm)
		return false;
	return s->wide ? !narrow : s->local || (space == SPACE_SHARED && narrow);
}

bool gpul_native_accesses(const struct insn *i)
{
	struct site s;

	if (i->op == OP_LD_PARAM)
		return !i->n && (i->e == KIND_U32_32 || i->e == KIND_U64_64);
	return find_site(i, &s);
}

/* ---- checks of addresses -------------------------------------------------------------------------- */

static void all_ones(struct run_compiler *c, unsigned k)
{
	gpul_code_mask(&c->code, MAP_0F, NO_PREFIX, 1, 0x46, k, k, k); /* kxnorw k, k, k sets all bits of k */
}

/* Emit code that sets the zero flag if the addresses are a row (consecutive elements).  It sets TEMP + 2 to the OR of the distances
 * from the first address, which is 0 if all addresses are equal. */
static void compare_with_row(struct run_compiler *c, const struct site *s, const uint8_t *a)
{
	const bool wide = s->wide;
	const void *row = wide ? (const void *)row64[s->bytes == 8] : (const void *)row32[s->bytes == 8];

	gpul_native_vector(c, broadcast_first[wide], TEMP, 0, a[0]);
	gpul_code_set64(&c->code, R11, (uintptr_t)row);
	for (unsigned k = 0; k < s->n_parts; k++) {
		const unsigned mask = k ? K_TEMP2 : K_TEMP;

		gpul_native_vector(c, sub[wide], TEMP + 1, a[k], TEMP);
		if (k)
			gpul_native_vector(c, or [wide], TEMP + 2, TEMP + 2, TEMP + 1);
		else
			gpul_native_vector(c, move, TEMP + 2, 0, TEMP + 1);
		gpul_code_vector_memory(&c->code, compare_signed[wide], mask, TEMP + 1, R11, VECTOR_BYTES * k, NO_MASK);
		gpul_code_byte(&c->code, NOT_EQUAL);
		if (k)
			gpul_native_mask_or(c, K_TEMP, K_TEMP2);
	}
	gpul_native_test_mask(c);
}

/* Emit code that sets R8 to the worker's range cache, and falls back to the handler if the cached range is outdated, or if it is
 * read-only and the instruction is a store. */
static void check_slot(struct run_compiler *c, const struct site *s, uint32_t slot)
{
	gpul_code_load64(&c->code, R8, RDI, offsetof(struct warp_state, cache));
	gpul_code_load64(&c->code, R9, R8, offsetof(struct range_cache, generation));
	gpul_code_load64(&c->code, R9, R9, 0);
	gpul_code_alu64_memory(&c->code, ALU_CMP, R9, R8, offsetof(struct range_cache, seen));
	gpul_native_give_up(c, JUMP_IF_NOT_ZERO);
	if (s->load)
		return;
	gpul_code_compare_byte(&c->code, R8, slot + offsetof(struct range_slot, read_only), 0);
	gpul_native_give_up(c, JUMP_IF_NOT_ZERO);
}

static uint32_t slot_of(const struct site *s)
{
	return (uint32_t)(offsetof(struct range_cache, slot) + s->i->src % RANGE_SLOTS * sizeof(struct range_slot));
}

/* Emit code that sets R9 to the largest offset, in the range or memory, at which n bytes can be accessed. */
static void load_last(struct run_compiler *c, const struct site *s, unsigned n)
{
	if (s->wide) {
		gpul_code_load64(&c->code, R9, R8, slot_of(s) + offsetof(struct range_slot, end));
		gpul_code_alu64_memory(&c->code, ALU_SUB, R9, R8, slot_of(s) + offsetof(struct range_slot, base));
	} else {
		gpul_code_load32(&c->code, R9, RDI,
				 s->local ? offsetof(struct warp_state, local_bytes) : offsetof(struct warp_state, shared_bytes));
	}
	gpul_code_set64(&c->code, R11, n);
	gpul_code_alu64(&c->code, ALU_SUB, R9, R11);
	gpul_native_give_up(c, JUMP_IF_BELOW);
}

/* Emit code that sets R10 to the host address of lane 0's access, and falls back to the handler if n bytes there cannot be accessed. */
static void check_first(struct run_compiler *c, const struct site *s, const uint8_t *a, unsigned n)
{
	gpul_code_first(&c->code, R10, a[0], s->wide);
	gpul_code_lea(&c->code, R10, R10, (uint32_t)s->i->imm);
	if (!s->wide)
		gpul_code_alu(&c->code, ALU_OR, R10, R10); /* a 32-bit operation clears the upper half of R10 */
	gpul_code_test_byte(&c->code, R10, s->bytes - 1);
	gpul_native_give_up(c, JUMP_IF_NOT_ZERO);
	load_last(c, s, n);
	gpul_code_lea(&c->code, R11, R10, 0);
	if (s->wide)
		gpul_code_alu64_memory(&c->code, ALU_SUB, R11, R8, slot_of(s) + offsetof(struct range_slot, base));
	gpul_code_alu64(&c->code, ALU_CMP, R11, R9);
	gpul_native_give_up(c, JUMP_IF_ABOVE);
	if (!s->wide)
		gpul_code_alu64_memory(&c->code, ALU_ADD, R10, RDI, offsetof(struct warp_state, shared));
}

/* ---- gathers and scatters ------------------------------------------------------------------------- */

/* Emit code that sets R11 to the constant that is added to the addresses of all lanes. */
static void load_constant_part(struct run_compiler *c, const struct site *s)
{
	gpul_code_set64(&c->code, R11, (uint64_t)s->i->imm);
	if (!(s->i->flags & FLAG_FRAME))
		return;
	gpul_code_load64(&c->code, R10, RDI, offsetof(struct warp_state, frame));
	gpul_code_load32(&c->code, R10, R10, offsetof(struct frame, local_offset));
	gpul_code_test_byte(&c->code, R10, s->bytes - 1);
	gpul_native_give_up(c, JUMP_IF_NOT_ZERO);
	gpul_code_alu64(&c->code, ALU_ADD, R11, R10);
}

/* Emit code that falls back to the handler if the access of an active lane is misaligned or not allowed.  The constant part of the
 * addresses is a multiple of the alignment, so the alignment is tested without it. */
static void check_lanes(struct run_compiler *c, const struct site *s, const uint8_t *a)
{
	load_last(c, s, s->bytes);
	gpul_code_broadcast(&c->code, TEMP + 3, R9, s->wide);
	load_constant_part(c, s);
	if (s->wide)
		gpul_code_load64(&c->code, R9, R8, slot_of(s) + offsetof(struct range_slot, base));
	else
		gpul_code_alu(&c->code, ALU_XOR, R9, R9);
	gpul_code_alu64(&c->code, ALU_SUB, R9, R11);
	gpul_code_broadcast(&c->code, TEMP, R9, s->wide); /* start of the range or memory, minus the constant part */
	gpul_native_set_all(c, TEMP + 2, s->bytes - 1, s->wide);
	for (unsigned k = 0; k < s->n_parts; k++) {
		const unsigned mask = k ? K_TEMP2 : K_TEMP;

		gpul_native_vector(c, sub[s->wide], TEMP + 1, a[k], TEMP);
		gpul_code_vector(&c->code, compare_unsigned[s->wide], mask, TEMP + 1, TEMP + 3, gpul_native_active(c, s->wide, k));
		gpul_code_byte(&c->code, GREATER);
		if (k)
			gpul_native_mask_or(c, K_TEMP, K_TEMP2);
		gpul_code_vector(&c->code, test[s->wide], K_TEMP2, a[k], TEMP + 2, gpul_native_active(c, s->wide, k));
		gpul_native_mask_or(c, K_TEMP, K_TEMP2);
	}
	gpul_native_test_mask(c);
	gpul_native_give_up(c, JUMP_IF_NOT_ZERO);
}

/* Emit code that sets K_TEMP to the active lanes of a part (8 or 16 lanes): the mask of one gather or scatter, which clears it. */
static void lanes_of_part(struct run_compiler *c, bool of_eight, unsigned part)
{
	if (!c->partial)
		all_ones(c, K_TEMP);
	else
		gpul_code_mask(&c->code, MAP_0F, NO_PREFIX, 0, 0x90, K_TEMP, 0, gpul_native_active(c, of_eight, part)); /* this is kmovw */
}

/* Emit code that prepares move_offsets(): R10 becomes the base address, TEMP + 2 the constant part of the offsets. */
static void load_base(struct run_compiler *c, const struct site *s)
{
	load_constant_part(c, s);
	gpul_code_lea(&c->code, R10, R11, 0);
	if (s->wide)
		return;
	gpul_code_broadcast(&c->code, TEMP + 2, R10, false);
	if (s->local) {
		gpul_code_load32(&c->code, R9, RDI, offsetof(struct warp_state, local_stride));
		gpul_code_broadcast(&c->code, TEMP + 1, R9, false);
	}
	gpul_code_load64(&c->code, R10, RDI, s->local ? offsetof(struct warp_state, local) : offsetof(struct warp_state, shared));
}

/* Return the vector register that holds the offsets of one part of the lanes: 8 lanes if addresses or elements have 64 bits, else 16. */
static unsigned move_offsets(struct run_compiler *c, const struct site *s, const uint8_t *a, unsigned part)
{
	const unsigned whole = s->bytes == 8 ? part / 2 : part;

	if (s->wide)
		return a[part];
	gpul_native_vector(c, add[0], TEMP + 3, a[whole], TEMP + 2);
	if (s->local) { /* add lane * local_stride, because each lane has its own contiguous local memory */
		gpul_code_set64(&c->code, R11, (uintptr_t)lane_numbers);
		gpul_code_vector_memory(&c->code, multiply, TEMP, TEMP + 1, R11, VECTOR_BYTES * whole, NO_MASK);
		gpul_native_vector(c, add[0], TEMP + 3, TEMP + 3, TEMP);
	}
	if (s->bytes == 8 && part % 2)
		gpul_native_vector_imm(c, extract, TEMP + 3, 0, TEMP + 3, 1);
	return TEMP + 3;
}

static void gather_lanes(struct run_compiler *c, const struct site *s, const uint8_t *a, const struct value *d)
{
	const bool of_eight = s->wide || s->bytes == 8, halves = s->wide && s->bytes == 4;

	load_base(c, s);
	for (unsigned k = 0; k < (of_eight ? 4 : 2); k++) {
		const unsigned index = move_offsets(c, s, a, k), to = !halves ? d->part[k] : k % 2 ? TEMP : d->part[k / 2];

		lanes_of_part(c, of_eight, k);
		gpul_code_gather(&c->code, gather[s->wide][s->bytes == 8], to, R10, 0, index, K_TEMP);
		if (halves && k % 2)
			gpul_native_vector_imm(c, insert, d->part[k / 2], d->part[k / 2], TEMP, 1);
	}
}

static void scatter_lanes(struct run_compiler *c, const struct site *s, const uint8_t *a, const uint8_t *b)
{
	const bool of_eight = s->wide || s->bytes == 8, halves = s->wide && s->bytes == 4;

	load_base(c, s);
	for (unsigned k = 0; k < (of_eight ? 4 : 2); k++) {
		const unsigned index = move_offsets(c, s, a, k);
		unsigned from = halves ? b[k / 2] : b[k];

		if (halves && k % 2) {
			gpul_native_vector_imm(c, extract, from, 0, TEMP, 1);
			from = TEMP;
		}
		lanes_of_part(c, of_eight, k);
		gpul_code_gather(&c->code, scatter[s->wide][s->bytes == 8], from, R10, 0, index, K_TEMP);
	}
}

/* ---- whole loads and stores ------------------------------------------------------------------------ */

/* Emit code that sets R10 to the host address of lane 0 if the lanes' addresses are consecutive (a row).  Returns the jump that is taken
 * otherwise. */
static size_t find_row(struct run_compiler *c, const struct site *s, const uint8_t *a)
{
	size_t no_row;

	compare_with_row(c, s, a);
	no_row = gpul_code_jump(&c->code, JUMP_IF_NOT_ZERO);
	check_first(c, s, a, LANES * s->bytes);
	return no_row;
}

static void load_by_shape(struct run_compiler *c, const struct site *s, const uint8_t *a, const struct value *d)
{
	const bool wide = s->bytes == 8;
	const size_t no_row = find_row(c, s, a);
	size_t no_same, done, done_same;

	for (unsigned k = 0; k < d->n_parts; k++)
		gpul_code_vector_memory(&c->code, load_row[wide], d->part[k], 0, R10, VECTOR_BYTES * k, NO_MASK);
	done = gpul_code_jump(&c->code, JUMP);
	gpul_code_jump_here(&c->code, no_row);
	gpul_native_vector(c, test[s->wide], K_TEMP, TEMP + 2, TEMP + 2);
	gpul_native_test_mask(c);
	no_same = gpul_code_jump(&c->code, JUMP_IF_NOT_ZERO);
	check_first(c, s, a, s->bytes);
	for (unsigned k = 0; k < d->n_parts; k++)
		gpul_code_vector_memory(&c->code, broadcast_first[wide], d->part[k], 0, R10, 0, NO_MASK);
	done_same = gpul_code_jump(&c->code, JUMP);
	gpul_code_jump_here(&c->code, no_same);
	check_lanes(c, s, a);
	gather_lanes(c, s, a, d);
	gpul_code_jump_here(&c->code, done);
	gpul_code_jump_here(&c->code, done_same);
}

static void compile_load(struct run_compiler *c, const struct site *s, const uint8_t *a)
{
	struct value d = gpul_values_result(c, s->bytes);

	if (c->partial || s->local) {
		check_lanes(c, s, a);
		gather_lanes(c, s, a, &d);
	} else {
		load_by_shape(c, s, a, &d);
	}
	gpul_values_store(c, s->i->d, &d);
}

static void compile_store(struct run_compiler *c, const struct site *s, const uint8_t *a)
{
	const uint8_t *b = gpul_values_source(c, s->i->b, s->bytes);
	size_t no_row, done = 0;

	if (!c->partial && !s->local) {
		no_row = find_row(c, s, a);
		for (unsigned k = 0; k < s->bytes / 2; k++)
			gpul_code_vector_memory(&c->code, store_row[s->bytes == 8], b[k], 0, R10, VECTOR_BYTES * k, NO_MASK);
		done = gpul_code_jump(&c->code, JUMP);
		gpul_code_jump_here(&c->code, no_row);
	}
	check_lanes(c, s, a);
	scatter_lanes(c, s, a, b);
	if (done)
		gpul_code_jump_here(&c->code, done);
	if (!s->local)
		gpul_code_store_byte(&c->code, RDI, offsetof(struct warp_state, stirs), true);
}

/* Return the vector registers that hold the 32-bit offsets in local memory.  64-bit offsets are narrowed into the registers of *room. */
static const uint8_t *local_offsets(struct run_compiler *c, const struct insn *i, struct value *room)
{
	const uint8_t *a;

	if (i->flags & FLAG_ADDRESS_32)
		return gpul_values_source(c, i->a, 4);
	a = gpul_values_source(c, i->a, 8);
	*room = gpul_values_result(c, 4);
	for (unsigned k = 0; k < 2; k++)
		gpul_native_narrow_pair(c, low_words, room->part[k], a[2 * k], a[2 * k + 1]);
	return room->part;
}

/* Emit code that falls back to the handler if some lane's local memory is too far from that of lane 0 for a 32-bit offset. */
static void check_stride(struct run_compiler *c)
{
	gpul_code_load64(&c->code, R9, RDI, offsetof(struct warp_state, local_stride));
	gpul_code_set64(&c->code, R11, INT32_MAX / LANES);
	gpul_code_alu64(&c->code, ALU_CMP, R9, R11);
	gpul_native_give_up(c, JUMP_IF_ABOVE);
}

static void compile_parameter(struct run_compiler *c, const struct insn *i)
{
	const unsigned bytes = i->e == KIND_U64_64 ? 8 : 4;
	struct value d = gpul_values_result(c, bytes);

	gpul_code_load64(&c->code, R9, RDI, offsetof(struct warp_state, params));
	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_code_vector_memory(&c->code, broadcast_first[bytes == 8], d.part[k], 0, R9, (uint32_t)i->imm, NO_MASK);
	gpul_values_store(c, i->d, &d);
}

void gpul_native_access(struct run_compiler *c, const struct insn *i)
{
	struct value room = { 0 };
	const uint8_t *a;
	struct site s;

	if (i->op == OP_LD_PARAM) {
		compile_parameter(c, i);
		return;
	}
	find_site(i, &s);
	a = s.local ? local_offsets(c, i, &room) : gpul_values_source(c, i->a, s.wide ? 8 : 4);
	if (s.wide)
		check_slot(c, &s, slot_of(&s));
	if (s.local)
		check_stride(c);
	if (s.load)
		compile_load(c, &s, a);
	else
		compile_store(c, &s, a);
	gpul_values_drop(c, &room);
}
