/* replace.c — replaces the result of cuGetProcAddress() and similar calls by the address of a wrapper.
 *
 * The function that the driver returned is identified by its address among the functions that the driver exports.  If the driver does not
 * export this address, the function is chosen by the driver's rule: the newest interface that is not newer than the requested version. */
#include <string.h>

#include "nvidia/calls/bind_internal.h"
#include "nvidia/calls/wrapper_internal.h"

#include <cuda.h>

static bool is_per_thread(const char *symbol)
{
	const size_t n = strlen(symbol);

	return n > 5 && (!strcmp(symbol + n - 5, "_ptsz") || !strcmp(symbol + n - 5, "_ptds"));
}

/* Return the index in calls_rows of the newest interface of a symbol that a CUDA version has; n_calls_rows: there is none, or the table
 * is older than that version. */
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

/* Return the index in calls_rows of the function at this address, or n_calls_rows.  The name is compared, too, because several functions
 * may have the same address. */
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
