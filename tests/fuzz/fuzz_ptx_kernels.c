/* fuzz_ptx_kernels.c — libFuzzer target: lists the kernels of a PTX text, or refuses the text with a reason. */
#include "tests/fuzz/fuzz_reader.h"

#include "loader/image/kernels/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	gpul_image image = { .kind = GPUL_IMAGE_PTX };
	gpul_kernel_table table = { 0 };
	gpul_error err = { 0 };
	char *text = malloc(n_bytes + 1);

	require(text != NULL);
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	if (gpul_kernels_read(&image, text, n_bytes, &table, &err))
		require(table.n == 0 && err.status != GPUL_OK && err.text[0]);
	for (size_t i = 0; i < table.n; i++)
		require(table.at[i].name[0] && table.at[i].n_params <= n_bytes);
	gpul_kernel_table_free(&table);
	free(text);
	return 0;
}
