/* bind_internal.h — the table of the wrappers, by name.
 *
 * The auditor reads the table before the dynamic loader has relocated the library that contains it. So the table contains no
 * addresses, but offsets from its own beginning, which the assembler computes. */
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

static inline void *calls_wrapper(size_t row)
{
	return (void *)((uintptr_t)&gpuload_calls_binding + (uintptr_t)(intptr_t)gpuload_calls_binding.rows[row].wrapper);
}

static inline bool calls_is_wrapper(const void *function)
{
	for (size_t i = 0; i < (size_t)gpuload_calls_binding.n_rows; i++)
		if (calls_wrapper(i) == function)
			return true;
	return false;
}

#endif
