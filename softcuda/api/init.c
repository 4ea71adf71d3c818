/* init.c — cuInit and cuDriverGetVersion. */
#include "softcuda/api/base/state_internal.h"

#include <unistd.h>

#include "core/memory_left.h"
#include "core/parallel.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"
#include "softcuda/tools/start/start_internal.h"

EXPORT int gpuloadSoftFinishTools(void);
EXPORT void gpuloadSoftForgetMemory(uint64_t address, size_t bytes);

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
	if (gpul_tools_start(soft.memory, &err)) {
		soft_report_fault(err.text);
		gpul_exec_memory_destroy(soft.memory);
		soft.memory = NULL;
		return err.status == GPUL_EINVAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OPERATING_SYSTEM;
	}
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

/* Let the tools of GPULOAD_SOFT_TOOLS write what they still have to write; to be called when no kernel runs.  Returns the number of
 * errors that they have found.  Without this call it happens at the exit of the process. */
int gpuloadSoftFinishTools(void)
{
	return gpul_tools_finish();
}

/* Let memcheck treat memory of cuMemAlloc as if it was not written, for callers that fill it with a pattern before a kernel writes it.  No
 * kernel may use the memory. */
void gpuloadSoftForgetMemory(uint64_t address, size_t bytes)
{
	gpul_memcheck_forget(address, bytes);
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = DRIVER_VERSION;
	return CUDA_SUCCESS;
}
