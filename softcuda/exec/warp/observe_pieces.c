/* observe_pieces.c — describes to tools the accesses of instructions whose lanes access several pieces of memory: tensor copies,
 * changes of tensor maps, wgmma, surfaces. */
#include "softcuda/exec/tensor_internal.h"
#include "softcuda/exec/texture/texture_form_internal.h"
#include "softcuda/exec/warp/access_internal.h"
#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/exec/wgmma_internal.h"

enum { WARPS_OF_GROUP = 4 };

struct visit { /* a lane, for whose pieces of memory the function call() is called */
	struct warp_state *s;
	memory_piece_fn *call;
	void *context;
	struct memory_piece piece;
};

static bool is_surface(unsigned op)
{
	return op == OP_SULD || op == OP_SUST || op == OP_SURED;
}

static bool is_tensor_copy(unsigned op)
{
	return op == OP_TENSOR_LOAD || op == OP_TENSOR_STORE || op == OP_TENSOR_REDUCE;
}

static bool is_map_change(unsigned op)
{
	return op == OP_TENSOR_MAP_REPLACE || op == OP_TENSOR_MAP_COPY;
}

static bool is_wgmma(unsigned op)
{
	return op == OP_WGMMA_FLOAT || op == OP_WGMMA_INT;
}

bool gpul_insn_has_pieces(const struct insn *i)
{
	return is_surface(i->op) || is_tensor_copy(i->op) || i->op == OP_CP_MULTICAST || is_map_change(i->op) || is_wgmma(i->op);
}

static void visit_piece(struct visit *v, enum access_kind kind, unsigned space, uint64_t at, uint32_t bytes)
{
	v->piece.kind = kind;
	v->piece.space = (uint8_t)space;
	v->piece.at = at;
	v->piece.bytes = bytes;
	if (bytes)
		v->call(v->context, &v->piece);
}

/* ---- tensor copies ------------------------------------------------------------------------------------------------- */

/* Return the tensor map of a lane; NULL if the instruction will fault. */
static const gpul_tensor_map *find_map(struct visit *v, const struct insn *i)
{
	const struct tensor_copy *c = i->object;
	const struct insn *from = &c->map;
	const struct warp_state *s = v->s;
	const uint64_t at = lane_address(s, from, v->piece.lane);
	const unsigned space = from->flags & SPACE_MASK;
	const gpul_tensor_map *m;

	if (space == SPACE_PARAM)
		m = at + GPUL_TENSOR_MAP_BYTES <= s->param_bytes ? (const void *)((const uint8_t *)s->params + at) : NULL;
	else if (at - (uintptr_t)s->params < s->param_bytes && s->param_bytes - (at - (uintptr_t)s->params) >= GPUL_TENSOR_MAP_BYTES)
		m = (const void *)(uintptr_t)at;
	else
		m = range_covers(s->cache, i->src, at, GPUL_TENSOR_MAP_BYTES, false) ? (const void *)(uintptr_t)at : NULL;
	return m && at % GPUL_TENSOR_MAP_ALIGN == 0 && tensor_map_is_valid(m, c->rank, c->im2col) ? m : NULL;
}

/* A tensor copy of one lane; its pieces are passed to v->call(). */
struct box_visit {
	struct visit *v;
	struct tensor_box box;
	unsigned op;
	uint32_t to; /* offset of the box in shared memory */
	unsigned n;
	const struct block *block[GPUL_EXEC_CLUSTER_BLOCKS]; /* the n blocks whose shared memory contains the box */
};

static void find_blocks(struct box_visit *b, const struct insn *i)
{
	const struct tensor_copy *c = i->object;
	struct warp_state *s = b->v->s;
	const uint32_t at = (uint32_t)lane_address(s, &c->shared, b->v->piece.lane);
	const struct cluster *all = s->block->cluster;
	const struct block *other = cluster_block(s->block, at);

	b->to = at & ((1u << CLUSTER_RANK_AT) - 1);
	if (!c->multicast || !all) {
		b->block[b->n++] = other ? other : s->block;
		return;
	}
	for (uint32_t ranks = U16(&s->w, c->ranks)[b->v->piece.lane]; ranks; ranks &= ranks - 1)
		if (first_lane(ranks) < all->n_blocks && all->block[first_lane(ranks)])
			b->block[b->n++] = all->block[first_lane(ranks)];
}

static void visit_shared(struct box_visit *b, enum access_kind kind, uint32_t offset, uint32_t bytes, bool copies)
{
	struct visit *v = b->v;

	for (unsigned k = 0; k < b->n; k++) {
		v->piece.block = b->block[k];
		v->piece.copies = copies;
		if (offset <= b->block[k]->shared_bytes && bytes <= b->block[k]->shared_bytes - offset)
			visit_piece(v, kind, SPACE_SHARED, offset, bytes);
	}
	v->piece.block = v->s->block;
	v->piece.copies = false;
}

