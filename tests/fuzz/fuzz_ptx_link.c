/* fuzz_ptx_link.c — libFuzzer target: links PTX modules, or refuses them; the linked PTX must parse, and linking it again must not
 * change it.
 *
 * The input is the texts of the modules without .version and .target, separated by bytes of value 1. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/link/ptx_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int truth)
{
	if (!truth)
		abort();
}

enum { MOST = 4 };

static const char head[] = ".version 8.0 .target sm_75 .address_size 64\n";

/* Parse a module; NULL if it is refused. */
static gpul_ptx_module *parse(const uint8_t *data, size_t n_bytes)
{
	size_t n_head = sizeof head - 1;
	char *text = malloc(n_head + n_bytes);
	gpul_ptx_module *m = NULL;

	require(text != NULL);
	memcpy(text, head, n_head);
	if (n_bytes)
		memcpy(text + n_head, data, n_bytes);
	gpul_ptx_parse(text, n_head + n_bytes, "fuzz.ptx", &m, NULL);
	free(text);
	return m;
}

static size_t parse_all(const uint8_t *data, size_t n_bytes, gpul_ptx_link_input *inputs)
{
	size_t n = 0;

	for (const uint8_t *end; n < MOST; n++, n_bytes -= (size_t)(end - data) + 1, data = end + 1) {
		const uint8_t *cut = n_bytes ? memchr(data, 1, n_bytes) : NULL;

		end = cut ? cut : data + n_bytes;
		inputs[n] = (gpul_ptx_link_input){ parse(data, (size_t)(end - data)), "fuzz.ptx" };
		if (!inputs[n].module)
			return n;
		if (!cut)
			return n + 1;
	}
	return n;
}

/* Link the result again: it must not change, because its names are unique and in order. */
static void check_again(const char *text, size_t text_bytes)
{
	gpul_ptx_module *m = NULL, *same = NULL;
	gpul_error err = { 0 };
	char *again = NULL;
	size_t again_bytes;

	require(gpul_ptx_parse(text, text_bytes, "linked.ptx", &m, &err) == GPUL_OK);
	gpul_ptx_link_input input = { m, "linked.ptx" };
	require(gpul_ptx_link(&input, 1, &again, &again_bytes, &err) == GPUL_OK);
	require(gpul_ptx_parse(again, again_bytes, "again.ptx", &same, &err) == GPUL_OK);
	gpul_ptx_module_destroy(same);
	gpul_ptx_module_destroy(m);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	gpul_ptx_link_input inputs[MOST];
	gpul_error err = { 0 };
	char *text = NULL;
	size_t n = parse_all(data, n_bytes, inputs), text_bytes;

	if (n && !gpul_ptx_link(inputs, n, &text, &text_bytes, &err)) {
		require(strlen(text) == text_bytes);
		check_again(text, text_bytes);
	} else if (n) {
		require(text == NULL && err.status != GPUL_OK && err.text[0]);
	}
	free(text);
	while (n--)
		gpul_ptx_module_destroy((gpul_ptx_module *)(uintptr_t)inputs[n].module);
	return 0;
}
