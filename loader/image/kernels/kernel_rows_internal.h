/* kernel_rows_internal.h — a kernel table under construction: while rows are added, names and parameters are recorded
 * as indices, because the growing arrays move. */
#ifndef GPULOAD_LOADER_IMAGE_KERNELS_KERNEL_ROWS_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_KERNELS_KERNEL_ROWS_INTERNAL_H

#include "core/array.h"
#include "loader/image/cubin_internal.h"
#include "loader/image/kernels/kernels.h"

typedef struct gpul_kernel_row {
	gpul_kernel_info info; /* name and params are set in the finished table */
	size_t name_at;        /* offset in names */
	size_t first_param;    /* index in params of the first of info.n_params parameters */
} gpul_kernel_row;

typedef struct gpul_kernel_rows {
	GPUL_ARRAY(gpul_kernel_row) kernels;
	GPUL_ARRAY(gpul_kernel_param) params;
	const char *names; /* names of all kernels; each ends in NUL or at names_bytes */
	size_t names_bytes;
	gpul_cubin_build build; /* zeroed: not recorded */
} gpul_kernel_rows;

/* Add a row whose numbers are NOT_RECORDED or 0; NULL: out of memory. */
gpul_kernel_row *gpul_kernel_rows_add(gpul_kernel_rows *rows);

/* Copy the rows into a finished table, in one block of memory.  Errors: GPUL_ENOMEM. */
gpul_status gpul_kernel_rows_finish(const gpul_kernel_rows *rows, gpul_kernel_table *out,
				    gpul_error *err);

/* The readers for each kind of image; gpul_kernels_read() chooses.  A cubin with a gap (excerpt_internal.h) fails if
 * data in the gap is needed. */
gpul_status gpul_kernels_of_cubin(const void *bytes, size_t n_bytes, gpul_cubin_gap gap,
				  gpul_kernel_table *out, gpul_error *err);
gpul_status gpul_kernels_of_ptx(const char *text, size_t n_bytes, gpul_kernel_table *out,
				gpul_error *err);

#endif