/* Visit a part of a row of the box: `bytes` bytes at an offset in the box, and, if the part is inside of the tensor, at a global
 * address. */
static void visit_part(struct box_visit *b, uint32_t offset, uint64_t global, uint32_t bytes, bool inside)
{
	const gpul_tensor_map *m = b->box.map;
	uint32_t n;

	for (; bytes; bytes -= n, offset += n, global += n) {
		const uint32_t at = tensor_swizzle(m, b->to + offset);

		n = m->swizzle ? TENSOR_PIECE - (b->to + offset) % TENSOR_PIECE : bytes;
		n = n < bytes ? n : bytes;
		if (b->op == OP_TENSOR_LOAD) {
			if (inside)
				visit_piece(b->v, ACCESS_READ, SPACE_GLOBAL, global, n);
			visit_shared(b, ACCESS_WRITE, at, n, inside);
		} else if (inside) {
			visit_shared(b, ACCESS_READ, at, n, false);
			b->v->piece.copies = true;
			visit_piece(b->v, b->op == OP_TENSOR_STORE ? ACCESS_WRITE : ACCESS_ATOMIC, SPACE_GLOBAL, global, n);
			b->v->piece.copies = false;
		}
	}
}

static void visit_tensor_copy(struct visit *v, const struct insn *i)
{
	const struct tensor_copy *c = i->object;
	const gpul_tensor_map *m = find_map(v, i);
	struct box_visit b = { .v = v, .op = i->op };

	if (!m)
		return;
	measure_tensor_box(m, &b.box);
	place_tensor_box(&v->s->w, c, v->piece.lane, &b.box);
	find_blocks(&b, i);
	v->piece.async = true;
	if (b.box.rows > v->s->block->shared_bytes)
		return; /* the instruction will fault */
	for (uint32_t k = 0; k < b.box.rows; k++) {
		const struct tensor_row r = tensor_row_of(&b.box, k);
		const uint32_t e = b.box.element_bytes, before = r.skip * e, inside = r.n * e;

		visit_part(&b, r.offset, 0, before, false);
		visit_part(&b, r.offset + before, r.at, inside, true);
		visit_part(&b, r.offset + before + inside, 0, b.box.row_bytes - before - inside, false);
	}
}

/* ---- bulk copies to several blocks ----------------------------------------------------------------------------------- */

static void visit_multicast(struct visit *v, const struct insn *i)
{
	const struct async_copy *c = i->object;
	struct warp_state *s = v->s;
	const unsigned lane = v->piece.lane;
	const uint32_t to = (uint32_t)lane_address(s, &c->to, lane) & ((1u << CLUSTER_RANK_AT) - 1),
		       bytes = U32(&s->w, c->source_bytes)[lane];
	const struct cluster *all = s->block->cluster;
	struct box_visit b = { .v = v };

	v->piece.async = true;
	visit_piece(v, ACCESS_READ, SPACE_GLOBAL, lane_address(s, &c->from, lane), bytes);
	for (uint32_t ranks = U16(&s->w, c->ranks)[lane]; ranks; ranks &= ranks - 1)
		if (!all && first_lane(ranks) == 0)
			b.block[b.n++] = s->block;
		else if (all && first_lane(ranks) < all->n_blocks && all->block[first_lane(ranks)])
			b.block[b.n++] = all->block[first_lane(ranks)];
	visit_shared(&b, ACCESS_WRITE, to, bytes, true);
}

/* ---- tensor maps: the instructions access all bytes of a map (PTX ISA 9.7.9.28) ------------------------------------------- */

static void visit_map(struct visit *v, enum access_kind kind, const struct insn *address)
{
	const uint64_t at = lane_address(v->s, address, v->piece.lane), offset = at - (uintptr_t)v->s->shared;
	const unsigned space = address->flags & SPACE_MASK;

	if (space == SPACE_GENERIC && offset < v->s->shared_bytes)
		visit_piece(v, kind, SPACE_SHARED, offset, GPUL_TENSOR_MAP_BYTES);
	else
		visit_piece(v, kind, space == SPACE_GENERIC ? SPACE_GLOBAL : space, at, GPUL_TENSOR_MAP_BYTES);
}

