/* stripped_internal.h — find the registered fatbins of a program without section headers.
 *
 *     wrapper in .data:  46 62 43 b1 │ version │ data ──> fatbin │ more
 *
 * The program's constructors pass each wrapper to the CUDA runtime.  In a position-independent program (PIE, .so) a
 * relocation sets data when the program is loaded. */
#ifndef GPULOAD_LOADER_IMAGE_STRIPPED_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_STRIPPED_INTERNAL_H

#include <elf.h>

#include "loader/image/images_internal.h"

typedef struct gpul_loaded { /* a loaded segment of a program */
	uint64_t address;
	gpul_span bytes; /* of the file */
	bool writable;
} gpul_loaded;

/* Mark the images from index `first` on as REGISTERED if a wrapper points to their fatbin.  dynamic: the dynamic
 * section, may be empty.  False: out of memory. */
bool gpul_stripped_register(gpul_images *list, size_t first, const gpul_loaded *loaded, size_t n,
			    gpul_span dynamic);

#endif
