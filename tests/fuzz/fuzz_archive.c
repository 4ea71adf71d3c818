/* fuzz_archive.c — libFuzzer target: reads the members of an ar archive. */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	fuzz_after_head("!<arch>\n", 8, data, n_bytes);
	return 0;
}