static void visit_map_change(struct visit *v, const struct insn *i)
{
	const struct tensor_map_copy *c = i->object;

	if (i->op == OP_TENSOR_MAP_REPLACE) {
		visit_map(v, ACCESS_WRITE, &((const struct tensor_replace *)i->object)->map);
		return;
	}
	visit_map(v, ACCESS_READ, &c->from);
	v->piece.copies = true;
	visit_map(v, ACCESS_WRITE, &c->to);
}

/* ---- wgmma: the matrices in shared memory, as run_wgmma.c reads them ---------------------------------------------------- */

static void visit_matrix(struct visit *v, uint64_t descriptor, bool by_column, unsigned first, unsigned rows, unsigned pieces)
{
	const struct matrix_address m = matrix_address_of(descriptor);

	if (by_column)
		for (unsigned k = 0; k < 8 * pieces; k++)
			for (unsigned p = 0; p < rows / 8; p++)
				visit_piece(v, ACCESS_READ, SPACE_SHARED, piece_of_column(&m, k, first / 8 + p), 16);
	else
		for (unsigned r = 0; r < rows; r++)
			for (unsigned p = 0; p < pieces; p++)
				visit_piece(v, ACCESS_READ, SPACE_SHARED, piece_of_row(&m, first + r, p), 16);
}

static void visit_wgmma(struct visit *v, const struct insn *i)
{
	const struct wgmma_form *f = i->object;

	v->piece.async = true;
	if (!f->a_in_registers)
		visit_matrix(v, U64(&v->s->w, f->a)[v->piece.lane], f->a_by_column, TILE_ROWS * (v->s->index % WARPS_OF_GROUP), TILE_ROWS,
			     WGMMA_PIECES);
	visit_matrix(v, U64(&v->s->w, f->b)[v->piece.lane], f->b_by_row, 0, f->columns, wgmma_b_pieces(f));
}

/* ---- surfaces -------------------------------------------------------------------------------------------------------- */

static void visit_surface(struct visit *v, const struct insn *i)
{
	const enum access_kind kind = i->op == OP_SULD ? ACCESS_READ : i->op == OP_SUST ? ACCESS_WRITE : ACCESS_ATOMIC;
	struct surface_spot spot;

	if (gpul_surface_find(&v->s->w, i->object, v->piece.lane, &spot) == SURFACE_FOUND)
		visit_piece(v, kind, SPACE_SURFACE, (uintptr_t)spot.at, (uint32_t)spot.bytes);
}

void gpul_insn_pieces(struct warp_state *s, const struct insn *i, uint32_t on, memory_piece_fn *call, void *context)
{
	const uint32_t lanes = is_wgmma(i->op) ? on & -on : on; /* one call for the warp, attributed to its first lane */

	EACH_LANE_OF(l, lanes)
	{
		struct visit v = { .s = s, .call = call, .context = context, .piece = { .lane = (uint8_t)l, .block = s->block } };

		if (is_tensor_copy(i->op))
			visit_tensor_copy(&v, i);
		else if (i->op == OP_CP_MULTICAST)
			visit_multicast(&v, i);
		else if (is_map_change(i->op))
			visit_map_change(&v, i);
		else if (is_wgmma(i->op))
			visit_wgmma(&v, i);
		else if (is_surface(i->op))
			visit_surface(&v, i);
	}
}

/* ---- sums of pieces ------------------------------------------------------------------------------------------------------ */

struct sums {
	const struct block *own;
	struct lane_accesses *out;
	unsigned n;
};

static void add_piece(void *context, const struct memory_piece *p)
{
	struct sums *sums = context;
	struct lane_accesses *a = sums->out;

	if (p->block != sums->own)
		return;
	while (a < sums->out + sums->n && (a->kind != p->kind || a->space[first_lane(a->lanes)] != p->space))
		a++;
	if (a == sums->out + MAX_INSN_ACCESSES)
		return;
	if (a == sums->out + sums->n) {
		sums->n++;
		a->kind = p->kind;
		a->order = ORDER_WEAK;
		a->scope = SCOPE_GPU;
		a->async = p->async;
		a->mbarrier = false;
		a->lanes = 0;
	}
	if (!(a->lanes >> p->lane & 1)) {
		a->lanes |= 1u << p->lane;
		a->bytes[p->lane] = 0;
		a->space[p->lane] = p->space;
		a->at[p->lane] = p->at;
	}
	a->bytes[p->lane] += p->bytes;
	a->at[p->lane] = p->at < a->at[p->lane] ? p->at : a->at[p->lane];
}

unsigned gpul_insn_piece_sums(struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses out[MAX_INSN_ACCESSES])
{
	struct sums sums = { .own = s->block, .out = out };

	gpul_insn_pieces(s, i, on, add_piece, &sums);
	return sums.n;
}
