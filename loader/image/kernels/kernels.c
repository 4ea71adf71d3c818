/* kernels.c — reads the kernels of an image with the reader for its kind. */
#include "loader/image/kernels/kernels.h"

#include <stdlib.h>

#include "loader/image/kernels/kernel_rows_internal.h"

gpul_status gpul_kernels_read(const gpul_image *image, const void *bytes, size_t n_bytes, gpul_kernel_table *out, gpul_error *err)
{
	switch (image->kind) {
	case GPUL_IMAGE_CUBIN:
		return gpul_kernels_of_cubin(bytes, n_bytes, (gpul_cubin_gap){ 0 }, out, err);
	case GPUL_IMAGE_PTX:
		return gpul_kernels_of_ptx(bytes, n_bytes, out, err);
	case GPUL_IMAGE_LTO:
		break;
	}
	*out = (gpul_kernel_table){ 0 };
	return GPUL_OK;
}

void gpul_kernel_table_free(gpul_kernel_table *t)
{
	free(t->owned);
	*t = (gpul_kernel_table){ 0 };
}
