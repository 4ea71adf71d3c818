/* choose_internal.h — of the images in some files, the one to load, or those to link.
 *
 *     files ── gpul_choice_open: images, and a verdict on each (select.h)
 *           ── gpul_choice_find: the image that has the kernel asked for │ NULL: link
 *           ── load.c: unpack it, or link.h, and into the driver */
#ifndef GPULOAD_LOADER_CHOOSE_CHOOSE_INTERNAL_H
#define GPULOAD_LOADER_CHOOSE_CHOOSE_INTERNAL_H

#include "core/file.h"
#include "loader/image/images.h"
#include "loader/image/kernels/kernels.h"
#include "loader/image/recognise.h"
#include "loader/loader.h"
#include "loader/choose/select.h"

typedef struct gpul_source { /* a file that was named; also named in loader_internal.h */
	const char *path;        /* borrowed */
	gpul_content content;
	gpul_file file;          /* of CUDA C++, and of a pipe, which is read but once; else closed */
	char *compiled;          /* CUDA C++ among several files: its PTX, which images read */
	gpul_images *images;
	const gpul_image *all;   /* of images */
	size_t n;
	gpul_verdict *verdicts;  /* n of them */
} gpul_source;

typedef struct gpul_choice { /* also named in loader_internal.h */
	const gpul_load_options *options; /* never NULL */
	gpul_target target;
	gpul_source *sources;
	size_t n_sources;
} gpul_choice;

/** Read the files and judge their images.
 *
 * @paths    n of them; borrowed until gpul_choice_close()
 * @n        at least 1
 * @first    the first of them, open; a pipe's is taken over and zeroed; NULL: not open yet
 * @target   cc and machine_code are set; copied
 * @options  borrowed until gpul_choice_close()
 * @out      owned by the caller: gpul_choice_close(); zeroed on failure
 * Errors  those of gpul_images_open(), and of NVRTC for .cu files; GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status gpul_choice_open(const char *const *paths, size_t n, gpul_file *first,
			     const gpul_target *target, const gpul_load_options *options,
			     gpul_choice *out, gpul_error *err);
void gpul_choice_close(gpul_choice *c); /* a zeroed one is fine; cannot fail */

typedef struct gpul_chosen {
	const gpul_source *source;
	const gpul_image *image; /* NULL: what gpul_choice_links() is true of is to be linked */
} gpul_chosen;

/** Find the image to load.
 *
 * @c    verdicts of damaged images are changed to say so
 * @out  filled in
 * Errors  GPUL_EFORMAT no device code, or no kernels; GPUL_EUNSUPPORTED no image for this device: which
 *         there are, and the option of nvcc that would add it; GPUL_EINVAL no such kernel, or
 *         several: their names
 * Threads any thread may call, one at a time for one choice
 * Source  - */
gpul_status gpul_choice_find(gpul_choice *c, gpul_chosen *out, gpul_error *err);

/* Is image i of s fit to be linked: relocatable, LTO code or, of several files, bare PTX? */
bool gpul_choice_links(const gpul_choice *c, const gpul_source *s, size_t i);

/* "libvec.a(vec.o)" into buf; returns buf. */
const char *gpul_choice_name(const gpul_source *s, const gpul_image *image, char *buf,
			     size_t buf_bytes);

/* gpul_image_unpack(), with the file's name in what it says. */
gpul_status gpul_choice_unpack(const gpul_source *s, const gpul_image *image,
			       gpul_unpacked *out, gpul_error *err);

/* Tell options->explain of every image, its verdict, and what was chosen (NULL: nothing was). */
void gpul_choice_explain(const gpul_choice *c, const gpul_chosen *chosen);

/* ---- why nothing was found: always a failure -------------------------------------------- */

gpul_status gpul_choice_no_code(const gpul_choice *c, gpul_error *err);
gpul_status gpul_choice_no_image(const gpul_choice *c, gpul_error *err);
/* The kernel asked for is in none of the images taken: a near name, or where it is. */
gpul_status gpul_choice_no_kernel(const gpul_choice *c, const gpul_error *damage,
				  gpul_error *err);

#endif
