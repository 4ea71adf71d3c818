/* fuzz_cubin.c — libFuzzer target: lists the kernels of a cubin.  The input is the part of the file after the ELF header's e_version;
 * its first bit selects the ABI version.
 *
 * Checks the result against the input: names end inside the string table, and there are not more parameters than fit in the input. */
#include "tests/fuzz/fuzz_reader.h"

#include "loader/image/kernels/kernels.h"

static const unsigned char idents[2][24] = {
	{ 0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8, [16] = 2, [18] = 190, [20] = 1 },
	{ 0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7, [16] = 1, [18] = 190, [20] = 1 },
};

static void check(const gpul_kernel_table *t, size_t n_bytes)
{
	size_t n_params = 0;

	for (size_t i = 0; i < t->n; i++) {
		require(t->at[i].name && t->at[i].name[0] && strlen(t->at[i].name) <= n_bytes);
		n_params += t->at[i].n_params;
		for (uint32_t p = 0; p < t->at[i].n_params; p++)
			require(t->at[i].params[p].bytes != 0);
	}
	require(n_params <= n_bytes / 12); /* each parameter needs an attribute of 12 bytes */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	gpul_image image = { .kind = GPUL_IMAGE_CUBIN };
	gpul_kernel_table table = { 0 };
	gpul_error err = { 0 };
	uint8_t *all;
	uint16_t sm;
	char suffix;
	bool relocatable;

	if (n_bytes < 1)
		return 0;
	all = malloc(23 + n_bytes);
	require(all != NULL);
	memcpy(all, idents[data[0] & 1], 24);
	memcpy(all + 24, data + 1, n_bytes - 1);
	if (gpul_kernels_read(&image, all, 23 + n_bytes, &table, &err))
		require(table.n == 0 && err.status != GPUL_OK && err.text[0]);
	check(&table, n_bytes);
	gpul_kernel_table_free(&table);
	err = (gpul_error){ 0 };
	if (gpul_cubin_target(all, 23 + n_bytes, &sm, &suffix, &relocatable, &err))
		require(err.text[0]);
	free(all);
	return 0;
}
