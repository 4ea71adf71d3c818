/* cu.c — writes error messages for failed driver and system calls, with advice for the kind of memory. */
#include "memalloc/mem_internal.h"

#include <errno.h>
#include <string.h>

#define ANY_KIND GPUL_MEM_AUTO

/* Advice for a driver error, by the kind of memory; gpul_cu_advice() has the advice that does not depend on the kind. */
static const struct {
	gpul_mem_kind kind;
	CUresult code;
	const char *advice;
} advices[] = {
	{ GPUL_MEM_HOST_NUMA, CUDA_ERROR_NOT_PERMITTED,
	  "in a container, placing memory on a NUMA node needs docker run --cap-add SYS_NICE" },
	{ GPUL_MEM_HOST_NUMA, CUDA_ERROR_OPERATING_SYSTEM,
	  "in a container, placing memory on a NUMA node needs docker run --cap-add SYS_NICE" },
	{ GPUL_MEM_HOST_NUMA, CUDA_ERROR_NOT_SUPPORTED, "use --kind memfd instead" },
	{ GPUL_MEM_HOST_NUMA, CUDA_ERROR_OUT_OF_MEMORY,
	  "the NUMA node has no free memory (numactl -H shows it): use another node or smaller buffers" },
	{ GPUL_MEM_MEMFD, CUDA_ERROR_OUT_OF_MEMORY, "the machine has no free memory: end other programs, or use smaller buffers" },
	{ GPUL_MEM_SHM, CUDA_ERROR_OUT_OF_MEMORY, "the machine has no free memory: end other programs, or use smaller buffers" },
	{ GPUL_MEM_PINNED, CUDA_ERROR_OUT_OF_MEMORY, "the machine has no free memory: end other programs, or use smaller buffers" },
	{ GPUL_MEM_DEVICE, CUDA_ERROR_NOT_SUPPORTED,
	  "cuMem* calls are not supported on this system (WSL, some vGPUs): use --kind device-ipc" },
	{ GPUL_MEM_DEVICE_IPC, CUDA_ERROR_NOT_SUPPORTED, "cuIpc* calls are not supported on this system" },
	{ ANY_KIND, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "cuMemHostRegister registers a page only once: unregister it first" },
};

static const char *advice_for(const gpul_mem *m, CUresult r)
{
	const gpul_mem_kind kind = m->about.kind;

	if (m->fabric && r == CUDA_ERROR_NOT_PERMITTED)
		return "fabric handles need an IMEX channel (see nvidia-imex); without one, do not use --fabric";
	for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
		if (advices[i].code == r && (advices[i].kind == kind || advices[i].kind == ANY_KIND))
			return advices[i].advice;
	return NULL;
}

gpul_status gpul_mem_cu_status(const gpul_mem *m, gpul_error *err, CUresult r, const char *call)
{
	const char *advice = advice_for(m, r), *usual = gpul_cu_advice(r);
	gpul_error failure = { 0 };
	gpul_status st = gpul_cu_status(m->drv, &failure, r, call);
	size_t n = strlen(failure.text);

	if (!st)
		return GPUL_OK;
	if (st == GPUL_EUNSUPPORTED)
		advice = NULL; /* the message already says that the driver is too old, so no advice is needed */
	if (advice && *usual && n > strlen(usual) && !strcmp(failure.text + n - strlen(usual), usual))
		n -= strlen(": ") + strlen(usual); /* replace the general advice by this advice, which is more specific */
	if (r == CUDA_ERROR_NOT_SUPPORTED)
		st = GPUL_EUNSUPPORTED;
	return gpul_fail(err, st, failure.native, "%s memory: %.*s%s%s", gpul_mem_kind_name(m->about.kind), (int)n, failure.text,
			 advice ? ": " : "", advice ? advice : "");
}

gpul_status gpul_mem_sys_status(const gpul_mem *m, gpul_error *err, int error_number, const char *call, const char *advice)
{
	bool full = error_number == ENOMEM || error_number == ENOSPC;

	return gpul_fail(err, full ? GPUL_ENOMEM : GPUL_ESYS, error_number, "%s memory, %zu bytes: %s: %s%s%s",
			 gpul_mem_kind_name(m->about.kind), m->about.mapped_bytes, call, strerror(error_number), *advice ? ": " : "",
			 advice);
}
