/* wgmma_internal.h — wgmma.mma_async: the struct that decode_wgmma.c fills and run_wgmma.c reads, and the layout of matrices in
 * shared memory.
 *
 * Each of the four warps of a warp group computes 16 of the 64 rows when it executes the instruction. PTX defines only the latest
 * time at which the result must be available, so wgmma.fence, commit_group and wait_group do nothing.
 *
 * A descriptor (PTX ISA 9.7.15.5.1.2) gives the location of a matrix in shared memory; the fields are in units of 16 bytes:
 *
 *     63   62           52 49      45           32        29           16        13            0
 *    ┌───────┬───────────┬────┬───┬───────────────┬──────┬───────────────┬──────┬───────────────┐
 *    │swizzle│           │base│   │ stride offset │      │leading offset │      │ start address │
 *    └───────┴───────────┴────┴───┴───────────────┴──────┴───────────────┴──────┴───────────────┘
 *
 * Swizzle 1, 2, 3: rows of 128, 64, 32 bytes, whose 16-byte pieces are permuted by the address bits from bit 7 on: see swizzled(). */
#ifndef GPULOAD_SOFTCUDA_EXEC_WGMMA_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WGMMA_INTERNAL_H

#include "softcuda/exec/matrix_internal.h"

/* WGMMA_K_BYTES: size in bytes of a row of A (of its stored elements, if A is sparse) */
enum { WGMMA_K_BYTES = 32, MAX_WGMMA_COLUMNS = 256, MAX_WGMMA_SUMS = 128 };
enum { WGMMA_PIECES = WGMMA_K_BYTES / 16, MAX_WGMMA_PIECES = 2 * WGMMA_PIECES, MAX_WGMMA_WORDS = 4 * MAX_WGMMA_PIECES };

/* insn->object of WGMMA */
struct wgmma_form {
	uint16_t columns, k;
	uint8_t a_type, b_type, d_type;
	struct mma_sum sum;
	bool a_in_registers, satfinite;
	bool a_by_column, b_by_row; /* 16-bit types: A is contiguous along its columns, B along its rows (PTX: transposed) */
	bool negate_a, negate_b;
	bool sparse; /* A has only half of its elements (see sparse_place()); B then has twice as many 16-byte pieces */
	uint8_t selector;
	opref metadata;
	opref a, b, scale_d; /* matrix descriptors of A (unless a_in_registers) and B; the predicate operand scale-d */
	opref x[4];          /* the registers of A, if a_in_registers */
	uint8_t n_d;
	opref d[MAX_WGMMA_SUMS];
};

/* a decoded matrix descriptor; all members are in bytes */
struct matrix_address {
	uint32_t start, leading, stride;
	unsigned row_bytes; /* size of a row within which the swizzle permutes 16-byte pieces: 32, 64 or 128; 16: no swizzle */
};

static inline struct matrix_address matrix_address_of(uint64_t descriptor)
{
	static const uint8_t row_bytes[] = { 16, 128, 64, 32 };

	return (struct matrix_address){
		.start = (uint32_t)(descriptor & 0x3fff) << 4,
		.leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
		.stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
		.row_bytes = row_bytes[descriptor >> 62],
	};
}

/* Apply the swizzle: XOR the address bits from bit 7 on into the bits from bit 4 on, which number the 16-byte pieces of a row. */
static inline uint32_t swizzled(uint32_t address, unsigned row_bytes)
{
	return address ^ (address >> 3 & (row_bytes - 16));
}

/* Return the address of a 16-byte piece of a row, for a matrix whose rows are contiguous; pieces are numbered along k. */
static inline uint32_t piece_of_row(const struct matrix_address *m, unsigned row, unsigned piece)
{
	const unsigned pieces = m->row_bytes / 16;

	return swizzled(m->start + row % 8 * m->row_bytes + row / 8 * m->stride + piece % pieces * 16 + piece / pieces * m->leading,
			m->row_bytes);
}

static inline unsigned wgmma_b_pieces(const struct wgmma_form *f)
{
	return f->sparse ? 2 * WGMMA_PIECES : WGMMA_PIECES;
}

/* Return the address of a 16-byte piece of column k, for a matrix whose columns are contiguous; it starts at row 8 * piece. */
static inline uint32_t piece_of_column(const struct matrix_address *m, unsigned k, unsigned piece)
{
	const unsigned pieces = m->row_bytes / 16;
	const uint32_t outer = pieces == 1 ? m->stride : m->leading, next_k = pieces == 1 ? m->leading : m->stride;

	return swizzled(m->start + piece % pieces * 16 + piece / pieces * outer + k % 8 * m->row_bytes + k / 8 * next_k, m->row_bytes);
}

#endif
