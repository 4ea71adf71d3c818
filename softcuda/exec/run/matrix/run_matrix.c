/* run_matrix.c — ldmatrix, stmatrix, movmatrix: matrices of 8 x 8 16-bit elements (PTX ISA 9.7.14.5.15 to 9.7.14.5.17). */
#include "softcuda/exec/matrix_internal.h"
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/warp/access_internal.h"

typedef uint16_t matrix16[8][8];

/* Distribute a matrix among the lanes: each lane gets a word with two elements of a row.  matrix_of_words() does the reverse. */
static void words_of_matrix(matrix16 m, bool transposed, uint32_t word[LANES])
{
	for (unsigned l = 0; l < LANES; l++) {
		const unsigned row = l / 4, column = l % 4 * 2;

		word[l] = transposed ? m[column][row] | (uint32_t)m[column + 1][row] << 16
				     : m[row][column] | (uint32_t)m[row][column + 1] << 16;
	}
}

static void matrix_of_words(const uint32_t word[LANES], bool transposed, matrix16 m)
{
	for (unsigned l = 0; l < LANES; l++)
		for (unsigned k = 0; k < 2; k++) {
			const unsigned row = l / 4, column = l % 4 * 2 + k;

			m[transposed ? column : row][transposed ? row : column] = (uint16_t)(word[l] >> 16 * k);
		}
}

/* Convert the addresses of the matrix rows to pointers.  Returns true if an access faults. */
static bool find_rows(struct warp_state *s, const struct insn *i, bool write, struct access *x)
{
	const uint32_t mask = s->w.mask;
	bool fault = false;

	s->w.mask &= matrix_address_lanes(i);
	if (s->w.mask)
		fault = resolve_each(s, i, MATRIX_ROW_BYTES, write, x);
	s->w.mask = mask;
	return fault;
}

HANDLER(LDMATRIX)
{
	const uint32_t rows = w->mask & matrix_address_lanes(i);
	struct access x;
	matrix16 m[4];
	uint32_t word[LANES];

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	if (find_rows(state_of(w), i, false, &x))
		return x.stop;
	memset(m, 0, sizeof m);
	EACH_LANE_OF(l, rows)
	memcpy(m[l / 8][l % 8], (const void *)(uintptr_t)x.each[l], MATRIX_ROW_BYTES);
	for (unsigned k = 0; k < i->n; k++) {
		words_of_matrix(m[k], i->e & MATRIX_TRANSPOSED, word);
		SET_LANES(w, U32(w, OPLIST(w, i->d)[k]), word[l]);
	}
	return i + 1;
}

HANDLER(STMATRIX)
{
	const uint32_t rows = w->mask & matrix_address_lanes(i);
	struct access x;
	matrix16 m[4];

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	if (find_rows(state_of(w), i, true, &x))
		return x.stop;
	for (unsigned k = 0; k < i->n; k++)
		matrix_of_words(U32(w, OPLIST(w, i->b)[k]), i->e & MATRIX_TRANSPOSED, m[k]);
	EACH_LANE_OF(l, rows)
	memcpy((void *)(uintptr_t)x.each[l], m[l / 8][l % 8], MATRIX_ROW_BYTES);
	return i + 1;
}

HANDLER(MOVMATRIX)
{
	matrix16 m;
	uint32_t word[LANES];

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	matrix_of_words(U32(w, i->a), false, m);
	words_of_matrix(m, true, word);
	SET_LANES(w, U32(w, i->d), word[l]);
	return i + 1;
}
