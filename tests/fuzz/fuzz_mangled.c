/* fuzz_mangled.c — libFuzzer target: demangles any text as a mangled C++ name.  gpul_demangle() refuses a name with a large estimated
 * result; this must be fast, and a result must not be much larger than its estimate. */
#include "tests/fuzz/fuzz_reader.h"

#include "core/demangle.h"
#include "core/mangled_internal.h"

enum { TOO_MUCH = 8 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char *name = malloc(n_bytes + 3), *text;

	require(name != NULL);
	memcpy(name, "_Z", 2);
	memcpy(name + 2, data, n_bytes);
	name[n_bytes + 2] = '\0';
	(void)gpul_mangled_length(name);
	text = gpul_demangle(name);
	require(!text || strlen(text) < TOO_MUCH);
	free(text);
	free(name);
	return 0;
}
