/* excerpt_internal.h — decompresses only the first and last part of a large cubin, as a stream through a small buffer.
 *
 *     0          head                                    section table        bytes
 *     ├──────────┼────────────────────────────────────────┼────────────────────┤
 *     │ symbols, │ machine code: decompressed, because    │ section headers    │
 *     │ .nv.info │ later data refers to it, then dropped  │                    │
 *     └──────────┴────────────────────────────────────────┴────────────────────┘
 *
 * ptxas and nvlink 11 to 13 write the data about kernels first and the section headers last.  For example, 13 MB of a
 * 134-MB cubin in libnccl are kept; the rest stays in the CPU's cache.  This takes two thirds of the time that
 * decompressing the whole image into memory takes. */
#ifndef GPULOAD_LOADER_IMAGE_KERNELS_EXCERPT_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_KERNELS_EXCERPT_INTERNAL_H

#include "loader/image/cubin_internal.h"
#include "loader/image/images.h"

typedef struct gpul_excerpt {
	unsigned char *at; /* n_bytes of address space; the gap has no memory */
	size_t n_bytes;
	gpul_cubin_gap gap;
} gpul_excerpt;

/* True if an excerpt is faster than the whole image: for large cubins that are compressed by zstd. */
bool gpul_excerpt_pays(const gpul_image *image);
/* Return how many bytes of memory gpul_excerpt_open() uses at most. */
uint64_t gpul_excerpt_bytes(const gpul_image *image);

/* Create an excerpt.  Returns false if not possible; then decompress the whole image, which also reports damage.  Releases the
 * pages of the compressed bytes.  Any thread may call. */
bool gpul_excerpt_open(const gpul_images *list, const gpul_image *image, gpul_excerpt *out);
/* Free the excerpt; accepts a zeroed *e; cannot fail. */
void gpul_excerpt_close(gpul_excerpt *e);

#endif
