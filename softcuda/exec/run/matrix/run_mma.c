/* run_mma.c — mma and wmma of integers and bits (exact), of f64 (PTX defines the order of the sum), and mma.m8n8k4 of f16. */
#include "softcuda/exec/matrix_internal.h"
#include "softcuda/exec/run/half_internal.h"
#include "softcuda/exec/run/run_internal.h"

/* ---- integers ---------------------------------------------------------------------------------------------------- */

struct integers {
	int32_t x[MAX_K][TILE_ROWS], y[MAX_K][TILE_COLUMNS];
};

/* Return element k of a register word. */
static inline int32_t integer_element(uint32_t word, unsigned type, unsigned k)
{
	switch (type) {
	case MATRIX_S8:
		return (int8_t)(word >> 8 * k);
	case MATRIX_U8:
		return (uint8_t)(word >> 8 * k);
	case MATRIX_S4:
		return (int32_t)(word << (28 - 4 * k)) >> 28;
	default:
		return word >> 4 * k & 15;
	}
}

static void load_integers(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, struct integers *o)
{
	const unsigned groups = f->rows / 8, nx = matrix_elements(f->x_type), ny = matrix_elements(f->y_type);

	if (groups == 1 || f->sparse)
		memset(o->x, 0, f->k * sizeof o->x[0]);
	for (unsigned r = 0; r < f->n_x; r++)
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned e = 0; e < nx; e++) {
				const unsigned k = f->sparse ? sparse_position(f, U32(w, f->metadata), l, r, e)
							     : 4 * nx * (r / groups) + nx * (l % 4) + e;

				o->x[k][l / 4 + 8 * (r % groups)] = integer_element(U32(w, t->x[r])[l], f->x_type, e);
			}
	for (unsigned r = 0; r < f->n_y; r++)
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned k = 0; k < ny; k++)
				o->y[4 * ny * r + ny * (l % 4) + k][l / 4] = integer_element(U32(w, t->y[r])[l], f->y_type, k);
}

static int32_t add_sum(const struct mma_form *f, int32_t sum, int32_t c)
{
	const int64_t exact = (int64_t)sum + c;

	if (f->satfinite)
		return exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : (int32_t)exact;
	return (int32_t)(uint32_t)(uint64_t)exact;
}

/* Add C to the sums of a tile, sum[column][row], and store the results in D. */
static void store_integers(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, int32_t sum[TILE_COLUMNS][TILE_ROWS])
{
	for (unsigned r = 0; r < f->n_d; r++)
		EACH_ACTIVE(l, w)
	S32(w, t->d[r])[l] = add_sum(f, sum[l % 4 * 2 + r % 2][l / 4 + 8 * (r / 2)], S32(w, t->c[r])[l]);
}

HANDLER(MMA_INT)
{
	const struct mma_form *f = i->object;
	int32_t sum[MAX_TILES][TILE_COLUMNS][TILE_ROWS] = { 0 };
	struct integers o;

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned t = 0; t < f->n_tiles; t++) {
		load_integers(w, f, &f->tile[t], &o);
		for (unsigned c = 0; c < TILE_COLUMNS; c++)
			for (unsigned k = 0; k < f->k; k++)
				for (unsigned r = 0; r < TILE_ROWS; r++)
					sum[t][c][r] += o.x[k][r] * o.y[k][c];
	}
	for (unsigned t = 0; t < f->n_tiles; t++)
		store_integers(w, f, &f->tile[t], sum[t]);
	return i + 1;
}

/* ---- bits: a register has 32 elements of one bit -------------------------------------------------------------------- */

HANDLER(MMA_BITS)
{
	const struct mma_form *f = i->object;
	const struct mma_tile *t = &f->tile[0];
	const unsigned groups = f->rows / 8;
	int32_t sum[TILE_COLUMNS][TILE_ROWS] = { 0 };

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned r = 0; r < f->n_x; r++)
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned c = 0; c < TILE_COLUMNS; c++) {
				const uint32_t x = U32(w, t->x[r])[l], y = U32(w, t->y[r / groups])[4 * c + l % 4];

				sum[c][l / 4 + 8 * (r % groups)] += __builtin_popcount(f->popc_and ? x & y : x ^ y);
			}
	store_integers(w, f, t, sum);
	return i + 1;
}

/* ---- f64: fma after fma, in ascending order of k -------------------------------------------------------------------- */

