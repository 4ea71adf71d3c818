/* excerpt.c — decompresses a large cubin as a stream, and keeps only its first and last part. */
#include "loader/image/kernels/excerpt_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/image/images_internal.h"

#if GPUL_HAVE_ZSTD
#include <zstd.h>
#endif

#define PAYS_BYTES   ((uint64_t)16 << 20)
/* minimum size of the head.  1/16 of the image is added to it, because symbols and .nv.info take at most 1/30 */
#define HEAD_BYTES   ((uint64_t)4 << 20)
#define TABLE_BYTES  ((uint64_t)4 << 20) /* the largest observed section table is smaller */
#define STREAM_BYTES ((size_t)128 << 10) /* size of the largest block of zstd */

static uint64_t head_bytes(const gpul_image *image)
{
	return HEAD_BYTES + image->bytes / 16;
}

bool gpul_excerpt_pays(const gpul_image *image)
{
	return GPUL_HAVE_ZSTD && image->kind == GPUL_IMAGE_CUBIN && image->compression == GPUL_COMPRESSION_ZSTD &&
	       image->bytes >= PAYS_BYTES && gpul_can_unpack(image->stored_bytes, image->bytes);
}

uint64_t gpul_excerpt_bytes(const gpul_image *image)
{
	return head_bytes(image) + TABLE_BYTES + STREAM_BYTES;
}

#if GPUL_HAVE_ZSTD
/* Set the gap between the head and the section table; false: the image does not end with its section table. */
static bool find_gap(gpul_excerpt *e, uint64_t head)
{
	Elf64_Ehdr h;

	memcpy(&h, e->at, sizeof h);
	if (h.e_shoff <= head || h.e_shoff >= e->n_bytes || e->n_bytes - h.e_shoff > TABLE_BYTES)
		return false;
	e->gap = (gpul_cubin_gap){ head, h.e_shoff };
	return true;
}

/* Copy those of the n decompressed bytes at `offset` that are in [from, to). */
static void keep_range(gpul_excerpt *e, uint64_t from, uint64_t to, uint64_t offset, const unsigned char *bytes, size_t n)
{
	uint64_t start = offset > from ? offset : from;
	uint64_t end = offset + n < to ? offset + n : to;

	if (start < end)
		memcpy(e->at + start, bytes + (start - offset), end - start);
}

static bool stream_image(const gpul_images *list, const gpul_image *image, gpul_excerpt *e, ZSTD_DStream *zstd, unsigned char *block)
{
	const unsigned char *packed = image->stored;
	ZSTD_inBuffer in = { packed, (size_t)image->stored_bytes, 0 };
	const uint64_t head = head_bytes(image);
	uint64_t n = 0;
	size_t more = 1;

	while (more) {
		ZSTD_outBuffer out = { block, STREAM_BYTES, 0 };
		size_t before = in.pos;

		more = ZSTD_decompressStream(zstd, &out, &in);
		if (ZSTD_isError(more) || (out.pos == 0 && in.pos == before) || n + out.pos > e->n_bytes)
			return false;
		keep_range(e, 0, head, n, block, out.pos);
		if (n < head && n + out.pos >= head && !find_gap(e, head))
			return false;
		if (n + out.pos > head)
			keep_range(e, e->gap.to, e->n_bytes, n, block, out.pos);
		n += out.pos;
		gpul_images_release_pages(list, packed + before, packed + in.pos);
	}
	return n == e->n_bytes;
}

bool gpul_excerpt_open(const gpul_images *list, const gpul_image *image, gpul_excerpt *out)
{
	gpul_excerpt e = { .n_bytes = (size_t)image->bytes };
	unsigned char *block = malloc(STREAM_BYTES);
	ZSTD_DStream *zstd = ZSTD_createDStream();
	void *at = mmap(NULL, e.n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool ok = false;

	if (at != MAP_FAILED && block && zstd) {
		e.at = at;
		ok = stream_image(list, image, &e, zstd, block);
	}
	ZSTD_freeDStream(zstd);
	free(block);
	if (ok)
		*out = e;
	else if (at != MAP_FAILED)
		munmap(at, e.n_bytes);
	return ok;
}
#else
bool gpul_excerpt_open(const gpul_images *list, const gpul_image *image, gpul_excerpt *out)
{
	(void)list;
	(void)image;
	(void)out;
	return false;
}
#endif

void gpul_excerpt_close(gpul_excerpt *e)
{
	if (e->at)
		munmap(e->at, e->n_bytes);
	*e = (gpul_excerpt){ 0 };
}
