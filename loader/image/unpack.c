/* unpack.c — decompresses an image: from the bytes in the file to the bytes that the driver accepts.
 *
 * Damaged or hostile files may claim any size.  A claimed size is checked for plausibility before memory is allocated,
 * and a decompressor never writes more than this size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/image/fatbin_internal.h"
#include "loader/image/images_internal.h"

#if GPUL_HAVE_LZ4
#include <lz4.h>
#endif
#if GPUL_HAVE_ZSTD
#include <zstd.h>
#endif

/* Machine code compresses to 1/3 of its size, padding and tables to 1/50.  A higher ratio than LARGE_RATIO occurs only for zeros,
 * and is accepted for images of up to LARGE_BYTES. */
#define LARGE_BYTES (32u << 20)
#define LARGE_RATIO 200
#define MOST_BYTES  ((uint64_t)2 << 30)

#define HUGE_PAGE  ((size_t)2 << 20)
#define GROW_BYTES ((size_t)8 << 20) /* smaller buffers grow by doubling */

typedef struct buffer { /* the value of gpul_unpacked.owned, which is reused for the next image */
	unsigned char *at;
	size_t room;
#if GPUL_HAVE_ZSTD
	ZSTD_DCtx *zstd;
#endif
} buffer;

static gpul_status damaged(const gpul_image *image, const char *what, gpul_error *err)
{
	char arch[16];

	return gpul_fail(err, GPUL_EFORMAT, (int)(image->offset & INT32_MAX),
			 "the %s image for %s at byte %llu cannot be decompressed: %s" GPUL_AGAIN, gpul_image_kind_name(image->kind),
			 gpul_image_arch(image, arch), (unsigned long long)image->offset, what);
}

static gpul_status no_memory(const gpul_image *image, gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, ENOMEM, "no memory to decompress an image of %llu bytes", (unsigned long long)image->bytes);
}

static uint64_t most_unpacked(uint64_t stored_bytes)
{
	return LARGE_BYTES + stored_bytes * LARGE_RATIO;
}

bool gpul_can_unpack_all(gpul_images *list, uint64_t stored_bytes, uint64_t bytes)
{
	list->packed_bytes += stored_bytes;
	list->unpacked_bytes += bytes;
	return list->unpacked_bytes <= most_unpacked(list->packed_bytes);
}

bool gpul_can_unpack(uint64_t stored_bytes, uint64_t bytes)
{
	uint64_t most = stored_bytes > MOST_BYTES ? 0 : stored_bytes * LARGE_RATIO;

	return bytes && bytes <= (most > LARGE_BYTES ? most : LARGE_BYTES) && bytes <= MOST_BYTES;
}

/* Allocate a buffer on huge pages of 2 MB.  On pages of 4 KB, page faults would take a tenth of the time of decompressing. */
static void *on_huge_pages(size_t *room)
{
	void *at;

	*room = (*room + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	at = aligned_alloc(HUGE_PAGE, *room);
	if (at)
		madvise(at, *room, MADV_HUGEPAGE);
	return at;
}

/* Return a buffer for n bytes and a NUL; NULL: out of memory. */
static buffer *make_room(gpul_unpacked *out, size_t n)
{
	buffer *b = out->owned ? out->owned : calloc(1, sizeof *b);

	if (!b)
		return NULL;
	out->owned = b;
	if (b->room < n + 1) {
		size_t room = n + 1 > b->room * 2 || n > GROW_BYTES ? n + 1 : b->room * 2;

		free(b->at); /* not realloc(): the old content is not needed */
		b->at = room < HUGE_PAGE ? malloc(room) : on_huge_pages(&room);
		b->room = b->at ? room : 0;
	}
	return b->at ? b : NULL;
}

/* unpack_lz4() and unpack_zstd() return the number of decompressed bytes; 0: the data is damaged. */
static size_t unpack_lz4(const gpul_image *image, buffer *b)
{
#if GPUL_HAVE_LZ4
	int n = LZ4_decompress_safe(image->stored, (char *)b->at, (int)image->stored_bytes, (int)image->bytes);

	return n > 0 ? (size_t)n : 0;
#else
	(void)image;
	(void)b;
	return 0;
#endif
}

static size_t unpack_zstd(const gpul_image *image, buffer *b)
{
#if GPUL_HAVE_ZSTD
	size_t n;

	if (!b->zstd)
		b->zstd = ZSTD_createDCtx();
	if (!b->zstd)
		return 0;
	n = ZSTD_decompressDCtx(b->zstd, b->at, (size_t)image->bytes, image->stored, (size_t)image->stored_bytes);
	return ZSTD_isError(n) ? 0 : n;
#else
	(void)image;
	(void)b;
	return 0;
#endif
}

#if GPUL_HAVE_ZSTD
/* Decompress only the first n bytes, which is possible because zstd can stop in the middle of a stream. */
static bool start_zstd(const gpul_image *image, void *out, size_t n)
{
	ZSTD_inBuffer from = { image->stored, (size_t)image->stored_bytes, 0 };
	ZSTD_outBuffer to = { out, n, 0 };
	ZSTD_DStream *stream = ZSTD_createDStream();
	size_t more = 1;

	while (stream && to.pos < n && more && !ZSTD_isError(more) && from.pos < from.size)
		more = ZSTD_decompressStream(stream, &to, &from);
	ZSTD_freeDStream(stream);
	return to.pos == n;
}
#endif

bool gpul_image_start(const gpul_image *image, void *out, size_t n)
{
	if (image->compression == GPUL_COMPRESSION_NONE) {
		if (image->stored_bytes < n)
			return false;
		memcpy(out, image->stored, n);
		return true;
	}
#if GPUL_HAVE_LZ4
	if (image->compression == GPUL_COMPRESSION_LZ4 && image->stored_bytes <= INT32_MAX)
		return LZ4_decompress_safe_partial(image->stored, out, (int)image->stored_bytes, (int)n, (int)n) == (int)n;
#endif
#if GPUL_HAVE_ZSTD
	if (image->compression == GPUL_COMPRESSION_ZSTD)
		return start_zstd(image, out, n);
#endif
	return false;
}

static bool is_built_in(gpul_compression c)
{
	return c == GPUL_COMPRESSION_LZ4 ? GPUL_HAVE_LZ4 : GPUL_HAVE_ZSTD;
}

static gpul_status unpack_payload(const gpul_image *image, gpul_unpacked *out, gpul_error *err)
{
	buffer *b;
	size_t n;

	if (!is_built_in(image->compression))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the image is compressed by %s, but this gpuload was built without that method: build gpuload "
				 "with lib%s",
				 gpul_compression_name(image->compression), gpul_compression_name(image->compression));
	if (image->stored_bytes > INT32_MAX || !gpul_can_unpack(image->stored_bytes, image->bytes))
		return damaged(image, "its compressed and uncompressed sizes cannot both be right", err);
	b = make_room(out, (size_t)image->bytes);
	if (!b)
		return no_memory(image, err);
	n = image->compression == GPUL_COMPRESSION_LZ4 ? unpack_lz4(image, b) : unpack_zstd(image, b);
	if (n != image->bytes)
		return damaged(image, "its compressed data is damaged", err);
	b->at[n] = '\0';
	out->bytes = b->at;
	out->n_bytes = n;
	return GPUL_OK;
}

