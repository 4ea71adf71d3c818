/* replace.c — cuGetProcAddress() and the like: the program receives the address of a wrapper.
 *
 * The function that the driver returned is found by its address among those that the driver exports. A driver may also return
 * another address; then the interface is chosen as the driver does it: the newest one that is not newer than the requested version. */
#include <string.h>

#include "nvidia/calls/bind_internal.h"
#include "nvidia/calls/wrapper_internal.h"

#include <cuda.h>

static bool is_per_thread(const char *symbol)
{
	const size_t n = strlen(symbol);

	return n > 5 && (!strcmp(symbol + n - 5, "_ptsz") || !strcmp(symbol + n - 5, "_ptds"));
}

/* Return the row of an interface; n_calls_rows: none, or one that the table may lack. */
static size_t choose_interface(const char *symbol, int version, bool per_thread)
{
	size_t best = n_calls_rows;

	if (version <= 0 || version > CUDA_VERSION)
		return best;
	for (size_t i = 0; i < n_calls_rows; i++) {
		const struct calls_row *r = &calls_rows[i];

		if (r->is_runtime || strcmp(r->base, symbol) || !r->since || r->since > (uint32_t)version)
			continue;
		if (best == n_calls_rows || r->since > calls_rows[best].since ||
		    (r->since == calls_rows[best].since && is_per_thread(r->name) == per_thread))
			best = i;
	}
	return best;
}

/* Return the row with this address among those of the symbol: other functions may have the same code. */
static size_t find_address(const char *symbol, const void *function)
{
	size_t row = 0;

	while (row < n_calls_rows && (gpuload_calls_real[row] != function || calls_rows[row].is_runtime ||
				      (strcmp(calls_rows[row].base, symbol) && strcmp(calls_rows[row].name, symbol))))
		row++;
	return row;
}

void calls_replace(const char *symbol, void **function, int cuda_version, uint64_t flags)
{
	size_t row;

	if (!symbol || !function || !*function)
		return;
	row = find_address(symbol, *function);
	if (row == n_calls_rows) {
		if (calls_is_wrapper(*function))
			return;
		row = choose_interface(symbol, cuda_version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
		if (row == n_calls_rows)
			return;
		gpuload_calls_real[row] = *function;
	}
	*function = calls_wrapper(row);
}
