/* decode_matrix_internal.h — what decode_mma.c and decode_matrix.c share: shapes and types in the modifiers, registers. */
#ifndef GPULOAD_SOFTCUDA_EXEC_DECODE_MATRIX_DECODE_MATRIX_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_DECODE_MATRIX_DECODE_MATRIX_INTERNAL_H

#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/matrix_internal.h"

struct matrix_mods {
	unsigned m, n, k;         /* the shape, as in .m16n8k16; 0: there is none */
	uint8_t type[4], n_types; /* enum matrix_type, in the order of the PTX text */
	bool by_column[2];        /* .col, in the order of the PTX text */
	unsigned n_layouts;
};
void gpul_matrix_mods(const struct decoder *d, struct matrix_mods *out);

/* Decode a list of registers, or one register; *n receives their number, which is at most `most`. */
bool gpul_matrix_registers(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool dest, opref *out, unsigned most, unsigned *n);
unsigned gpul_matrix_register_type(unsigned type); /* .b32 or .b64 */
/* Number of registers of a tile's operand X; if rows is 8, of Y. */
unsigned gpul_matrix_x_registers(unsigned rows, unsigned k, unsigned type);

struct wmma_shape {
	unsigned rows, n_tiles; /* rows of a tile */
	bool swapped;           /* the tiles are transposed: X is B */
	bool x_tiles;           /* each tile has its own X; else its own Y */
};
bool gpul_wmma_shape(const struct matrix_mods *m, struct wmma_shape *out); /* false: there is no such shape */

bool gpul_decode_wmma_mma(struct decoder *d);

#endif
