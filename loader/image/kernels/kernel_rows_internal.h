/* kernel_rows_internal.h — a kernel table under construction: while rows are added, names and parameters are recorded
 * as indices, because the growing arrays move. */
#ifndef GPULOAD_LOADER_IMAGE_KERNELS_KERNEL_ROWS_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_KERNELS_KERNEL_ROWS_INTERNAL_H

#include "core/array.h"
#include "loader/image/cubin_internal.h"
#include "loader/image/kernels/kernels.h"

typedef struct gpul_kernel_row {
	gpul_kernel_info info; /* name and params are set when the table is made */
	size_t name_at;        /* in names */
	size_t first_param;    /* row of params; info.n_params of them */
} gpul_kernel_row;

typedef struct gpul_kernel_rows {
	GPUL_ARRAY(gpul_kernel_row) kernels;
	GPUL_ARRAY(gpul_kernel_param) params;
	const char *names; /* of all kernels, each ends in NUL or at the end of all */
	size_t names_bytes;
} gpul_kernel_rows;

/* Add a row whose numbers are NOT_TOLD or 0; NULL: no memory. */
gpul_kernel_row *gpul_kernel_rows_add(gpul_kernel_rows *rows);

/* The finished table, in one block of memory; GPUL_ENOMEM. */
gpul_status gpul_kernel_rows_finish(const gpul_kernel_rows *rows, gpul_kernel_table *out,
				    gpul_error *err);

/* The readers for each kind of image; gpul_kernels_read() chooses.  A cubin with a gap (excerpt_internal.h) fails if
 * data in the gap is needed. */
gpul_status gpul_kernels_of_cubin(const void *bytes, size_t n_bytes, gpul_cubin_gap gap,
				  gpul_kernel_table *out, gpul_error *err);
gpul_status gpul_kernels_of_ptx(const char *text, size_t n_bytes, gpul_kernel_table *out,
				gpul_error *err);

#endif
