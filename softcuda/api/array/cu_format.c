/* cu_format.c — the element formats of arrays: which are supported, and the sizes of their channels. */
#include "softcuda/api/array/cu_array_internal.h"

/* Return the number of bytes of one channel; 0: the channels of the format do not have equal sizes. */
static size_t channel_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

/* Returns true for UNORM_INT8X1 to SNORM_INT16X4, whose names give the number of channels; their enum values are consecutive. */
static bool is_normalised(CUarray_format format, size_t *bytes, unsigned *channels)
{
	static const uint8_t counts[] = { 1, 2, 4 };
	const unsigned n = (unsigned)format - CU_AD_FORMAT_UNORM_INT8X1;

	if ((unsigned)format < CU_AD_FORMAT_UNORM_INT8X1 || (unsigned)format > CU_AD_FORMAT_SNORM_INT16X4)
		return false;
	*channels = counts[n % 3];
	*bytes = n / 3 % 2 ? 2 : 1;
	return true;
}

size_t soft_format_bytes(CUarray_format format, unsigned channels)
{
	unsigned own;
	size_t bytes;

	if (is_normalised(format, &bytes, &own))
		return channels == own ? bytes * channels : 0;
	return channels == 1 || channels == 2 || channels == 4 ? channel_bytes(format) * channels : 0;
}

CUresult soft_format_check(CUarray_format format, unsigned channels)
{
	if (soft_format_bytes(format, channels))
		return CUDA_SUCCESS;
	if (format == CU_AD_FORMAT_UNORM_INT_101010_2 ||
	    (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar))
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "array: format 0x%x (block-compressed or video) is not supported",
				   (unsigned)format);
	return soft_refuse(CUDA_ERROR_INVALID_VALUE,
			   "array: format 0x%x with %u channels is not supported; expected 1, 2 or 4 channels of a known "
			   "format",
			   (unsigned)format, channels);
}