static gpul_status copy_image(const gpul_image *image, gpul_unpacked *out, gpul_error *err)
{
	buffer *b;

	if (image->stored_bytes > MOST_BYTES)
		return damaged(image, "it is too long", err);
	b = make_room(out, (size_t)image->stored_bytes);
	if (!b)
		return no_memory(image, err);
	memcpy(b->at, image->stored, (size_t)image->stored_bytes);
	b->at[image->stored_bytes] = '\0';
	out->bytes = b->at;
	out->n_bytes = (size_t)image->stored_bytes;
	return GPUL_OK;
}

/* Return the entry (header and payload) of an image in its fatbin; empty: the image is not from a fatbin. */
static gpul_span find_fatbin_entry(const gpul_image *image)
{
	const unsigned char *at = image->fatbin, *end = at + image->fatbin_bytes;
	fatbin_entry e;

	for (at += at ? sizeof(fatbin_header) : 0; at < end; at += gpul_fatbin_entry_bytes(&e)) {
		memcpy(&e, at, sizeof e); /* in bounds, because fatbin.c has checked every entry */
		if (at + e.header_bytes == image->stored)
			return (gpul_span){ at, gpul_fatbin_entry_bytes(&e) };
	}
	return (gpul_span){ NULL, 0 };
}

/* Build a fatbin with this image as its only entry, because nvJitLink accepts LTO-IR only in a fatbin. */
static gpul_status wrap_lto(const gpul_image *image, gpul_unpacked *out, gpul_error *err)
{
	gpul_span entry = find_fatbin_entry(image);
	const fatbin_header h = { .magic = GPUL_FATBIN_MAGIC, .version = 1, .header_bytes = sizeof h, .payload_bytes = entry.n };
	buffer *b;

	if (entry.n == 0 || entry.n > MOST_BYTES)
		return damaged(image, "it is not in a fatbin", err);
	out->n_bytes = sizeof h + entry.n;
	b = make_room(out, out->n_bytes);
	if (!b)
		return no_memory(image, err);
	memcpy(b->at, &h, sizeof h);
	memcpy(b->at + sizeof h, entry.at, entry.n);
	b->at[out->n_bytes] = '\0'; /* terminates the last text of the entry, which nvJitLink reads as a string */
	out->bytes = b->at;
	return GPUL_OK;
}

gpul_status gpul_image_unpack(const gpul_image *image, gpul_unpacked *out, gpul_error *err)
{
	gpul_status st;

	out->bytes = NULL;
	out->n_bytes = 0;
	if (image->kind == GPUL_IMAGE_LTO)
		return wrap_lto(image, out, err);
	if (image->compression != GPUL_COMPRESSION_NONE) {
		st = unpack_payload(image, out, err);
		if (st == GPUL_OK && image->kind == GPUL_IMAGE_PTX) /* NVIDIA's size includes the NUL */
			out->n_bytes = strnlen(out->bytes, out->n_bytes);
		return st;
	}
	if (image->kind == GPUL_IMAGE_PTX && !image->ended)
		return copy_image(image, out, err);
	out->bytes = image->stored;
	out->n_bytes = (size_t)image->stored_bytes;
	return GPUL_OK;
}

void gpul_unpacked_free(gpul_unpacked *u)
{
	buffer *b = u->owned;

	if (b) {
#if GPUL_HAVE_ZSTD
		ZSTD_freeDCtx(b->zstd);
#endif
		free(b->at);
		free(b);
	}
	*u = (gpul_unpacked){ 0 };
}
