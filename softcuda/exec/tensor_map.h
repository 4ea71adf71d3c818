/* tensor_map.h — the contents of a CUtensorMap, which is opaque to programs: cuTensorMapEncodeTiled() and cuTensorMapEncodeIm2col() write
 * it, and the instructions cp.async.bulk.tensor read it. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TENSOR_MAP_H
#define GPULOAD_SOFTCUDA_EXEC_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum { GPUL_TENSOR_RANKS = 5, GPUL_TENSOR_MAP_BYTES = 128, GPUL_TENSOR_MAP_ALIGN = 64 };
#define GPUL_TENSOR_MAP_MARK UINT64_C(0x70616d2d72736e74)

/* Types of elements, with the values of CUtensorMapDataType. */
/* clang-format off */
typedef enum gpul_tensor_type {
	GPUL_TENSOR_U8, GPUL_TENSOR_U16, GPUL_TENSOR_U32, GPUL_TENSOR_S32, GPUL_TENSOR_U64, GPUL_TENSOR_S64, GPUL_TENSOR_F16,
	GPUL_TENSOR_F32, GPUL_TENSOR_F64, GPUL_TENSOR_BF16, GPUL_TENSOR_F32_FTZ, GPUL_TENSOR_TF32, GPUL_TENSOR_TF32_FTZ,
	GPUL_TENSOR_TYPES
} gpul_tensor_type;
/* clang-format on */

/* Elements along dimension 0 are contiguous.  In an interleaved layout (NC/8HWC8 or NC/16HWC16 of 2-byte elements) an element is a
 * slice of channels, of 16 or 32 bytes; the dimensions are then W, H, D (lower ranks lack D, or D and H), slices, and N (images). For
 * the dimension of slices, box[] and step[] have no effect, because a copy covers one slice. */
typedef struct gpul_tensor_map {
	uint64_t mark;   /* always GPUL_TENSOR_MAP_MARK */
	uint64_t unused; /* CUTLASS clears bit 21 of these 64 bits in the maps of small tensors */
	uint64_t address;
	uint64_t stride[GPUL_TENSOR_RANKS - 1]; /* bytes from one element to the next in dimension 1, 2 ... */
	uint32_t last[GPUL_TENSOR_RANKS];       /* number of elements minus 1, per dimension */
	uint16_t box[GPUL_TENSOR_RANKS];        /* number of elements that a copy covers, per dimension */
	uint8_t step[GPUL_TENSOR_RANKS];        /* a copy takes every step-th element of the box */
	uint8_t type, rank;
	uint8_t swizzle;                      /* 0: none; 1, 2, 3: rows of 32, 64, 128 bytes */
	uint8_t interleave;                   /* 0: none; 1, 2: slices of 16, 32 bytes */
	bool fill_nan;                        /* elements outside of the tensor are NaN, not 0 */
	bool im2col;                          /* a copy covers a column of pixels; box[0]: number of channels; box[1 ...]: unused */
	uint16_t pixels;                      /* im2col: number of pixels in a column */
	int16_t lower[GPUL_TENSOR_RANKS - 2]; /* im2col, W, H, D: the pixels have coordinates from `lower` to size + upper - 1 */
	int16_t upper[GPUL_TENSOR_RANKS - 2];
} gpul_tensor_map;
_Static_assert(sizeof(gpul_tensor_map) <= GPUL_TENSOR_MAP_BYTES, "fits into a CUtensorMap");

/** Return the bytes of an element; type: enum gpul_tensor_type. */
static inline unsigned gpul_tensor_type_bytes(unsigned type)
{
	static const uint8_t bytes[GPUL_TENSOR_TYPES] = { 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4 };

	return bytes[type];
}

#endif
