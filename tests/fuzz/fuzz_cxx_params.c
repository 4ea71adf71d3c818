/* fuzz_cxx_params.c — libFuzzer target: treats any text as a demangled C++ name, and reads its parameters. */
#include "tests/fuzz/fuzz_reader.h"

#include "loader/names/cxx_params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char *name = malloc(n_bytes + 1);
	gpul_cxx_param params[8];
	size_t n;

	require(name != NULL);
	memcpy(name, data, n_bytes);
	name[n_bytes] = '\0';
	n = gpul_cxx_params(name, params, 8);
	require(n == GPUL_CXX_NO_LIST || n <= n_bytes);
	for (size_t i = 0; n != GPUL_CXX_NO_LIST && i < n && i < 8; i++) {
		require(params[i].text >= name);
		require(params[i].text + params[i].text_bytes <= name + n_bytes);
		require(!params[i].pointer || params[i].bytes == 8);
	}
	require(gpul_cxx_params(name, NULL, 0) == n);
	free(name);
	return 0;
}
