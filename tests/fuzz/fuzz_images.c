/* fuzz_images.c — libFuzzer target: the images of any bytes are listed and unpacked, or
 * the bytes are refused. */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	fuzz_images(data, n_bytes);
	return 0;
}
