/* bind.c — finds the wrapper of a function, and tells it what to call.
 *
 * Each auditor has its own copy of this code and of the C library. What they share is in the wrappers' library: its table
 * gpuload_calls_binding, the functions gpuload_calls_real, and gpuload_calls_owners. */
#include "nvidia/calls/bind.h"

#include <cuda.h>
#include <string.h>

#include "nvidia/calls/bind_internal.h"
#include "nvidia/loaded.h"

/* CUDA 13 changed the parameters of these functions of the runtime API. */
static const char *const changed_in_13[] = {
	"cudaGetDeviceProperties", "cudaGraphAddDependencies", "cudaGraphGetEdges", "cudaGraphNodeGetDependencies", "cudaGraphNodeGetDependentNodes",
	"cudaGraphRemoveDependencies", "cudaMemAdvise", "cudaMemPrefetchAsync", "cudaMemcpy3DBatchAsync", "cudaMemcpyBatchAsync",
	"cudaStreamGetCaptureInfo", "cudaStreamUpdateCaptureDependencies",
};

bool calls_are_in(const struct link_map *map)
{
	return find_export(map, "gpuload_calls_binding") && find_export(map, "gpuload_calls_owners");
}

static const char *name_of(const struct calls_binding *b, size_t row)
{
	return (const char *)b + b->rows[row].name;
}

/* -1: there is no wrapper. */
static long find_row(const struct calls_binding *b, const char *name)
{
	long low = 0, high = b->n_rows;

	while (low < high) {
		long middle = (low + high) / 2;
		int order = strcmp(name, name_of(b, (size_t)middle));

		if (!order)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

static bool is_of_driver(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* The wrappers are compiled with the headers of one version of CUDA. */
static bool has_other_parameters(const struct link_map *object, const char *name)
{
	const bool is_12 = find_export(object, "cudaGetDeviceProperties_v2") != 0;   /* CUDA 13 removed it */

	if (is_of_driver(name) || is_12 == (CUDA_VERSION < 13000))
		return false;
	for (size_t i = 0; i < sizeof changed_in_13 / sizeof *changed_in_13; i++)
		if (!strncmp(name, changed_in_13[i], strlen(changed_in_13[i])))
			return true;
	return false;
}

/* The functions that no program has requested by their names: cuGetProcAddress() returns them, or the log needs their texts. */
static void set_others(const struct calls_binding *b, void **reals, const struct link_map *object, bool driver)
{
	for (size_t i = 0; i < (size_t)b->n_rows; i++) {
		const char *name = name_of(b, i);

		if (driver ? is_of_driver(name) : !strcmp(name, "cudaGetErrorString"))
			reals[i] = (void *)find_export(object, name);
	}
}

uintptr_t calls_bind(const struct link_map *wrappers, const struct link_map *object, const char *name, uintptr_t real)
{
	const struct calls_binding *b = wrappers ? (const struct calls_binding *)find_export(wrappers, "gpuload_calls_binding") : NULL;
	const struct link_map **owners, *none = NULL;
	uintptr_t wrapper;
	void **reals;
	long row;

	if (!b || (row = find_row(b, name)) < 0 || has_other_parameters(object, name))
		return real;
	reals = (void **)find_export(wrappers, "gpuload_calls_real");
	owners = (const struct link_map **)find_export(wrappers, "gpuload_calls_owners");
	owners += !is_of_driver(name);
	if (__atomic_compare_exchange_n(owners, &none, object, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		set_others(b, reals, object, is_of_driver(name));
	else if (none != object)
		return real;
	wrapper = (uintptr_t)b + (uintptr_t)(intptr_t)b->rows[row].wrapper;
	if (real != wrapper)   /* another auditor may have bound it */
		reals[row] = (void *)real;
	return wrapper;
}

void calls_unbind(const struct link_map *wrappers, const struct link_map *object)
{
	const struct link_map **owners = wrappers ? (const struct link_map **)find_export(wrappers, "gpuload_calls_owners") : NULL;

	for (int i = 0; owners && i < 2; i++)
		if (owners[i] == object)
			owners[i] = NULL;
}
