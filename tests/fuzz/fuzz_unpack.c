/* fuzz_unpack.c — libFuzzer target: unpacks a payload, compressed or not, with any claimed size.
 *
 *     byte 0       bits 0, 1: compression; bits 2, 3: kind
 *     bytes 1, 2   claimed size */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static const gpul_compression how[4] = { GPUL_COMPRESSION_NONE, GPUL_COMPRESSION_LZ4, GPUL_COMPRESSION_ZSTD,
						 GPUL_COMPRESSION_ZSTD };
	gpul_image image = { .place = 0 };

	if (n_bytes < 3)
		return 0;
	image.compression = how[data[0] & 3];
	image.kind = data[0] & 4 ? GPUL_IMAGE_CUBIN : GPUL_IMAGE_PTX;
	image.stored = data + 3;
	image.stored_bytes = n_bytes - 3;
	image.bytes = image.stored_bytes;
	if (image.compression)
		image.bytes = (uint64_t)data[1] | (uint64_t)data[2] << 8;
	fuzz_unpack(&image);
	return 0;
}
