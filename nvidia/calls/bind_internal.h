/* bind_internal.h — the wrappers as a table without addresses.
 *
 * The auditor reads it in a library that the dynamic loader has mapped but not relocated yet, so each place is the difference to the
 * beginning of the table, and it is filled by the assembler. */
#ifndef GPULOAD_NVIDIA_CALLS_BIND_INTERNAL_H
#define GPULOAD_NVIDIA_CALLS_BIND_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calls_binding {
	int32_t n_rows, unused;
	/* sorted by name, like calls_rows */
	struct {
		int32_t wrapper, name;
	} rows[];
};

extern const struct calls_binding gpuload_calls_binding;

/* The wrapper of a row. */
static inline void *calls_wrapper(size_t row)
{
	return (void *)((uintptr_t)&gpuload_calls_binding + (uintptr_t)(intptr_t)gpuload_calls_binding.rows[row].wrapper);
}

/* Returns true if an address is that of a wrapper. */
static inline bool calls_is_wrapper(const void *function)
{
	for (size_t i = 0; i < (size_t)gpuload_calls_binding.n_rows; i++)
		if (calls_wrapper(i) == function)
			return true;
	return false;
}

#endif
