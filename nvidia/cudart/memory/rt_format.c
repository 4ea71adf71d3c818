/* rt_format.c — converts the format of the elements of an array.
 *
 *     runtime:  bits of x, y, z, w and a kind      { 8, 8, 8, 8, cudaChannelFormatKindUnsigned }
 *     driver:   a format and a number of channels  CU_AD_FORMAT_UNSIGNED_INT8, 4 */
#include "nvidia/cudart/memory/rt_memory_internal.h"

enum { MAX_CHANNELS = 4 };

static const struct row {
	enum cudaChannelFormatKind kind;
	int bits;
	unsigned n_channels; /* the only number of channels that the kind allows; 0 means 1, 2 or 4 */
	CUarray_format format;
} rows[] = {
	{ cudaChannelFormatKindUnsigned, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8 },
	{ cudaChannelFormatKindUnsigned, 16, 0, CU_AD_FORMAT_UNSIGNED_INT16 },
	{ cudaChannelFormatKindUnsigned, 32, 0, CU_AD_FORMAT_UNSIGNED_INT32 },
	{ cudaChannelFormatKindSigned, 8, 0, CU_AD_FORMAT_SIGNED_INT8 },
	{ cudaChannelFormatKindSigned, 16, 0, CU_AD_FORMAT_SIGNED_INT16 },
	{ cudaChannelFormatKindSigned, 32, 0, CU_AD_FORMAT_SIGNED_INT32 },
	{ cudaChannelFormatKindFloat, 16, 0, CU_AD_FORMAT_HALF },
	{ cudaChannelFormatKindFloat, 32, 0, CU_AD_FORMAT_FLOAT },
	{ cudaChannelFormatKindUnsignedNormalized8X1, 8, 1, CU_AD_FORMAT_UNORM_INT8X1 },
	{ cudaChannelFormatKindUnsignedNormalized8X2, 8, 2, CU_AD_FORMAT_UNORM_INT8X2 },
	{ cudaChannelFormatKindUnsignedNormalized8X4, 8, 4, CU_AD_FORMAT_UNORM_INT8X4 },
	{ cudaChannelFormatKindUnsignedNormalized16X1, 16, 1, CU_AD_FORMAT_UNORM_INT16X1 },
	{ cudaChannelFormatKindUnsignedNormalized16X2, 16, 2, CU_AD_FORMAT_UNORM_INT16X2 },
	{ cudaChannelFormatKindUnsignedNormalized16X4, 16, 4, CU_AD_FORMAT_UNORM_INT16X4 },
	{ cudaChannelFormatKindSignedNormalized8X1, 8, 1, CU_AD_FORMAT_SNORM_INT8X1 },
	{ cudaChannelFormatKindSignedNormalized8X2, 8, 2, CU_AD_FORMAT_SNORM_INT8X2 },
	{ cudaChannelFormatKindSignedNormalized8X4, 8, 4, CU_AD_FORMAT_SNORM_INT8X4 },
	{ cudaChannelFormatKindSignedNormalized16X1, 16, 1, CU_AD_FORMAT_SNORM_INT16X1 },
	{ cudaChannelFormatKindSignedNormalized16X2, 16, 2, CU_AD_FORMAT_SNORM_INT16X2 },
	{ cudaChannelFormatKindSignedNormalized16X4, 16, 4, CU_AD_FORMAT_SNORM_INT16X4 },
	{ cudaChannelFormatKindNV12, 8, 3, CU_AD_FORMAT_NV12 },
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* Return the number of channels; 0 if they differ in their number of bits, or if there is a gap between them. */
static unsigned count_channels(const struct cudaChannelFormatDesc *desc)
{
	const int bits[MAX_CHANNELS] = { desc->x, desc->y, desc->z, desc->w };
	unsigned n = 0;

	while (n < MAX_CHANNELS && bits[n])
		n++;
	for (unsigned i = 0; i < MAX_CHANNELS; i++)
		if (bits[i] != (i < n ? desc->x : 0))
			return 0;
	return n;
}

cudaError_t gpul_rt_array_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format, unsigned *n_channels)
{
	unsigned n = desc ? count_channels(desc) : 0;

	if (!desc)
		return gpul_rt_fail(cudaErrorInvalidValue, "the channel descriptor is NULL");
	for (int i = 0; n && i < N_ROWS; i++) {
		const struct row *r = &rows[i];

		if (r->kind == desc->f && r->bits == desc->x && (r->n_channels ? r->n_channels == n : n != 3)) {
			*format = r->format;
			*n_channels = n;
			return cudaSuccess;
		}
	}
	return gpul_rt_fail(cudaErrorInvalidChannelDescriptor,
			    "arrays cannot have elements with channels of %d, %d, %d, %d bits and channel kind %d", desc->x, desc->y,
			    desc->z, desc->w, (int)desc->f);
}

struct cudaChannelFormatDesc gpul_rt_channels(CUarray_format format, unsigned n)
{
	struct cudaChannelFormatDesc none = { 0, 0, 0, 0, cudaChannelFormatKindNone };

	for (int i = 0; i < N_ROWS; i++) {
		int bits = rows[i].bits;

		if (rows[i].format == format)
			return (struct cudaChannelFormatDesc){ bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, rows[i].kind };
	}
	return none;
}

cudaError_t gpul_rt_element_bytes(const gpul_driver *drv, cudaArray_const_t array, size_t *bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	struct cudaChannelFormatDesc c;
	cudaError_t e = gpul_rt_cu(drv, cuArray3DGetDescriptor(&d, gpul_rt_array(array)));

	if (e)
		return e;
	c = gpul_rt_channels(d.Format, d.NumChannels);
	if (!c.x)
		return gpul_rt_fail(cudaErrorInvalidChannelDescriptor, "arrays of the format 0x%x are not supported", (unsigned)d.Format);
	*bytes = (size_t)c.x / 8 * d.NumChannels;
	return cudaSuccess;
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, f };
}
