/* kernel_rows_internal.h — a kernel table in the making: while rows are added, names and parameters
 * are told by their place, since what holds them still moves. */
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

/* A row of which nothing is known yet: numbers NOT_TOLD or 0; NULL: no memory. */
gpul_kernel_row *gpul_kernel_rows_add(gpul_kernel_rows *rows);

/* The finished table, in one block of memory; GPUL_ENOMEM. */
gpul_status gpul_kernel_rows_finish(const gpul_kernel_rows *rows, gpul_kernel_table *out,
				    gpul_error *err);

/* The readers, one for each kind of image: gpul_kernels_read() chooses.  A cubin with a gap fails when
 * something is needed that is in it; another one when it is damaged. */
gpul_status gpul_kernels_of_cubin(const void *bytes, size_t n_bytes, gpul_cubin_gap gap,
				  gpul_kernel_table *out, gpul_error *err);
gpul_status gpul_kernels_of_ptx(const char *text, size_t n_bytes, gpul_kernel_table *out,
				gpul_error *err);

#endif
