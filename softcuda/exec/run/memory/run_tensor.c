/* run_tensor.c — tensor copies between global and shared memory: PTX ISA 9.7.9.27.  A lane performs its copy immediately,
 * row by row; elements outside of the tensor are not accessed. */
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/tensor_internal.h"
#include "softcuda/exec/warp/access_internal.h"

/* ADDRESS_AT: offset in the scratch bank at which the address of the element to reduce is stored */
enum { ADDRESS_AT = 1024, PIECE = TENSOR_PIECE };

/* The tensor copy of one lane. */
struct transfer {
	struct warp_state *s;
	const struct insn *i;
	unsigned lane;
	struct tensor_box box;
	uint8_t *shared; /* the shared memory that contains the box */
	uint32_t to;     /* offset of the box in shared memory */
};

/* ---- shared memory ------------------------------------------------------------------------------------------------- */

/* Copy bytes of a row from or to shared memory. */
static void move_bytes(const struct transfer *t, uint32_t offset, uint8_t *data, uint32_t bytes, bool to_shared)
{
	uint32_t n;

	for (; bytes; bytes -= n, data += n, offset += n) {
		uint8_t *at = t->shared + tensor_swizzle(t->box.map, t->to + offset);

		n = t->box.map->swizzle ? PIECE - (t->to + offset) % PIECE : bytes;
		n = n < bytes ? n : bytes;
		memcpy(to_shared ? at : data, to_shared ? data : at, n);
	}
}

/* Fill bytes outside of the tensor with 0 or NaN.  For NaN, an H200 writes 0x7ff7 to each 16 bits, for all types. */
static void fill_bytes(const struct transfer *t, uint32_t offset, uint32_t bytes)
{
	const gpul_tensor_map *m = t->box.map;
	uint64_t value = m->fill_nan && m->type >= GPUL_TENSOR_F16 ? 0x7ff77ff77ff77ff7 : 0;

	for (uint32_t k = 0; k < bytes; k += t->box.element_bytes)
		move_bytes(t, offset + k, (uint8_t *)&value, t->box.element_bytes, true);
}

/* ---- rows of the box ------------------------------------------------------------------------------------------------- */

static bool may_access(const struct transfer *t, const struct tensor_row *r, bool write)
{
	const uint32_t bytes = r->n * t->box.element_bytes;

	if (!bytes || range_covers(t->s->cache, t->i->src, r->at, bytes, write))
		return true;
	gpul_fault_access(t->s, t->i, t->lane, r->at, t->box.element_bytes, write);
	return false;
}

