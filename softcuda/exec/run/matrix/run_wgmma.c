/* run_wgmma.c — wgmma.mma_async: each warp computes 16 of the 64 rows.  Matrices in shared memory are read in pieces of 16 bytes. */
#include "softcuda/exec/run/mma_sum_internal.h"
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/wgmma_internal.h"

enum { PIECE_WORDS = 4, WARPS_OF_GROUP = 4 };

/* Read a piece of 16 bytes at this offset in shared memory; false: a fault was recorded. */
static bool read_piece(struct warp_state *s, const struct insn *i, uint32_t at, uint32_t words[PIECE_WORDS])
{
	if (at > s->shared_bytes || s->shared_bytes - at < 16) {
		gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_ADDRESS, first_lane(s->w.mask),
				"the matrix descriptor refers to 16 bytes at 0x%x of shared memory, which has %u bytes", at,
				s->shared_bytes);
		return false;
	}
	memcpy(words, s->shared + at, 16);
	return true;
}

/* Read `rows` rows of A or columns of B, from `first` on; words[r] receives the `pieces` 16-byte pieces of row r, in the order of k.
 * by_column: elements with the same k are contiguous in memory; only 16-bit elements can be stored in this way. */
static bool read_matrix(struct warp_state *s, const struct insn *i, uint64_t descriptor, bool by_column, unsigned first, unsigned rows,
			unsigned pieces, uint32_t words[][MAX_WGMMA_WORDS])
{
	const struct matrix_address m = matrix_address_of(descriptor);
	uint16_t piece[8];

	if (!by_column) {
		for (unsigned r = 0; r < rows; r++)
			for (unsigned p = 0; p < pieces; p++)
				if (!read_piece(s, i, piece_of_row(&m, first + r, p), words[r] + PIECE_WORDS * p))
					return false;
		return true;
	}
	for (unsigned k = 0; k < 8 * pieces; k++)
		for (unsigned p = 0; p < rows / 8; p++) {
			if (!read_piece(s, i, piece_of_column(&m, k, first / 8 + p), (uint32_t *)(void *)piece))
				return false;
			for (unsigned r = 0; r < 8; r++)
				memcpy((uint8_t *)words[8 * p + r] + 2 * k, &piece[r], 2);
		}
	return true;
}

/* Read the rows of A from registers: lane 4 g + t has elements of rows g and g + 8, as in mma. */
static void read_registers(const struct warp *w, const struct wgmma_form *f, uint32_t words[TILE_ROWS][MAX_WGMMA_WORDS])
{
	for (unsigned r = 0; r < 4; r++)
		for (unsigned l = 0; l < LANES; l++)
			words[l / 4 + 8 * (r % 2)][4 * (r / 2) + l % 4] = U32(w, f->x[r])[l];
}

static bool read_a(struct warp_state *s, const struct insn *i, uint32_t words[TILE_ROWS][MAX_WGMMA_WORDS])
{
	const struct wgmma_form *f = i->object;
	const unsigned first = TILE_ROWS * (s->index % WARPS_OF_GROUP);

	if (f->a_in_registers) {
		read_registers(&s->w, f, words);
		return true;
	}
	return read_matrix(s, i, U64(&s->w, f->a)[first_lane(s->w.mask)], f->a_by_column, first, TILE_ROWS, WGMMA_PIECES, words);
}

static bool read_b(struct warp_state *s, const struct insn *i, uint32_t words[][MAX_WGMMA_WORDS])
{
	const struct wgmma_form *f = i->object;

	return read_matrix(s, i, U64(&s->w, f->b)[first_lane(s->w.mask)], f->b_by_row, 0, f->columns, wgmma_b_pieces(f), words);
}

/* ---- floating point ---------------------------------------------------------------------------------------------- */

/* Convert elements to float: element k of row r is stored in x[k * stride + r], and its exponent in e[k * stride + r].  If place is
 * not NULL, these indices have place[r * MAX_K + k] instead of k. */
