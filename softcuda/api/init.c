/* init.c — cuInit and cuDriverGetVersion. */
#include "softcuda/api/base/state_internal.h"

#include <unistd.h>

#include "core/memory_left.h"
#include "core/parallel.h"

/* A child of fork() has no worker threads, so the driver cannot be used there: calls return
 * CUDA_ERROR_NOT_INITIALIZED, as on a GPU. */
static void forget_in_child(void)
{
	soft.initialised = false;
	soft.memory = NULL;
	soft.machine = NULL;
	soft_unlock();
}

static CUresult start_driver(void)
{
	gpul_error err = { 0 };
	gpul_memory_left left;
	CUresult r = soft_choose_devices();

	if (r)
		return r;
	if (gpul_exec_memory_create(&soft.memory, &err))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = soft_start_tools();
	if (r)
		return r;
	soft.n_processors = (int)gpul_cpus();
	soft.memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	soft.in_group = gpul_memory_find_left("", &left) && !left.is_machine && left.limit_bytes < soft.memory_bytes;
	if (soft.in_group)
		soft.memory_bytes = left.limit_bytes;
	soft.heap_bytes = 8 << 20;
	list_init(&soft.libraries);
	list_init(&soft.contexts);
	pthread_atfork(soft_lock, soft_unlock, forget_in_child);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int flags)
{
	static bool forked;
	CUresult r = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	if (!soft.initialised && forked)
		r = soft_refuse(CUDA_ERROR_NOT_INITIALIZED, "cuInit: the driver was initialised before fork() and cannot be used in the child");
	else if (!soft.initialised)
		r = start_driver();
	if (!r)
		soft.initialised = forked = true;
	soft_unlock();
	return r;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = DRIVER_VERSION;
	return CUDA_SUCCESS;
}
