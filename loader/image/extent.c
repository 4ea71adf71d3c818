/* extent.c — finds the length of device code that is given as an address only, from its own headers. */
#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "loader/image/fatbin_internal.h"
#include "loader/image/images_internal.h"
#include "loader/image/recognise.h"

#define FATBIN_MAGIC "\x50\xed\x55\xba"

typedef struct fatbin_wrapper { /* __fatBinC_Wrapper_t: nvcc writes one wrapper into each object */
	uint32_t magic, version;
	const void *data;
	const void *more; /* version 2: array of prelinked images; else a file name, or NULL */
} fatbin_wrapper;

static gpul_status set_extent(const void *at, size_t n_at, const void **bytes, size_t *n)
{
	*bytes = at;
	*n = n_at;
	return GPUL_OK;
}

static gpul_status extent_of_fatbin(const void *image, const void **bytes, size_t *n, gpul_error *err)
{
	uint64_t payload;

	memcpy(&payload, (const char *)image + 8, sizeof payload);
	if (payload > INT64_MAX - sizeof(fatbin_header))
		return gpul_fail(err, GPUL_EFORMAT, 8, "the fatbin is damaged: its header gives a size of %llu bytes",
				 (unsigned long long)payload);
	return set_extent(image, sizeof(fatbin_header) + (size_t)payload, bytes, n);
}

static gpul_status extent_of_cubin(const void *image, const void **bytes, size_t *n, gpul_error *err)
{
	size_t found = gpul_cubin_extent((gpul_span){ image, SIZE_MAX - (uintptr_t)image });

	if (found == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the image is an ELF file that is not a cubin, or is damaged");
	return set_extent(image, found, bytes, n);
}

static gpul_status extent_of_wrapper(const void *image, const void **bytes, size_t *n, gpul_error *err)
{
	fatbin_wrapper wrapper;

	memcpy(&wrapper, image, sizeof wrapper);
	if (!wrapper.data || strncmp(wrapper.data, FATBIN_MAGIC, 4) != 0)
		return gpul_fail(err, GPUL_EFORMAT, 8, "the fatbin wrapper does not point to a fatbin");
	return extent_of_fatbin(wrapper.data, bytes, n, err);
}

gpul_status gpul_image_extent(const void *image, const void **bytes, size_t *n, gpul_error *err)
{
	const char *text = image;

	/* strncmp(), not memcmp(), because a text may end before the fourth byte. */
	if (strncmp(text, "\xb1\x43\x62\x46", 4) == 0)
		return extent_of_wrapper(image, bytes, n, err);
	if (strncmp(text, FATBIN_MAGIC, 4) == 0)
		return extent_of_fatbin(image, bytes, n, err);
	if (strncmp(text, ELFMAG, SELFMAG) == 0)
		return extent_of_cubin(image, bytes, n, err);
	if (gpul_recognise(image, strlen(text), NULL).kind != GPUL_CONTENT_PTX)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the image is neither a fatbin, nor a cubin, nor PTX");
	return set_extent(text, strlen(text), bytes, n);
}
