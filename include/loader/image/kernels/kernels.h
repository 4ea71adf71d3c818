/* kernels.h — lists the kernels of an image, from its symbol table and .nv.info sections, or from its PTX. */
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
	uint32_t offset, bytes; /* position in the parameter buffer */
	uint16_t type;          /* PTX: enum gpul_ptx_type of the declaration (a struct is .b8); cubin: 0 */
} gpul_kernel_param;

#define GPUL_NOT_RECORDED UINT32_MAX /* unknown: this kind of image does not record the number */

typedef struct gpul_kernel_info {
	const char *name;                /* mangled name; owned by the table */
	const gpul_kernel_param *params; /* parameters in the order of the declaration; owned by the table */
	uint32_t n_params;
	uint32_t registers;           /* registers per thread; PTX: GPUL_NOT_RECORDED */
	uint32_t shared_bytes;        /* static shared memory per block; PTX: the arrays that the kernel's body declares or uses */
	uint32_t stack_bytes;         /* per thread: the stack that the kernel and the functions that it calls need, as
				* the linker counted it; NOT_RECORDED: code that is not linked yet, PTX */
	uint32_t frame_bytes;         /* per thread: the kernel's own stack frame with spills, without the frames of
				* functions that it calls; PTX: NOT_RECORDED */
	uint32_t const_bytes;         /* size of the kernel's constant bank 0, with the parameters; PTX: NOT_RECORDED */
	uint32_t barriers;            /* number of barriers; GPUL_NOT_RECORDED: unknown */
	uint32_t max_threads[3];      /* .maxntid; 0: not given */
	uint32_t required_threads[3]; /* .reqntid; 0: not given */
	uint32_t cluster[3];          /* blocks of a cluster in x, y and z; 0: not given */
	bool is_static;               /* a LOCAL symbol: not visible to other files */
} gpul_kernel_info;

typedef struct gpul_kernel_table {
	const gpul_kernel_info *at;
	size_t n;
	const char *ptxas_version; /* the ptxas that compiled the cubin, such as "13.0.88"; owned by the table; NULL: not recorded */
	const char *ptxas_options; /* command line of that ptxas, such as "-arch sm_90 -m 64"; owned by the table; NULL: not recorded */
	void *owned;               /* memory of the names, parameters and texts */
} gpul_kernel_table;

/** Read the kernels of one unpacked image, in the order of its symbol table or text.
 *
 * @image    only its .kind and .relocatable are used; LTO gives an empty table, because its kernels cannot be listed
 * @bytes    as gpul_image_unpack() returns them; not needed after the call
 * @n_bytes  length of the image
 * @out      owned by the caller: gpul_kernel_table_free(); untouched on failure
 * Errors  GPUL_EFORMAT damaged: the message gives the place (native = byte offset in the image) and what was expected; GPUL_ENOMEM
 * Source  the ELF specification; NVIDIA's sections as seen in CUDA 11 to 13 (cubin.c lists the versions);
 *         PTX ISA 9.0, 5.1.6, 11.1 */
gpul_status gpul_kernels_read(const gpul_image *image, const void *bytes, size_t n_bytes, gpul_kernel_table *out, gpul_error *err);
/** Free the table; accepts a zeroed *t; cannot fail. */
void gpul_kernel_table_free(gpul_kernel_table *t);

/* Returns true to visit an image; called for each image before it is decompressed. */
typedef bool gpul_image_filter(const gpul_image *image, void *context);
/* Receives the kernels of one image.  gpul_kernels_visit() calls it for one image at a time, in the order of its list of images, and
 * frees the table after each call.  failed: NULL, or why the image is damaged (the table is then empty).  The visitor returns
 * a failure to stop. */
typedef gpul_status gpul_kernel_visitor(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
					gpul_error *err);

/** Decompress the images of a list on all CPUs and visit their kernels in the order of the list.
 *
 * However long the list is, only a few decompressed images are in memory at a time.
 *
 * @images    borrowed
 * @wanted    selects images; NULL: all
 * @visit     called for each image; a status other than GPUL_OK ends the visits and is returned
 * @context   passed to wanted and visit
 * @progress  NULL: no reports
 * Errors  what visit returned; GPUL_ESYS the file was truncated while it was read (gpul_source_check()); GPUL_ENOMEM */
gpul_status gpul_kernels_visit(const gpul_images *images, gpul_image_filter *wanted, gpul_kernel_visitor *visit, void *context,
			       const gpul_progress *progress, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
