/* cu_init.c — cuInit and cuDriverGetVersion. */
#include "softcuda/api/base/cu_state_internal.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/memory_left.h"
#include "core/thread/parallel.h"
#include "core/text.h"
#include "softcuda/exec/guard_internal.h"

/* Called in a child of fork(), which has no worker threads: calls of the driver return CUDA_ERROR_NOT_INITIALIZED there, as on a GPU. */
static void forget_in_child(void)
{
	soft.initialised = false;
	soft.memory = NULL;
	soft.machine = NULL;
	soft_unlock();
}

CUresult soft_choose_cc(unsigned *out)
{
	const char *text = secure_getenv("GPULOAD_SOFT_SM");
	char *end;
	long cc;

	*out = DEFAULT_CC;
	if (!text || !*text)
		return CUDA_SUCCESS;
	cc = strtol(text, &end, 10);
	if (*end || cc < 30 || cc > 999)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuInit: GPULOAD_SOFT_SM=%s: expected a compute capability from 30 to 999, such as sm_90", text);
	*out = (unsigned)cc;
	return CUDA_SUCCESS;
}

CUresult soft_choose_version(int *out)
{
	const char *text = secure_getenv("GPULOAD_SOFT_CUDA");
	char *dot, *end = NULL;
	long major, minor = 0;

	*out = DRIVER_VERSION;
	if (!text || !*text)
		return CUDA_SUCCESS;
	major = strtol(text, &dot, 10);
	if (*dot == '.')
		minor = strtol(dot + 1, &end, 10);
	if (!end || *end || end == dot + 1 || major < 11 || major > 99 || minor < 0 || minor > 9)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuInit: GPULOAD_SOFT_CUDA=%s: expected a CUDA version such as 13.4; the oldest is 11.0", text);
	*out = (int)(major * 1000 + minor * 10);
	return CUDA_SUCCESS;
}

CUresult soft_choose_memory(uint64_t *bytes, bool *in_group)
{
	const char *text = secure_getenv("GPULOAD_SOFT_MEMORY");
	gpul_memory_left left;
	bool limited;

	*bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	limited = gpul_memory_find_left("", &left) && !left.is_machine && left.limit_bytes < *bytes;
	if (limited)
		*bytes = left.limit_bytes;
	if (in_group)
		*in_group = limited;
	if (text && *text && (!gpul_text_bytes(text, bytes) || !*bytes))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuInit: GPULOAD_SOFT_MEMORY=%s: expected a size greater than 0, such as 8G",
				   text);
	return CUDA_SUCCESS;
}

static CUresult start_driver(void)
{
	gpul_error err = { 0 };
	CUresult r = soft_choose_devices();

	if (!r)
		r = soft_choose_version(&soft.cuda);
	if (!r)
		r = soft_choose_cc(&soft.cc);
	if (!r)
		r = soft_choose_memory(&soft.memory_bytes, &soft.in_group);
	if (r)
		return r;
	if (gpul_exec_memory_create(&soft.memory, &err))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = soft_start_tools();
	if (r)
		return r;
	gpul_guard_install();
	soft.n_processors = (int)gpul_cpus();
	soft.heap_bytes = 8 << 20;
	soft.pending_launches = 2048;
	soft.device_attribute = soft_device_attribute;
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
		r = soft_refuse(CUDA_ERROR_NOT_INITIALIZED,
				"cuInit: the driver was initialised before fork() and cannot be used in the child");
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
	return soft_choose_version(version);
}