static void widen_rows(uint32_t words[][MAX_WGMMA_WORDS], unsigned rows, unsigned pieces, unsigned type, bool negate, struct operands *o,
		       float *x, int32_t *e, unsigned stride, const uint8_t *place)
{
	const unsigned n = PIECE_WORDS * pieces * matrix_elements(type);
	float v[4 * LANES];
	int32_t exponent[4 * LANES];

	for (unsigned r = 0; r < rows; r++) {
		widen_words(words[r], PIECE_WORDS * pieces, type, v);
		find_exponents(v, exponent, n, type == MATRIX_E4M3 ? -6 : least_exponent(type), o);
		for (unsigned k = 0; k < n; k++) {
			const unsigned at = (place ? place[r * MAX_K + k] : k) * stride + r;

			x[at] = negate ? -v[k] : v[k];
			e[at] = exponent[k];
		}
	}
}

static void find_places(const struct warp *w, const struct wgmma_form *f, uint8_t place[TILE_ROWS][MAX_K])
{
	for (unsigned r = 0; r < TILE_ROWS; r++)
		for (unsigned k = 0; k < f->k / 2u; k++)
			place[r][k] = (uint8_t)sparse_place(f->a_type, f->k, f->selector, U32(w, f->metadata), r, k);
}

static void widen_a(const struct warp *w, const struct wgmma_form *f, uint32_t words[][MAX_WGMMA_WORDS], struct operands *o)
{
	uint8_t place[TILE_ROWS][MAX_K];

	if (f->sparse)
		find_places(w, f, place);
	for (unsigned k = 0; f->sparse && k < f->k; k++)
		for (unsigned r = 0; r < TILE_ROWS; r++) {
			o->x[k][r] = 0;
			o->xe[k][r] = NOT_STORED;
		}
	widen_rows(words, TILE_ROWS, WGMMA_PIECES, f->a_type, f->negate_a, o, o->x[0], o->xe[0], TILE_ROWS, f->sparse ? place[0] : NULL);
}

/* Load the sums of eight columns from registers if `add` is true; else set them to zero. */
static void load_columns(const struct warp *w, const struct wgmma_form *f, unsigned tile, bool add, float d[TILE_COLUMNS][TILE_ROWS])
{
	const bool half = f->d_type == MATRIX_F16;
	float v[2 * LANES];

	memset(d, 0, TILE_COLUMNS * sizeof d[0]);
	for (unsigned r = 0; add && r < (half ? 2 : 4); r++) {
		const opref reg = f->d[(half ? 2 : 4) * tile + r];

		if (half)
			widen_f16(v, opptr(w, reg), 2 * LANES);
		for (unsigned l = 0; l < LANES; l++)
			if (half)
				for (unsigned k = 0; k < 2; k++)
					d[l % 4 * 2 + k][l / 4 + 8 * r] = v[2 * l + k];
			else
				d[l % 4 * 2 + r % 2][l / 4 + 8 * (r / 2)] = F32(w, reg)[l];
	}
}

static void store_columns(const struct warp *w, const struct wgmma_form *f, unsigned tile, float d[TILE_COLUMNS][TILE_ROWS])
{
	const bool half = f->d_type == MATRIX_F16;
	float v[2 * LANES];
	uint16_t h[2 * LANES];

	for (unsigned r = 0; r < (half ? 2 : 4); r++) {
		const opref reg = f->d[(half ? 2 : 4) * tile + r];

		if (!half) {
			EACH_ACTIVE(l, w)
			F32(w, reg)[l] = d[l % 4 * 2 + r % 2][l / 4 + 8 * (r / 2)];
			continue;
		}
		for (unsigned l = 0; l < 2 * LANES; l++)
			v[l] = d[l % 8][l / 8 + 8 * r];
		narrow_f16(h, v, 2 * LANES);
		EACH_ACTIVE(l, w)
		memcpy(&U32(w, reg)[l], &h[2 * l], 4);
	}
}

