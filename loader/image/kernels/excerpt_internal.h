/* excerpt_internal.h — the ends of a large cubin, unpacked as a stream through a small buffer.
 *
 *     0          head                                    section table        bytes
 *     ├──────────┼────────────────────────────────────────┼────────────────────┤
 *     │ symbols, │ machine code: unpacked, for what comes │ where the sections │
 *     │ .nv.info │ after refers to it, and forgotten      │ are                │
 *     └──────────┴────────────────────────────────────────┴────────────────────┘
 *
 * What tells of the kernels stands at the front, where the sections are at the very end (ptxas and
 * nvlink 11 to 13).  Of a cubin of 134 MB, of libnccl, 13 are kept: it never leaves the core's cache,
 * which takes two thirds of the time that writing it all to memory takes. */
#ifndef GPULOAD_LOADER_IMAGE_KERNELS_EXCERPT_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_KERNELS_EXCERPT_INTERNAL_H

#include "loader/image/cubin_internal.h"
#include "loader/image/images.h"

typedef struct gpul_excerpt {
	unsigned char *at; /* n_bytes of address space, of which the gap holds nothing to read */
	size_t n_bytes;
	gpul_cubin_gap gap;
} gpul_excerpt;

/* Is it large enough, and compressed in a way that comes as a stream? */
bool gpul_excerpt_pays(const gpul_image *image);
/* At most how much memory gpul_excerpt_open() takes. */
uint64_t gpul_excerpt_bytes(const gpul_image *image);

/* False: it has to be unpacked whole, for whatever reason; that tells what is wrong with it.
 * Lets go of the packed bytes on the way, where they are list's file.  Any thread. */
bool gpul_excerpt_open(const gpul_images *list, const gpul_image *image, gpul_excerpt *out);
/* A zeroed one is fine; cannot fail. */
void gpul_excerpt_close(gpul_excerpt *e);

#endif
