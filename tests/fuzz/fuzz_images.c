/* fuzz_images.c — libFuzzer target: lists and unpacks the images in any bytes, or refuses the bytes. */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	fuzz_images(data, n_bytes);
	return 0;
}
