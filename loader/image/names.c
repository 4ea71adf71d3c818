/* names.c — how images are called in tables and messages. */
#include <stdio.h>

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

const char *gpul_image_arch(const gpul_image *image, char buf[16])
{
	if (image->sm)
		snprintf(buf, 16, "sm_%u%.1s", image->sm, (char[2]){ image->suffix, '\0' });
	else
		snprintf(buf, 16, "sm_?");
	return buf;
}
