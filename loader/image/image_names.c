/* image_names.c — gives the names of image kinds, compressions, origins and architectures. */
#include <string.h>

#include "loader/image/images.h"

const char *gpul_image_kind_name(gpul_image_kind kind)
{
	switch (kind) {
	case GPUL_IMAGE_PTX:
		return "ptx";
	case GPUL_IMAGE_CUBIN:
		return "cubin";
	case GPUL_IMAGE_LTO:
		return "lto";
	}
	return "?";
}

const char *gpul_compression_name(gpul_compression c)
{
	switch (c) {
	case GPUL_COMPRESSION_NONE:
		return "none";
	case GPUL_COMPRESSION_LZ4:
		return "lz4";
	case GPUL_COMPRESSION_ZSTD:
		return "zstd";
	}
	return "?";
}

const char *gpul_origin_name(gpul_origin origin)
{
	return origin == GPUL_ORIGIN_REGISTERED ? "registered" : "embedded";
}

/* Does not use snprintf(), which would take half of the time of printing a table of 24,000 images. */
const char *gpul_image_arch(const gpul_image *image, char buf[16])
{
	char digits[5], *p = digits + sizeof digits;
	size_t n;

	for (unsigned left = image->sm; left; left /= 10)
		*--p = (char)('0' + left % 10);
	n = (size_t)(digits + sizeof digits - p);
	memcpy(buf, "sm_?", 5);
	if (n) {
		memcpy(buf + 3, p, n);
		buf[3 + n] = image->suffix;
		buf[4 + n] = '\0';
	}
	return buf;
}
