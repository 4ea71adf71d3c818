/* fuzz_elf.c — libFuzzer target: reads the sections of a host's ELF file.  The input is the part after the header's e_version. */
#include "tests/fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	fuzz_after_head("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\x3e\0\1\0\0\0", 24, data, n_bytes);
	return 0;
}
