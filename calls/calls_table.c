/* calls_table.c — looks up calls and their parameters in the generated tables. */
#include "calls/calls_table.h"

#include <string.h>

size_t calls_elements(const struct calls_row *row, size_t param, const uint64_t *words, size_t most)
{
	const int count = row->params[param].count;
	uint64_t n;

	if (count < 0)
		return 1;
	n = words[row->params[count].word];
	if (row->params[count].type->n_bytes == 4)
		n &= UINT32_MAX;
	return n < most ? (size_t)n : most;
}

const struct calls_row *calls_find(const char *symbol)
{
	size_t low = 0, high = n_calls_rows;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(symbol, calls_rows[middle].name);

		if (!order)
			return &calls_rows[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}
