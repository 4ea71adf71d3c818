/* fuzz_images.c — libFuzzer target: any bytes are a container whose images are
 * listed and unpacked, or are refused. */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	fuzz_images(data, n_bytes);
	return 0;
}
