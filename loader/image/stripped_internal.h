/* stripped_internal.h — which fatbins of a program without section headers the runtime is told of.
 *
 *     wrapper in .data:  46 62 43 b1 │ version │ data ──> fatbin │ more
 *
 * The program's constructors hand each wrapper to the CUDA runtime.  Where a program may lie anywhere
 * (PIE, .so), data is filled in by a relocation when it is loaded. */
#ifndef GPULOAD_LOADER_IMAGE_STRIPPED_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_STRIPPED_INTERNAL_H

#include <elf.h>

#include "loader/image/images_internal.h"

typedef struct gpul_loaded { /* a segment */
	uint64_t address;
	gpul_span bytes; /* of the file */
	bool writable;
} gpul_loaded;

/* Images of the list, from `first` on, are REGISTERED where a wrapper leads to their fatbin.
 * dynamic: the dynamic section; empty: none.  False: no memory. */
bool gpul_stripped_register(gpul_images *list, size_t first, const gpul_loaded *loaded, size_t n,
			    gpul_span dynamic);

#endif
