/* decode_matrix_internal.h — helpers of decode_mma.c and decode_matrix.c, which read shapes, types and registers from an instruction. */
#ifndef GPULOAD_SOFTCUDA_EXEC_DECODE_MATRIX_DECODE_MATRIX_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_DECODE_MATRIX_DECODE_MATRIX_INTERNAL_H

#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/matrix_internal.h"

struct matrix_mods {
	unsigned m, n, k;         /* m, n and k of the shape, as in .m16n8k16; 0: no modifier gives a shape */
	uint8_t type[4], n_types; /* values of enum matrix_type, in the order of the PTX text */
	bool by_column[2];        /* true for .col, false for .row, in the order of the PTX text */
	unsigned n_layouts;
};
void gpul_matrix_mods(const struct decoder *d, struct matrix_mods *out);

/* Decode a list of at most `most` registers, or one register; *n receives their number. */
bool gpul_matrix_registers(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool dest, opref *out, unsigned most, unsigned *n);
unsigned gpul_matrix_register_type(unsigned type); /* returns the type .b32 or .b64 */
/* Return the number of registers per lane of operand X of a tile (rows 16), or of Y (rows 8): see matrix_internal.h. */
unsigned gpul_matrix_x_registers(unsigned rows, unsigned k, unsigned type);

struct wmma_shape {
	unsigned rows, n_tiles; /* rows of a tile; number of tiles */
	bool swapped;           /* the product is computed transposed: operand X of the tiles is B, and Y is A */
	bool x_tiles;           /* true: the tiles have different X and share Y; false: different Y and share X */
};
bool gpul_wmma_shape(const struct matrix_mods *m, struct wmma_shape *out); /* returns false if wmma has no such shape */

bool gpul_decode_wmma_mma(struct decoder *d);

#endif
