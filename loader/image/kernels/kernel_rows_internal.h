/* kernel_rows_internal.h — builds a kernel table: while rows are added, they refer to names and parameters by index,
 * because the arrays move as they grow. */
#ifndef GPULOAD_LOADER_IMAGE_KERNELS_KERNEL_ROWS_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_KERNELS_KERNEL_ROWS_INTERNAL_H

#include "core/array.h"
#include "loader/image/cubin_internal.h"
#include "loader/image/kernels/kernels.h"

typedef struct gpul_kernel_row {
	gpul_kernel_info info; /* .name and .params are set in the finished table only */
	size_t name_at;        /* offset of the name in gpul_kernel_rows.names */
	size_t first_param;    /* index of the first of its info.n_params parameters in gpul_kernel_rows.params */
} gpul_kernel_row;

typedef struct gpul_kernel_rows {
	GPUL_ARRAY(gpul_kernel_row) kernels;
	GPUL_ARRAY(gpul_kernel_param) params;
	const char *names; /* names of all kernels; each ends in NUL or at names_bytes */
	size_t names_bytes;
	gpul_cubin_build build; /* all zeros: not recorded */
} gpul_kernel_rows;

/* Add a row, in which all numbers are NOT_RECORDED or 0; NULL: out of memory. */
gpul_kernel_row *gpul_kernel_rows_add(gpul_kernel_rows *rows);

/* Copy the rows into a finished table, in one block of memory.  Errors: GPUL_ENOMEM. */
gpul_status gpul_kernel_rows_finish(const gpul_kernel_rows *rows, gpul_kernel_table *out, gpul_error *err);

/* Read the kernels of one kind of image; gpul_kernels_read() chooses the reader.  A cubin with a gap
 * (excerpt_internal.h) fails if data in the gap is needed. */
gpul_status gpul_kernels_of_cubin(const void *bytes, size_t n_bytes, gpul_cubin_gap gap, gpul_kernel_table *out, gpul_error *err);
gpul_status gpul_kernels_of_ptx(const char *text, size_t n_bytes, gpul_kernel_table *out, gpul_error *err);

#endif
