/* matrix_internal.h — matrix multiply-accumulate: the structs that decode_mma.c fills and run_mma*.c read.
 *
 * All forms of mma and wmma are made of tiles with 16 rows and 8 columns (shapes with m8 use only 8 of the rows):
 *
 *     D[16][8] = X[16][k] * Y[k][8] + C[16][8]
 *
 * A warp holds a tile in registers (PTX ISA 9.7.14.5): with g = lane / 4, t = lane % 4, and E elements in a register,
 *
 *     X, register r:  row g + 8 (r % rows), k = 4 E (r / rows) + E t + 0, 1 ... E-1      rows: 2; m8: 1
 *     Y, register r:  column g,             k = 4 E r          + E t + 0, 1 ... E-1
 *     C, element e:   row g + 8 (e / 2), column 2 t + e % 2; two f16 elements share a register
 *
 * X is A and Y is B.  Only m8n32k16 is calculated transposed, as on sm_90, with X = B and Y = A. */
#ifndef GPULOAD_SOFTCUDA_EXEC_MATRIX_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_MATRIX_INTERNAL_H

#include "softcuda/exec/program_internal.h"

/* clang-format off */
enum matrix_type {
	MATRIX_NONE,
	MATRIX_F16, MATRIX_BF16, MATRIX_TF32, MATRIX_E4M3, MATRIX_E5M2, MATRIX_F32, MATRIX_F64,
	MATRIX_S8, MATRIX_U8, MATRIX_S4, MATRIX_U4, MATRIX_B1, MATRIX_S32,
	N_MATRIX_TYPES
};
/* clang-format on */

enum { TILE_ROWS = 16, TILE_COLUMNS = 8, MAX_K = 128, MAX_TILES = 2 };

/* How sums in f32 and f16 are rounded, as measured on sm_90 (run/mma_sum_internal.h). */
struct mma_sum {
	uint8_t block;         /* number of products that are added before the sum is rounded */
	uint8_t fraction_bits; /* fraction bits that a product keeps when it is aligned to the largest product */
	bool short_result;     /* an f32 result has 13 bits after the binary point */
	bool bytes;            /* f8 operands: the products with k % 4 < 2 are added first, then the others, and C last */
};

struct mma_tile {
	opref x[8], y[4], c[4], d[4];
};

struct mma_form {     /* insn->object of the MMA operations */
	uint8_t rows; /* number of rows of a tile: 16 or 8 */
	uint16_t k;
	uint8_t x_type, y_type, c_type, d_type; /* values of enum matrix_type */
	uint8_t n_x, n_y, n_c, n_d;             /* numbers of registers per tile */
	struct mma_sum sum;
	bool sparse;      /* mma.sp: registers have only half of the elements of X, the others are zero: see sparse_position() */
	uint8_t selector; /* selects which lanes of each group of four have the metadata */
	opref metadata;
	bool satfinite, popc_and;   /* satfinite: s32 sums are clamped; popc_and: b1 elements are multiplied by `and`, not `xor` */
	bool a_by_column, b_by_row; /* layouts of A and B; these and c, d below are only for mma.m8n8k4 of f16 (OP_MMA_QUADS) */
	opref c[8], d[8];           /* registers of C and D; operations other than OP_MMA_QUADS have them in `tile` */
	uint8_t n_tiles;
	struct mma_tile tile[MAX_TILES];
};

/* Return the size of an element in bits. */
static inline unsigned matrix_bits(unsigned type)
{
	static const uint8_t bits[N_MATRIX_TYPES] = {
		[MATRIX_F16] = 16, [MATRIX_BF16] = 16, [MATRIX_TF32] = 32, [MATRIX_E4M3] = 8, [MATRIX_E5M2] = 8,
		[MATRIX_F32] = 32, [MATRIX_F64] = 64,  [MATRIX_S8] = 8,    [MATRIX_U8] = 8,   [MATRIX_S4] = 4,
		[MATRIX_U4] = 4,   [MATRIX_B1] = 1,    [MATRIX_S32] = 32,
	};

	return bits[type];
}

/* Return the number of elements in a register, which has at least 32 bits. */
static inline unsigned matrix_elements(unsigned type)
{
	return matrix_bits(type) >= 32 ? 1 : 32 / matrix_bits(type);
}

/* mma.sp and wgmma.sp: return the column k of the c-th stored element of a row of A, which has 16 rows.  Of each four elements, two
 * are stored (s4: two pairs of eight; tf32: one of two), and two bits of metadata give the position of each (PTX ISA 9.7.14.6).  If a
 * row needs only 16 bits of metadata (16-bit elements and k = 16, or tf32 and k = 8), one of four lanes holds them for rows g and g +
 * 8; else two or four lanes do. */
static inline unsigned sparse_place(unsigned type, unsigned k, unsigned selector, const uint32_t *metadata, unsigned row, unsigned c)
{
	const unsigned n = matrix_elements(type), high = row / 8;
	const unsigned width = type == MATRIX_TF32 ? 1
			       : n == 8            ? 4
						   : 2; /* number of stored elements whose positions share 4 bits of metadata */
	const unsigned bit = 4 * (c / width), bits = 4 * (k / (2 * width));
	unsigned lane, shift, nibble, at;

	if (n <= 2) { /* low 16 bits: row g; high: row g + 8; if k is twice as large, a second lane has the upper half of k */
		lane = bits == 16 ? selector : 2u * selector + bit / 16;
		shift = bit % 16 + 16 * high;
	} else { /* one lane for row g, one for row g + 8; if k is twice as large, two more lanes for the upper half of k */
		lane = bits == 32 ? 2u * selector + high : 2 * (bit / 32) + high;
		shift = bit % 32;
	}
	nibble = metadata[row % 8 * 4 + lane % 4] >> shift & 15;
	if (width == 1)
		return 2 * c + (nibble >> 1 & 1);
	at = nibble >> 2 * (c / (width / 2) % 2) & 3;
	return width == 4 ? 8 * (c / 4) + 2 * at + c % 2 : 4 * (c / 2) + at;
}

/* mma.sp: return the column k of element e of register r of X in lane l. */
static inline unsigned sparse_position(const struct mma_form *f, const uint32_t *metadata, unsigned l, unsigned r, unsigned e)
{
	const unsigned n = matrix_elements(f->x_type);

	return sparse_place(f->x_type, f->k, f->selector, metadata, l / 4 + 8 * (r % 2), 4 * n * (r / 2) + n * (l % 4) + e);
}

/* ldmatrix and stmatrix: insn->n matrices of 8 rows of 16 bytes; lane 8 m + r has the address of row r of matrix m.  insn->d
 * (ldmatrix) or insn->b (stmatrix) is the list of registers: lane l has the elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4. */
/* bit of insn->e: the matrices are transposed */
enum { MATRIX_TRANSPOSED = 1 };
enum { MATRIX_ROW_BYTES = 16 };

/* Return a mask of the lanes whose addresses the instruction uses: 8 lanes per matrix. */
static inline uint32_t matrix_address_lanes(const struct insn *i)
{
	return i->n >= 4 ? ALL_LANES : (1u << 8 * i->n) - 1;
}

#endif