HANDLER(MMA_F64)
{
	const struct mma_form *f = i->object;
	const struct mma_tile *t = &f->tile[0];
	const unsigned groups = f->rows / 8;
	double x[16][TILE_ROWS] = { { 0 } }, y[16][TILE_COLUMNS], d[TILE_COLUMNS][TILE_ROWS] = { { 0 } };

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned l = 0; l < LANES; l++) {
		for (unsigned r = 0; r < f->n_x; r++)
			x[4 * (r / groups) + l % 4][l / 4 + 8 * (r % groups)] = F64(w, t->x[r])[l];
		for (unsigned r = 0; r < f->n_y; r++)
			y[4 * r + l % 4][l / 4] = F64(w, t->y[r])[l];
		for (unsigned r = 0; r < f->n_c; r++)
			d[l % 4 * 2 + r % 2][l / 4 + 8 * (r / 2)] = F64(w, t->c[r])[l];
	}
	for (unsigned c = 0; c < TILE_COLUMNS; c++)
		for (unsigned k = 0; k < f->k; k++)
			for (unsigned r = 0; r < TILE_ROWS; r++)
				d[c][r] = with_payload(fma(x[k][r], y[k][c], d[c][r]), y[k][c], d[c][r], x[k][r]);
	for (unsigned r = 0; r < f->n_d; r++)
		EACH_ACTIVE(l, w)
	F64(w, t->d[r])[l] = d[l % 4 * 2 + r % 2][l / 4 + 8 * (r / 2)];
	return i + 1;
}

/* ---- mma.m8n8k4 of f16: matrix q of four is in lanes 4 q to 4 q + 3 and 4 q + 16 to 4 q + 19 ----------------------------- */

struct quads {
	float a[8][4], b[4][8], c[8][8], d[8][8];
};

/* Compute the row and column of element e of C or D in lane l. */
static void place_of_sum(unsigned type, unsigned l, unsigned e, unsigned *row, unsigned *column)
{
	const unsigned half = l / 16 * 4;

	*row = type == MATRIX_F32 ? (l & 1) + (e & 2) + half : l % 4 + half;
	*column = type == MATRIX_F32 ? (e & 4) + (l & 2) + (e & 1) : e;
}

static void load_quads(const struct warp *w, const struct mma_form *f, unsigned l, struct quads *q)
{
	const struct mma_tile *t = &f->tile[0];
	const unsigned half = l / 16 * 4;

	for (unsigned e = 0; e < 4; e++) {
		const float a = f16_to_float((uint16_t)(U32(w, t->x[e / 2])[l] >> 16 * (e % 2)));
		const float b = f16_to_float((uint16_t)(U32(w, t->y[e / 2])[l] >> 16 * (e % 2)));

		if (f->a_by_column)
			q->a[e + half][l % 4] = a;
		else
			q->a[l % 4 + half][e] = a;
		if (f->b_by_row)
			q->b[l % 4][e + half] = b;
		else
			q->b[e][l % 4 + half] = b;
	}
	for (unsigned e = 0; e < 8; e++) {
		unsigned row, column;

		place_of_sum(f->c_type, l, e, &row, &column);
		q->c[row][column] = f->c_type == MATRIX_F32 ? F32(w, f->c[e])[l]
							    : f16_to_float((uint16_t)(U32(w, f->c[e / 2])[l] >> 16 * (e % 2)));
	}
}

/* Compute mma.m8n8k4 in the same steps as sm_90, for which ptxas generates fma and add instructions of f32. */
static void multiply_quads(const struct mma_form *f, struct quads *q)
{
	for (unsigned r = 0; r < 8; r++)
		for (unsigned c = 0; c < 8; c++) {
			const float *a = q->a[r];
			const float p = a[0] * q->b[0][c], high = a[2] * q->b[2][c];

			if (f->d_type == MATRIX_F16)
				q->d[r][c] = q->c[r][c] + fmaf(a[1], q->b[1][c], p) + fmaf(a[3], q->b[3][c], high);
			else
				q->d[r][c] = q->c[r][c] + fmaf(a[3], q->b[3][c], fmaf(a[2], q->b[2][c], fmaf(a[1], q->b[1][c], p + 0)));
		}
}

static void store_quads(const struct warp *w, const struct mma_form *f, unsigned l, const struct quads *q)
{
	for (unsigned e = 0; e < 8; e++) {
		unsigned row, column;
		float x;

		place_of_sum(f->d_type, l, e, &row, &column);
		x = canonical(q->d[row][column]);
		if (f->d_type == MATRIX_F32)
			F32(w, f->d[e])[l] = x;
		else
			((uint16_t *)&U32(w, f->d[e / 2])[l])[e % 2] = f16_from_float(x);
	}
}

HANDLER(MMA_QUADS)
{
	const struct mma_form *f = i->object;
	struct quads q[4];

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned l = 0; l < LANES; l++)
		load_quads(w, f, l, &q[l / 4 % 4]);
	for (unsigned k = 0; k < 4; k++)
		multiply_quads(f, &q[k]);
	EACH_ACTIVE(l, w)
	store_quads(w, f, l, &q[l / 4 % 4]);
	return i + 1;
}
