/* run_mma_float.c — mma and wmma of f16, bf16, tf32 and f8: converts registers to dense tiles for mma_sum_internal.h. */
#include "softcuda/exec/run/mma_sum_internal.h"
#include "softcuda/exec/run/run_internal.h"

/* Return the position at which the product for k is added to the sum.  With f8, sm_90 first adds the products of the lower two bytes
 * of each register, then those of the upper two.  If X is sparse, two bytes cover four values of k. */
static unsigned place_of(const struct mma_form *f, unsigned k)
{
	const unsigned n = f->sparse ? 4 : 2;

	return f->sum.bytes ? k / n % 2 * (f->k / 2u) + k / (2 * n) * n + k % n : k;
}

static void load_x(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, struct operands *o)
{
	const unsigned groups = f->rows / 8;
	float v[4 * LANES];
	int32_t e[4 * LANES];

	for (unsigned k = 0; f->sparse && k < f->k; k++)
		for (unsigned r = 0; r < TILE_ROWS; r++) {
			o->x[k][r] = 0;
			o->xe[k][r] = NOT_STORED;
		}
	for (unsigned r = 0; r < f->n_x; r++) {
		const unsigned n = matrix_elements(f->x_type);

		widen_words(U32(w, t->x[r]), LANES, f->x_type, v);
		find_exponents(v, e, n * LANES, least_exponent(f->x_type), o);
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned j = 0; j < n; j++) {
				const unsigned k = f->sparse ? sparse_position(f, U32(w, f->metadata), l, r, j)
							     : 4 * n * (r / groups) + n * (l % 4) + j;
				const unsigned at = place_of(f, k), row = l / 4 + 8 * (r % groups);

				o->x[at][row] = v[n * l + j];
				o->xe[at][row] = e[n * l + j];
			}
	}
}

static void load_y(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, struct operands *o)
{
	float v[4 * LANES];
	int32_t e[4 * LANES];

	for (unsigned r = 0; r < f->n_y; r++) {
		const unsigned n = matrix_elements(f->y_type);

		widen_words(U32(w, t->y[r]), LANES, f->y_type, v);
		find_exponents(v, e, n * LANES, least_exponent(f->y_type), o);
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned j = 0; j < n; j++) {
				const unsigned at = place_of(f, 4 * n * r + n * (l % 4) + j);

				o->y[at][l / 4] = v[n * l + j];
				o->ye[at][l / 4] = e[n * l + j];
			}
	}
}

/* ---- C and D ----------------------------------------------------------------------------------------------------- */

static void load_sums(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, float c[TILE_COLUMNS][TILE_ROWS])
{
	float v[2 * LANES];

	memset(c, 0, TILE_COLUMNS * sizeof c[0]);
	for (unsigned r = 0; r < f->n_c; r++) {
		const bool half = f->c_type == MATRIX_F16;

		if (half)
			widen_f16(v, opptr(w, t->c[r]), 2 * LANES);
		for (unsigned l = 0; l < LANES; l++) {
			const unsigned row = l / 4, column = l % 4 * 2;

			if (half)
				for (unsigned k = 0; k < 2; k++)
					c[column + k][row + 8 * r] = v[2 * l + k];
			else
				c[column + r % 2][row + 8 * (r / 2)] = F32(w, t->c[r])[l];
		}
	}
}

static void store_sums(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, float d[TILE_COLUMNS][TILE_ROWS])
{
	for (unsigned r = 0; r < f->n_d; r++) {
		float v[2 * LANES] = { 0 };
		uint16_t h[2 * LANES];

		if (f->d_type != MATRIX_F16) {
			EACH_ACTIVE(l, w)
			F32(w, t->d[r])[l] = d[l % 4 * 2 + r % 2][l / 4 + 8 * (r / 2)];
			continue;
		}
		for (unsigned l = 0; l < 2 * LANES; l++)
			v[l] = d[l % 8][l / 8 + 8 * r];
		narrow_f16(h, v, 2 * LANES);
		EACH_ACTIVE(l, w)
		memcpy(&U32(w, t->d[r])[l], &h[2 * l], 4);
	}
}

static void multiply(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, float d[TILE_COLUMNS][TILE_ROWS])
{
	const bool half = f->c_type == MATRIX_F16 && f->d_type == MATRIX_F16;
	struct operands o;
	float c[TILE_COLUMNS][TILE_ROWS];

	o.wide = o.special = false;
	load_x(w, f, t, &o);
	load_y(w, f, t, &o);
	load_sums(w, f, t, c);
	if (f->sum.bytes)
		memset(d, 0, sizeof c);
	else
		memcpy(d, c, sizeof c);
	sum_tile(&o, &f->sum, half, f->k, d);
	for (unsigned k = 0; f->sum.bytes && k < TILE_COLUMNS; k++)
		for (unsigned r = 0; r < TILE_ROWS; r++)
			d[k][r] = canonical(d[k][r] + c[k][r]);
}

HANDLER(MMA_FLOAT)
{
	const struct mma_form *f = i->object;
	float d[MAX_TILES][TILE_COLUMNS][TILE_ROWS];

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned t = 0; t < f->n_tiles; t++)
		multiply(w, f, &f->tile[t], d[t]);
	for (unsigned t = 0; t < f->n_tiles; t++)
		store_sums(w, f, &f->tile[t], d[t]);
	return i + 1;
}