/* Round to TF32 as tensor loads of an H200 do: to nearest, with 10 fraction bits, and with the same bits for every NaN. */
static uint32_t round_tf32(uint32_t bits)
{
	const uint32_t magnitude = bits & 0x7fffffff;

	if (magnitude > 0x7f800000)
		return 0x7fffe000;
	return magnitude == 0x7f800000 ? bits : (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
}

static void move_elements(const struct transfer *t, const struct tensor_row *r)
{
	const uint32_t e = t->box.element_bytes, at = r->offset + r->skip * e;

	if (t->box.map->type != GPUL_TENSOR_TF32 && t->box.map->type != GPUL_TENSOR_TF32_FTZ) {
		move_bytes(t, at, (uint8_t *)(uintptr_t)r->at, r->n * e, true);
		return;
	}
	for (uint32_t k = 0; k < r->n; k++) {
		uint32_t value;

		memcpy(&value, (const uint8_t *)(uintptr_t)r->at + k * e, sizeof value);
		value = round_tf32(value);
		move_bytes(t, at + k * e, (uint8_t *)&value, e, true);
	}
}

static bool load_row(const struct transfer *t, const struct tensor_row *r)
{
	const uint32_t e = t->box.element_bytes, after = t->box.row_elements - r->skip - r->n;

	if (!may_access(t, r, false))
		return false;
	fill_bytes(t, r->offset, r->skip * e);
	move_elements(t, r);
	fill_bytes(t, r->offset + (r->skip + r->n) * e, after * e);
	return true;
}

/* At the end of a tensor row, an H200 stores or reduces the whole last 16-byte piece, even if only part of it is inside of the
 * tensor. Return the row extended to the end of this piece, if the kernel may access it. */
static struct tensor_row whole_pieces(const struct transfer *t, const struct tensor_row *r)
{
	const uint32_t e = t->box.element_bytes, rest = t->box.row_elements - r->skip, n = (r->n * e + PIECE - 1) / PIECE * PIECE / e;
	struct tensor_row whole = *r;

	whole.n = n < rest ? n : rest;
	return whole.n == r->n || range_covers(t->s->cache, t->i->src, r->at, whole.n * e, true) ? whole : *r;
}

static bool store_row(const struct transfer *t, const struct tensor_row *inside)
{
	const struct tensor_row r = whole_pieces(t, inside);
	const uint32_t e = t->box.element_bytes;

	if (!may_access(t, &r, true))
		return false;
	move_bytes(t, r.offset + r.skip * e, (uint8_t *)(uintptr_t)r.at, r.n * e, false);
	return true;
}

static bool reduce_row(const struct transfer *t, const struct tensor_row *inside)
{
	const struct tensor_row r = whole_pieces(t, inside);
	const struct tensor_copy *c = t->i->object;
	const unsigned type = t->box.map->type;
	const uint32_t e = t->box.element_bytes;
	struct warp *w = &t->s->w;
	struct insn step = { .src = t->i->src,
			     .op = c->op[type],
			     .d = OPREF(BANK_SCRATCH, 0),
			     .c = OPREF(BANK_SCRATCH, 0),
			     .b = OPREF(BANK_SCRATCH, REDUCE_VALUE_AT),
			     .a = OPREF(BANK_SCRATCH, ADDRESS_AT),
			     .flags = SPACE_GLOBAL };

	if (!c->step[type]) {
		gpul_fault_text(t->s, t->i, GPUL_EXEC_ILLEGAL_INSTRUCTION, t->lane,
				"this reduction is not defined for the type of the tensor map");
		return false;
	}
	for (uint32_t k = 0; k < r.n; k++) {
		U64(w, step.a)[t->lane] = r.at + k * e;
		move_bytes(t, r.offset + (r.skip + k) * e, (uint8_t *)opptr(w, step.b) + t->lane * e, e, false);
		if (c->step[type](w, &step) != &step + 1)
			return false;
	}
	return true;
}

/* ---- the copy of one lane --------------------------------------------------------------------------------------------- */

/* Read the tensor map and the coordinates of the box; false: a fault. */
static bool read_map(struct transfer *t)
{
	const struct tensor_copy *c = t->i->object;
	const gpul_tensor_map *m;
	struct access x;

	if (resolve_each(t->s, &c->map, GPUL_TENSOR_MAP_ALIGN, false, &x))
		return false;
	m = (const gpul_tensor_map *)(uintptr_t)x.each[t->lane];
	if (!tensor_map_is_valid(m, c->rank, c->im2col)) {
		gpul_fault_text(t->s, t->i, GPUL_EXEC_ILLEGAL_INSTRUCTION, t->lane,
				"there is no tensor map of %u dimensions%s at this address", c->rank, c->im2col ? " and mode im2col" : "");
		return false;
	}
	measure_tensor_box(m, &t->box);
	place_tensor_box(&t->s->w, c, t->lane, &t->box);
	if (m->interleave || t->box.at[0] * (int64_t)t->box.element_bytes % PIECE == 0)
		return true;
	gpul_fault_text(
		t->s, t->i, GPUL_EXEC_ILLEGAL_INSTRUCTION, t->lane,
		"a tensor copy starts at coordinate %lld of dimension 0, which is %lld bytes from the start of a row; the hardware needs a "
		"multiple of 16 bytes",
		(long long)t->box.at[0], (long long)t->box.at[0] * t->box.element_bytes);
	return false;
}

/* Find the box in shared memory, which is that of block `other`, or, if this is NULL, that of the block to which the address belongs.
 * Returns false after a fault. */
static bool find_shared(struct transfer *t, const struct block *other)
{
	const struct tensor_copy *c = t->i->object;
	const uint32_t at = (uint32_t)lane_address(t->s, &c->shared, t->lane), offset = at & ((1u << CLUSTER_RANK_AT) - 1);
	const struct block *b = other ? other : cluster_block(t->s->block, at);
	const uint64_t bytes = t->box.rows * tensor_row_pitch(&t->box);

	b = b ? b : t->s->block;
	t->shared = b->shared;
	t->to = offset;
	if (offset % 128 == 0 && offset <= b->shared_bytes && bytes <= b->shared_bytes - offset)
		return true;
	gpul_fault_text(t->s, t->i, offset % 128 ? GPUL_EXEC_MISALIGNED : GPUL_EXEC_ILLEGAL_ADDRESS, t->lane,
			"a tensor copy needs %llu bytes at 0x%x of shared memory, which has %u bytes; the address must "
			"be a multiple of 128",
			(unsigned long long)bytes, offset, b->shared_bytes);
	return false;
}

static bool copy_rows(struct transfer *t, bool (*one)(const struct transfer *, const struct tensor_row *))
{
	for (uint32_t k = 0; k < t->box.rows; k++) {
		const struct tensor_row r = tensor_row_of(&t->box, k);

		if (!one(t, &r))
			return false;
	}
	return true;
}

/* Perform complete_tx of a load's bytes on the mbarrier, which is at the same offset in each receiving block. */
static bool complete_load(struct transfer *t, const struct block *other)
{
	const struct tensor_copy *c = t->i->object;
	const uint32_t at = (uint32_t)lane_address(t->s, &c->barrier, t->lane), offset = at & ((1u << CLUSTER_RANK_AT) - 1);
	const uint32_t bytes = (uint32_t)t->box.rows * t->box.row_bytes;
	struct access x;

	if (!other) {
		if (resolve_each(t->s, &c->barrier, 8, true, &x))
			return false;
		update_mbarrier(&c->barrier, (mbarrier_word *)(uintptr_t)x.each[t->lane], 0, bytes);
	} else if (offset % 8 == 0 && offset + 8 <= other->shared_bytes) {
		update_mbarrier(&c->barrier, (mbarrier_word *)(void *)(other->shared + offset), 0, bytes);
	}
	t->s->block->progressed = true;
	return true;
}

/* Check the coordinates at which the copy starts.  Measured on an H200: loads may start outside of the tensor; stores and reductions may
 * not.  With an im2col map, every copy must start at a pixel of the map. */
static bool may_begin(const struct transfer *t, bool writes)
{
	const gpul_tensor_map *m = t->box.map;
	const char *needed = NULL;
	unsigned d = 0;

	for (unsigned k = 0; !needed && k < m->rank; k++) {
		const int64_t at = t->box.at[k];
		const bool spatial = tensor_is_spatial(m, k);

		d = k;
		if (writes && at < 0)
			needed = "a coordinate of at least 0";
		else if (writes && spatial && (tensor_first_pixel(m, k) < 0 || tensor_end_of_pixels(m, k) > (int64_t)m->last[k] + 1))
			needed = "a map whose pixels are all inside of the tensor";
		else if (spatial && (at < tensor_first_pixel(m, k) || at >= tensor_end_of_pixels(m, k)))
			needed = "the coordinate of a pixel of the map";
	}
	if (needed)
		gpul_fault_text(t->s, t->i, GPUL_EXEC_ILLEGAL_INSTRUCTION, t->lane,
				"a tensor copy begins at coordinate %lld of dimension %u; there the hardware needs %s",
				(long long)t->box.at[d], d, needed);
	return !needed;
}

static bool load_box(struct transfer *t)
{
	const struct tensor_copy *c = t->i->object;
	const struct cluster *all = t->s->block->cluster;

	if (!may_begin(t, false))
		return false;
	if (!c->multicast || !all)
		return find_shared(t, NULL) && copy_rows(t, load_row) && complete_load(t, NULL);
	for (uint32_t ranks = U16(&t->s->w, c->ranks)[t->lane]; ranks; ranks &= ranks - 1) {
		struct block *b = first_lane(ranks) < all->n_blocks ? all->block[first_lane(ranks)] : NULL;

		if (b && (!find_shared(t, b) || !copy_rows(t, load_row) || !complete_load(t, b)))
			return false;
	}
	return true;
}

static bool store_box(struct transfer *t)
{
	return may_begin(t, true) && find_shared(t, NULL) && copy_rows(t, store_row);
}

static bool reduce_box(struct transfer *t)
{
	return may_begin(t, true) && find_shared(t, NULL) && copy_rows(t, reduce_row);
}

static const struct insn *each_lane(struct warp *w, const struct insn *i, bool (*one)(struct transfer *))
{
	const uint32_t mask = w->mask;
	bool ok = true;

	for (uint32_t rest = mask; rest && ok; rest &= rest - 1) {
		struct transfer t = { .s = state_of(w), .i = i, .lane = first_lane(rest) };

		w->mask = rest & -rest;
		ok = read_map(&t) && one(&t);
	}
	w->mask = mask;
	return ok ? i + 1 : state_of(w)->limit;
}

HANDLER(TENSOR_LOAD)
{
	return each_lane(w, i, load_box);
}
HANDLER(TENSOR_STORE)
{
	return each_lane(w, i, store_box);
}
HANDLER(TENSOR_REDUCE)
{
	return each_lane(w, i, reduce_box);
}

/* ---- changes of tensor maps: PTX ISA 9.7.9.28 -------------------------------------------------------------------------- */

/* Find the host addresses of the lanes' maps; false: a fault.  Each half of 64 bytes is checked separately, because resolve_each() requires
 * alignment to the size, and maps are aligned to 64 bytes. */
static bool find_maps(struct warp_state *s, const struct insn *address, bool write, struct access *x)
{
	struct insn second = *address;
	struct access half;

	second.imm += GPUL_TENSOR_MAP_ALIGN;
	return !resolve_each(s, address, GPUL_TENSOR_MAP_ALIGN, write, x) && !resolve_each(s, &second, GPUL_TENSOR_MAP_ALIGN, write, &half);
}

static void replace_field(gpul_tensor_map *m, const struct tensor_replace *r, uint64_t value)
{
	switch (r->field) {
	case FIELD_ADDRESS:
		m->address = value;
		break;
	case FIELD_RANK:
		m->rank = (uint8_t)(value + 1);
		break;
	case FIELD_BOX:
		m->box[r->dimension] = (uint16_t)value;
		break;
	case FIELD_DIMENSION:
		m->last[r->dimension] = (uint32_t)value - 1;
		break;
	case FIELD_STRIDE:
		m->stride[r->dimension] = value;
		break;
	case FIELD_STEP:
		m->step[r->dimension] = (uint8_t)value;
		break;
	case FIELD_TYPE:
		m->type = (uint8_t)value;
		break;
	case FIELD_INTERLEAVE:
		m->interleave = (uint8_t)value;
		break;
	case FIELD_SWIZZLE:
		m->swizzle = (uint8_t)value;
		break;
	case FIELD_FILL:
		m->fill_nan = value;
		break;
	default:
		break;
	}
}

HANDLER(TENSOR_MAP_REPLACE)
{
	const struct tensor_replace *r = i->object;
	const bool wide = r->field == FIELD_ADDRESS || r->field == FIELD_STRIDE;
	struct access x;

	if (!find_maps(state_of(w), &r->map, true, &x))
		return state_of(w)->limit;
	EACH_ACTIVE(l, w)
	replace_field((gpul_tensor_map *)(uintptr_t)x.each[l], r, wide ? U64(w, r->value)[l] : U32(w, r->value)[l]);
	return i + 1;
}

HANDLER(TENSOR_MAP_COPY)
{
	const struct tensor_map_copy *c = i->object;
	struct access to, from;

	if (!find_maps(state_of(w), &c->from, false, &from) || !find_maps(state_of(w), &c->to, true, &to))
		return state_of(w)->limit;
	EACH_ACTIVE(l, w)
	memmove((void *)(uintptr_t)to.each[l], (const void *)(uintptr_t)from.each[l], GPUL_TENSOR_MAP_BYTES);
	return i + 1;
}
