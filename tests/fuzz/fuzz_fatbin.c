/* fuzz_fatbin.c — libFuzzer target: reads the entries of a fatbin. */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct {
		uint32_t magic;
		uint16_t version, header_bytes;
		uint64_t payload_bytes;
	} head = { 0xBA55ED50, 1, 16, n_bytes };

	fuzz_after_head(&head, sizeof head, data, n_bytes);
	return 0;
}
