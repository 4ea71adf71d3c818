/* tensor_map.c — Tensor Map Object Management: the limits are those that the manual of cuTensorMapEncodeTiled states. */
#include <string.h>

#include "softcuda/api/base/state_internal.h"
#include "softcuda/exec/tensor_map.h"

_Static_assert(sizeof(CUtensorMap) == GPUL_TENSOR_MAP_BYTES, "a CUtensorMap is copied as bytes");

static bool sizes_are_possible(const gpul_tensor_map *m, const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
			       const cuuint32_t *steps)
{
	for (unsigned d = 0; d < m->rank; d++) {
		if (!dims[d] || dims[d] > (uint64_t)1 << 32 || !box[d] || box[d] > 256 || (d && (!steps[d] || steps[d] > 8)))
			return false;
		if (d + 1 < m->rank && (strides[d] % 16 || strides[d] >> 40))
			return false;
	}
	return true;
}

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
				       const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
				       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				       CUtensorMapFloatOOBfill fill)
{
	gpul_tensor_map m = { .mark = GPUL_TENSOR_MAP_MARK, .address = (uintptr_t)address, .type = (uint8_t)type, .rank = (uint8_t)rank,
			      .swizzle = (uint8_t)swizzle, .fill_nan = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA };
	unsigned row;

	(void)promotion;  /* a hint */
	if (!map || !dims || !box || !steps || !rank || rank > GPUL_TENSOR_RANKS || (rank > 1 && !strides) || (unsigned)fill > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)type >= GPUL_TENSOR_TYPES || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || (unsigned)swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "a tensor map of type %d with interleave %d and swizzle %d is not interpreted", (int)type,
				   (int)interleave, (int)swizzle);
	row = box[0] * gpul_tensor_type_bytes((unsigned)type);
	if (!sizes_are_possible(&m, dims, strides, box, steps) || (uintptr_t)address % 16 || (uintptr_t)map % GPUL_TENSOR_MAP_ALIGN || row % 16 ||
	    (swizzle && row > 16u << swizzle))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: a size, a stride or an alignment is not possible");
	for (unsigned d = 0; d < rank; d++) {
		m.last[d] = (uint32_t)(dims[d] - 1);
		m.box[d] = (uint16_t)box[d];
		m.step[d] = (uint8_t)(d ? steps[d] : 1);
		if (d + 1 < rank)
			m.stride[d] = strides[d];
	}
	memset(map, 0, sizeof *map);
	memcpy(map, &m, sizeof m);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	gpul_tensor_map m;

	if (!map || (uintptr_t)address % 16)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&m, map, sizeof m);
	if (m.mark != GPUL_TENSOR_MAP_MARK)
		return CUDA_ERROR_INVALID_VALUE;
	m.address = (uintptr_t)address;
	memcpy(map, &m, sizeof m);
	return CUDA_SUCCESS;
}
