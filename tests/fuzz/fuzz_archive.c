/* fuzz_archive.c — libFuzzer target: the members of an archive. */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	fuzz_after_head("!<arch>\n", 8, data, n_bytes);
	return 0;
}
