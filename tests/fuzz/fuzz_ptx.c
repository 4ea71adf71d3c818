/* fuzz_ptx.c — libFuzzer target: parses any bytes as PTX, or refuses them; prints a parsed module, and parses the printed text, which
 * must give an equal module.
 *
 *     clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -I. -Iinclude tests/fuzz/fuzz_ptx.c ptx/[a-m]*.c ptx/[o-z]*.c \
 *           ptx/ptx_names.c core/array.c core/error.c -o fuzz_ptx
 *     ./fuzz_ptx -dict=tests/fuzz/dict/ptx.dict -max_len=4096 new/ build/fuzz/seeds/ptx */
#include <stdint.h>
#include <stdlib.h>

#include "ptx/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int truth)
{
	if (!truth)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	gpul_ptx_module *m = NULL, *again = NULL;
	gpul_error err = { 0 };
	char *text = NULL;
	size_t text_bytes;

	gpul_ptx_parse_heads((const char *)data, n_bytes, "fuzz.ptx", &m, NULL);
	gpul_ptx_module_destroy(m);
	m = NULL;
	if (gpul_ptx_parse((const char *)data, n_bytes, "fuzz.ptx", &m, &err)) {
		require(m == NULL && err.status != GPUL_OK && err.text[0]);
		return 0;
	}
	require(gpul_ptx_print(m, &text, &text_bytes, &err) == GPUL_OK);
	require(gpul_ptx_parse(text, text_bytes, "printed.ptx", &again, &err) == GPUL_OK);
	require(gpul_ptx_module_equal(m, again));
	gpul_ptx_module_destroy(again);
	gpul_ptx_module_destroy(m);
	free(text);
	return 0;
}