HANDLER(WGMMA_FLOAT)
{
	const struct wgmma_form *f = i->object;
	const bool add = *PRED(w, f->scale_d) >> first_lane(w->mask) & 1;
	uint32_t a[TILE_ROWS][MAX_WGMMA_WORDS], b[MAX_WGMMA_COLUMNS][MAX_WGMMA_WORDS];
	float d[TILE_COLUMNS][TILE_ROWS];
	struct operands o = { .wide = false };

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	if (!read_a(state_of(w), i, a) || !read_b(state_of(w), i, b))
		return state_of(w)->limit;
	widen_a(w, f, a, &o);
	for (unsigned tile = 0; tile < f->columns / 8u; tile++) {
		widen_rows(b + 8 * tile, TILE_COLUMNS, wgmma_b_pieces(f), f->b_type, f->negate_b, &o, o.y[0], o.ye[0], TILE_COLUMNS, NULL);
		load_columns(w, f, tile, add, d);
		sum_tile(&o, &f->sum, f->d_type == MATRIX_F16, f->k, d);
		store_columns(w, f, tile, d);
	}
	return i + 1;
}

/* ---- integers and bits ------------------------------------------------------------------------------------------- */

static int32_t multiply_words(const uint32_t *x, const uint32_t *y, unsigned n, unsigned x_type, unsigned y_type)
{
	int32_t sum = 0;

	for (unsigned k = 0; k < n; k++) {
		if (x_type == MATRIX_B1) {
			sum += __builtin_popcount(x[k] & y[k]);
			continue;
		}
		for (unsigned e = 0; e < 32; e += 8) {
			const uint8_t p = (uint8_t)(x[k] >> e), q = (uint8_t)(y[k] >> e);

			sum += (x_type == MATRIX_S8 ? (int8_t)p : (int32_t)p) * (y_type == MATRIX_S8 ? (int8_t)q : (int32_t)q);
		}
	}
	return sum;
}

/* Expand a sparse matrix A of 1-byte elements: move the stored elements to their columns, and set all other elements to zero. */
static void spread_bytes(const struct warp *w, const struct wgmma_form *f, uint32_t a[TILE_ROWS][MAX_WGMMA_WORDS])
{
	for (unsigned r = 0; r < TILE_ROWS; r++) {
		uint8_t stored[WGMMA_K_BYTES], *to = (uint8_t *)a[r];

		memcpy(stored, a[r], sizeof stored);
		memset(a[r], 0, sizeof a[r]);
		for (unsigned k = 0; k < WGMMA_K_BYTES; k++)
			to[sparse_place(f->a_type, f->k, f->selector, U32(w, f->metadata), r, k)] = stored[k];
	}
}

HANDLER(WGMMA_INT)
{
	const struct wgmma_form *f = i->object;
	const unsigned words = PIECE_WORDS * wgmma_b_pieces(f);
	const bool add = *PRED(w, f->scale_d) >> first_lane(w->mask) & 1;
	uint32_t a[TILE_ROWS][MAX_WGMMA_WORDS], b[MAX_WGMMA_COLUMNS][MAX_WGMMA_WORDS];

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	if (!read_a(state_of(w), i, a) || !read_b(state_of(w), i, b))
		return state_of(w)->limit;
	if (f->sparse)
		spread_bytes(w, f, a);
	for (unsigned r = 0; r < f->n_d; r++)
		EACH_ACTIVE(l, w)
		{
			const uint32_t *x = a[l / 4 + 8 * (r / 2 % 2)], *y = b[8 * (r / 4) + l % 4 * 2 + r % 2];
			const int64_t c = add ? S32(w, f->d[r])[l] : 0, exact = c + multiply_words(x, y, words, f->a_type, f->b_type);
			const int64_t most = exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : exact;

			U32(w, f->d[r])[l] = (uint32_t)(uint64_t)(f->satfinite ? most : exact);
		}
	return i + 1;
}
