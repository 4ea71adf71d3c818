/* kernel_rows.c — builds a kernel table row by row, and copies the finished table into one block of memory. */
#include "loader/image/kernels/kernel_rows_internal.h"

#include <stdlib.h>
#include <string.h>

gpul_kernel_row *gpul_kernel_rows_add(gpul_kernel_rows *rows)
{
	gpul_kernel_row *row = gpul_array_push(&rows->kernels);

	if (row) {
		row->info.registers = GPUL_NOT_RECORDED;
		row->info.stack_bytes = row->info.frame_bytes = GPUL_NOT_RECORDED;
		row->info.const_bytes = row->info.barriers = GPUL_NOT_RECORDED;
	}
	return row;
}

/* Copy a text and a NUL to *end, and return the copy; NULL if `text` is NULL. */
static const char *append_text(char **end, const char *text, size_t n)
{
	char *at = *end;

	if (!text)
		return NULL;
	memcpy(at, text, n);
	at[n] = '\0';
	*end = at + n + 1;
	return at;
}

/*     ┌─────────┬────────────┬─────────┬────────────────────┐
 *     │ kernels │ parameters │ names \0│ version \0 options \0│   one block: kernels have the strictest alignment
 *     └─────────┴────────────┴─────────┴────────────────────┘ */
gpul_status gpul_kernel_rows_finish(const gpul_kernel_rows *rows, gpul_kernel_table *out, gpul_error *err)
{
	size_t n = rows->kernels.n, n_params = rows->params.n;
	size_t kernel_bytes = n * sizeof(gpul_kernel_info);
	size_t param_bytes = n_params * sizeof(gpul_kernel_param);
	const gpul_cubin_build *b = &rows->build;
	char *block = NULL, *names, *end;
	gpul_kernel_param *params;

	if (n == 0) {
		*out = (gpul_kernel_table){ 0 };
		return GPUL_OK;
	}
	block = malloc(kernel_bytes + param_bytes + rows->names_bytes + 1 + b->version_bytes + 1 + b->options_bytes + 1);
	if (!block)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a table of %zu kernels", n);
	params = (gpul_kernel_param *)(void *)(block + kernel_bytes);
	names = block + kernel_bytes + param_bytes;
	if (n_params)
		memcpy(params, rows->params.at, param_bytes);
	memcpy(names, rows->names, rows->names_bytes);
	names[rows->names_bytes] = 0;
	end = names + rows->names_bytes + 1;
	for (size_t i = 0; i < n; i++) {
		gpul_kernel_info *k = (gpul_kernel_info *)(void *)block + i;

		*k = rows->kernels.at[i].info;
		k->name = names + rows->kernels.at[i].name_at;
		k->params = k->n_params ? params + rows->kernels.at[i].first_param : NULL;
	}
	*out = (gpul_kernel_table){ .at = (gpul_kernel_info *)(void *)block, .n = n, .owned = block };
	out->ptxas_version = append_text(&end, b->version, b->version_bytes);
	out->ptxas_options = append_text(&end, b->options, b->options_bytes);
	return GPUL_OK;
}
