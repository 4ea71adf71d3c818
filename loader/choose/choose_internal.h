/* choose_internal.h — finds the image to load, or the images to link, in one or more sources.
 *
 *     sources ── gpul_choice_open: their images, and a verdict on each (select.h)
 *             ── gpul_choice_find: the image that has the kernel │ none: link
 *             ── load.c: decompress that image, or link (link_choice.c); then into the driver */
#ifndef GPULOAD_LOADER_CHOOSE_CHOOSE_INTERNAL_H
#define GPULOAD_LOADER_CHOOSE_CHOOSE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/choose/options.h"
#include "loader/choose/select.h"
#include "loader/image/kernels/kernels.h"
#include "loader/image/source.h"
#include "ptx/nvrtc/nvrtc.h"

typedef struct gpul_input {  /* one of the sources, with its images */
	gpul_source *source; /* borrowed */
	const char *name;    /* name of the source, for messages */
	gpul_content content;
	char *ptx;             /* for CUDA C++, if there are several sources: its PTX; owned */
	gpul_source *compiled; /* `ptx` as a source; owned */
	const gpul_images *images;
	const gpul_image *all; /* array of all images in `images` */
	size_t n;
	gpul_verdict *verdicts; /* array of n verdicts, one for each image */
} gpul_input;

typedef struct gpul_choice {
	const gpul_load_options *options; /* never NULL */
	gpul_target target;
	gpul_input *inputs;
	size_t n_inputs;
} gpul_choice;

/** List the images of the sources and give each a verdict.
 *
 * @sources  array of n; borrowed until gpul_choice_close()
 * @n        at least 1
 * @target   cc and machine_code are set; copied
 * @options  borrowed until gpul_choice_close()
 * @out      owned by the caller: gpul_choice_close(); zeroed on failure
 * Errors  those of gpul_source_images(), and of NVRTC for CUDA C++; GPUL_ENOMEM
 * Threads one at a time for each source */
gpul_status gpul_choice_open(gpul_source *const *sources, size_t n, const gpul_target *target, const gpul_load_options *options,
			     gpul_choice *out, gpul_error *err);
void gpul_choice_close(gpul_choice *c); /* accepts a zeroed *c; cannot fail */

typedef struct gpul_chosen {
	const gpul_input *input;
	const gpul_image *image; /* NULL: link the images for which gpul_choice_links() is true */
} gpul_chosen;

/** Find the image to load.
 *
 * @c    the verdict of an image that turns out to be damaged is changed to GPUL_LEFT_DAMAGED
 * @out  filled in
 * Errors  GPUL_EFORMAT no device code, or no kernels; GPUL_EUNSUPPORTED no image for this device: the text lists
 *         the images that exist, and gives the option of nvcc that adds one; GPUL_EINVAL no such kernel, or
 *         several: the text lists them
 * Threads any thread may call; one at a time for each choice */
gpul_status gpul_choice_find(gpul_choice *c, gpul_chosen *out, gpul_error *err);

/* True if image i of an input is to be linked: it is relocatable, it is LTO code, or it is bare PTX and there are several sources. */
bool gpul_choice_links(const gpul_choice *c, const gpul_input *in, size_t i);

/* Write the name of an image's file and member, "libvec.a(vec.o)", to buf; returns buf. */
const char *gpul_input_image_name(const gpul_input *in, const gpul_image *image, char *buf, size_t buf_bytes);

/* Call gpul_image_unpack(), and add the name of the file to its errors. */
gpul_status gpul_input_unpack(const gpul_input *in, const gpul_image *image, gpul_unpacked *out, gpul_error *err);

/* Compile a CUDA C++ source to PTX for compute capability cc.  relocatable: the PTX can then be linked with other code.  The
 * compiler's messages are logged. */
gpul_status gpul_compile_source(gpul_source *source, uint32_t cc, const gpul_load_options *options, bool relocatable,
				gpul_nvrtc_result *out, gpul_error *err);

/* Report every image with its verdict, and the chosen image (NULL: none), to options->explain. */
void gpul_choice_explain(const gpul_choice *c, const gpul_chosen *chosen);

/* ---- errors that explain why nothing can be loaded ---------------------------------------- */

gpul_status gpul_choice_no_code(const gpul_choice *c, gpul_error *err);
gpul_status gpul_choice_no_image(const gpul_choice *c, gpul_error *err);
/* Fail because no selected image has options->kernel: the error suggests a similar name, or an architecture whose image has the kernel. */
gpul_status gpul_choice_no_kernel(const gpul_choice *c, const gpul_error *damage, gpul_error *err);

/* ---- select.c ---- */

/* Like gpul_select(), for an array of images; the images of a unit (fatbin) must be adjacent. */
void gpul_select_among(const gpul_image *images, size_t n, const gpul_target *target, gpul_verdict *verdicts);

/* Compare two images that suit the target: > 0 if the driver prefers a, < 0 if it prefers b, 0 if their order decides. */
int gpul_select_order(const gpul_image *a, const gpul_image *b, const gpul_target *target);

#endif
