/* cu_tensor_map.c — the calls of Tensor Map Object Management.  They check the limits in NVIDIA's manual and further limits of an H200's
 * driver, such as for the steps of dimension 0 and the rows of interleaved maps (class limits of tests/gpu/tensors/tensors.py). */
#include <string.h>

#include "softcuda/api/base/cu_state_internal.h"
#include "softcuda/exec/tensor_map.h"

_Static_assert(sizeof(CUtensorMap) == GPUL_TENSOR_MAP_BYTES, "a CUtensorMap is copied as bytes");

/* The largest swizzle mode is CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, which older headers lack; values from 4 on need sm_100. */
enum { LAST_SWIZZLE = 6 };

/* The arguments that the calls for tiled maps and for im2col maps have in common. */
struct description {
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *steps;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapFloatOOBfill fill;
};

static bool sizes_are_possible(const struct description *t)
{
	const unsigned align = t->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;

	for (unsigned d = 0; d < t->rank; d++) {
		if (!t->dims[d] || t->dims[d] > (uint64_t)1 << 32 || !t->steps[d] || t->steps[d] > 8)
			return false;
		if (d + 1 < t->rank && (t->strides[d] % align || t->strides[d] >> 40))
			return false;
	}
	return (uintptr_t)t->address % align == 0;
}

static bool modes_are_possible(const struct description *t, unsigned row_bytes)
{
	if (row_bytes % 16 || (t->fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && t->type < CU_TENSOR_MAP_DATA_TYPE_FLOAT16))
		return false;
	if (t->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
		return t->rank >= 3 && (t->interleave != CU_TENSOR_MAP_INTERLEAVE_32B || t->swizzle == CU_TENSOR_MAP_SWIZZLE_32B);
	return !t->swizzle || t->swizzle > CU_TENSOR_MAP_SWIZZLE_128B || row_bytes <= 16u << t->swizzle;
}

/* Set the members that tiled and im2col maps have in common.  row: number of elements of a row in shared memory. */
static CUresult describe(const char *call, const struct description *t, cuuint32_t row, gpul_tensor_map *m)
{
	const bool known = (unsigned)t->type < GPUL_TENSOR_TYPES;

	*m = (gpul_tensor_map){ .mark = GPUL_TENSOR_MAP_MARK,
				.address = (uintptr_t)t->address,
				.type = (uint8_t)t->type,
				.rank = (uint8_t)t->rank,
				.swizzle = (uint8_t)t->swizzle,
				.interleave = (uint8_t)t->interleave,
				.fill_nan = t->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA };
	if (!sizes_are_possible(t) || !row || row > 256 ||
	    (known && !modes_are_possible(t, row * gpul_tensor_type_bytes((unsigned)t->type))))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: invalid size, stride, alignment, mode or fill", call);
	m->box[0] = (uint16_t)row;
	for (unsigned d = 0; d < t->rank; d++) {
		m->last[d] = (uint32_t)(t->dims[d] - 1);
		m->step[d] = (uint8_t)(d || m->interleave ? t->steps[d] : 1);
		if (d + 1 < t->rank)
			m->stride[d] = t->strides[d];
	}
	return CUDA_SUCCESS;
}

static bool arguments_are_there(const CUtensorMap *map, const struct description *t)
{
	return map && t->dims && t->steps && t->rank && t->rank <= GPUL_TENSOR_RANKS && (t->rank == 1 || t->strides) &&
	       (unsigned)t->fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
	       (unsigned)t->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B && (unsigned)t->swizzle <= LAST_SWIZZLE;
}

/* Write the map to the application's memory.  The manual requires an alignment of 64 bytes, but an H200's driver accepts any
 * address: only the copy that a kernel uses must be aligned. */
static CUresult store_map(void *map, const struct description *t, const gpul_tensor_map *m)
{
	if ((unsigned)t->type >= GPUL_TENSOR_TYPES || t->swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
				   "a tensor map of type %d with swizzle %d is not supported by the software driver", (int)t->type,
				   (int)t->swizzle);
	memset(map, 0, sizeof(CUtensorMap));
	memcpy(map, m, sizeof *m);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
				       const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
				       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				       CUtensorMapFloatOOBfill fill)
{
	const struct description t = { type, rank, address, dims, strides, steps, interleave, swizzle, fill };
	gpul_tensor_map m;
	CUresult r;

	(void)promotion; /* only a hint for the L2 cache */
	if (!box || !arguments_are_there(map, &t))
		return CUDA_ERROR_INVALID_VALUE;
	r = describe("cuTensorMapEncodeTiled", &t, box[0], &m);
	for (unsigned d = 0; !r && d < rank; d++) {
		if (!box[d] || box[d] > 256)
			return soft_refuse(CUDA_ERROR_INVALID_VALUE,
					   "cuTensorMapEncodeTiled: the box has %u elements in dimension %u; expected 1 to 256", box[d], d);
		m.box[d] = (uint16_t)box[d];
	}
	return r ? r : store_map(map, &t, &m);
}

/* Check the corners of the bounding box of pixels. The rank - 2 coordinates of a corner share 32 bits, which limits each coordinate.
 * Coordinate d is for dimension d + 1, or d in an interleaved map. In each of these dimensions, the box must have pixels. */
static bool corners_are_possible(const struct description *t, const int *lower, const int *upper)
{
	static const int limits[] = { 32768, 128, 16 };
	const int limit = limits[t->rank - 3];
	const unsigned first = t->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;

	for (unsigned d = 0; d + 2 < t->rank; d++)
		if (lower[d] < -limit || lower[d] >= limit || upper[d] < -limit || upper[d] >= limit ||
		    (int64_t)t->dims[d + first] + upper[d] - lower[d] <= 0)
			return false;
	return true;
}

EXPORT CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
					const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels,
					cuuint32_t pixels, const cuuint32_t *steps, CUtensorMapInterleave interleave,
					CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	const struct description t = { type, rank, address, dims, strides, steps, interleave, swizzle, fill };
	gpul_tensor_map m;
	CUresult r;

	(void)promotion;
	if (!lower || !upper || rank < 3 || !arguments_are_there(map, &t))
		return CUDA_ERROR_INVALID_VALUE;
	r = describe("cuTensorMapEncodeIm2col", &t, channels, &m);
	if (!r && (!pixels || pixels > 1024 || !corners_are_possible(&t, lower, upper)))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeIm2col: invalid corner, or invalid number of pixels (%u)",
				   pixels);
	m.im2col = true;
	m.pixels = (uint16_t)pixels;
	for (unsigned d = 0; !r && d < rank; d++) {
		m.box[d] = d ? 1 : m.box[0];
		if (d + 2 < rank) {
			m.lower[d] = (int16_t)lower[d];
			m.upper[d] = (int16_t)upper[d];
		}
	}
	return r ? r : store_map(map, &t, &m);
}

EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	gpul_tensor_map m;

	if (!map)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&m, map, sizeof m);
	if (m.mark != GPUL_TENSOR_MAP_MARK || (uintptr_t)address % (m.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16))
		return CUDA_ERROR_INVALID_VALUE;
	m.address = (uintptr_t)address;
	memcpy(map, &m, sizeof m);
	return CUDA_SUCCESS;
}
