/* kernels.h — the kernels of an image: what its symbol table, its .nv.info sections or its PTX
 * declare. */
#ifndef GPULOAD_LOADER_IMAGE_KERNELS_KERNELS_H
#define GPULOAD_LOADER_IMAGE_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/image/images.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_kernel_param {
	uint32_t offset, bytes; /* in the parameter buffer */
	uint16_t type; /* PTX: enum gpul_ptx_type of the declaration (a struct is .b8); cubin: 0 */
} gpul_kernel_param;

#define GPUL_NOT_TOLD UINT32_MAX /* a number that this kind of image does not carry */

typedef struct gpul_kernel_info {
	const char *name;      /* mangled; owned by the table */
	const gpul_kernel_param *params; /* in order; owned by the table */
	uint32_t n_params;
	uint32_t registers;    /* a thread; NOT_TOLD: PTX */
	uint32_t shared_bytes; /* static, a block; PTX: what its own body declares and names */
	uint32_t local_bytes;  /* a thread: its stack frame with spills, without those of functions
				* that it calls; NOT_TOLD: PTX */
	uint32_t const_bytes;  /* of its own constant bank, parameters included; NOT_TOLD: PTX */
	uint32_t barriers;     /* NOT_TOLD: not told */
	uint32_t max_threads[3]; /* .maxntid; 0: not given */
	uint32_t required_threads[3]; /* .reqntid; 0: not given */
	uint32_t cluster[3];   /* 0: none asked for */
	bool is_static;        /* a LOCAL symbol: no other file can name it */
} gpul_kernel_info;

typedef struct gpul_kernel_table {
	const gpul_kernel_info *at;
	size_t n;
	void *owned; /* names and parameters */
} gpul_kernel_table;

/** The kernels of one unpacked image, in the order of its symbol table or text.
 *
 * @image    what it is (kind, relocatable); LTO has none to show: an empty table
 * @bytes    as gpul_image_unpack() gives them; not needed after the call
 * @n_bytes  their number
 * @out      owned by the caller: gpul_kernel_table_free(); untouched on failure
 * Errors  GPUL_EFORMAT damaged: where (native = byte offset in the image) and what was expected;
 *         GPUL_ENOMEM
 * Threads any thread may call
 * Source  the ELF specification; NVIDIA's sections as seen in CUDA 11 to 13 (cubin.c says which);
 *         PTX ISA 9.0, 5.1.6, 11.1 */
gpul_status gpul_kernels_read(const gpul_image *image, const void *bytes, size_t n_bytes,
			      gpul_kernel_table *out, gpul_error *err);
/** A zeroed one is fine; cannot fail. */
void gpul_kernel_table_free(gpul_kernel_table *t);

/* Is this image wanted?  Called for each before it is unpacked. */
typedef bool gpul_image_filter(const gpul_image *image, void *context);
/* The kernels of one image, in the order of the list and from one thread at a time; the table is
 * gone afterwards.  failed: the image is damaged (table is empty); return its status to stop. */
typedef gpul_status gpul_kernel_visitor(const gpul_image *image, const gpul_kernel_table *table,
					const gpul_error *failed, void *context,
					gpul_error *err);

/** Unpack the images of a list on all cores and visit their kernels, in order.
 *
 * A few images are in memory at a time, whatever the list's size.
 *
 * @images    borrowed
 * @wanted    NULL: all
 * @visit     gets each table; what it returns but GPUL_OK ends the walk and is returned
 * @context   for both
 * @progress  NULL: nobody wants to know
 * Errors  what visit returned; GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status gpul_kernels_visit(const gpul_images *images, gpul_image_filter *wanted,
			       gpul_kernel_visitor *visit, void *context,
			       const gpul_progress *progress, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
