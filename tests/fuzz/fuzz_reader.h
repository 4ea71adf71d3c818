/* fuzz_reader.h — for the targets that test readers of images: lists images, checks the list, unpacks the images.
 *
 * Each target tests one reader.  It puts the valid beginning of such a file before the input, for example a fatbin's header in
 * fuzz_fatbin, so that every input tests the entries after it. */
#ifndef GPULOAD_TESTS_FUZZ_READER_H
#define GPULOAD_TESTS_FUZZ_READER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Larger images are not unpacked, which would only take time: the library checks a size before it allocates memory. */
enum { MOST_UNPACKED = 1 << 18 };

static inline void require(int truth)
{
	if (!truth)
		abort();
}

static inline void fuzz_unpack(const gpul_image *image)
{
	gpul_unpacked u = { 0 };
	gpul_error err = { 0 };

	if (gpul_image_unpack(image, &u, &err) == GPUL_OK) {
		require(u.bytes != NULL && u.n_bytes <= image->bytes + 65536 + 16);
		require(image->kind != GPUL_IMAGE_PTX || ((const char *)u.bytes)[u.n_bytes] == '\0');
	} else {
		require(err.status != GPUL_OK && err.text[0]);
	}
	gpul_unpacked_free(&u);
}

/* List and unpack all images, which must lie inside the input, in increasing order. */
static inline void fuzz_images(const uint8_t *bytes, size_t n_bytes)
{
	gpul_source *source = NULL;
	const gpul_images *list = NULL;
	gpul_error err = { 0 };
	const gpul_image *all;
	size_t n;

	if (gpul_source_of(bytes, n_bytes, "fuzz", &source, &err) || gpul_source_images(source, NULL, &list, &err)) {
		require(list == NULL && err.status != GPUL_OK && err.text[0]);
		gpul_source_close(source);
		return;
	}
	all = gpul_images_all(list, &n);
	for (size_t i = 0; i < n; i++) {
		const gpul_place *place = gpul_images_place(list, &all[i]);

		require(place->file && place->section);
		require(all[i].offset <= n_bytes);
		require(all[i].stored_bytes <= n_bytes - all[i].offset);
		require((const uint8_t *)all[i].stored == bytes + all[i].offset);
		require(!all[i].options || all[i].options_bytes <= n_bytes);
		if (all[i].bytes <= MOST_UNPACKED || all[i].bytes > UINT32_MAX)
			fuzz_unpack(&all[i]);
	}
	gpul_source_close(source);
}

/* Call fuzz_images() with a file that consists of the given head and the input. */
static inline void fuzz_after_head(const void *head, size_t head_bytes, const uint8_t *data, size_t n_bytes)
{
	uint8_t *all = malloc(head_bytes + n_bytes);

	require(all != NULL);
	memcpy(all, head, head_bytes);
	memcpy(all + head_bytes, data, n_bytes);
	fuzz_images(all, head_bytes + n_bytes);
	free(all);
}

#endif
