/* cu_proc.c — cuGetProcAddress: finds the entry point of a call whose parameters are those of a given CUDA version. */
#include "softcuda/api/base/cu_state_internal.h"
#include "softcuda/api/cu_calls_internal.h"
#include "softcuda/api/cu_refused_table.h"
#include "softcuda/api/cu_refused_calls_internal.h"

#include <string.h>

typedef void (*entry_point)(void);

static const struct row {
	const char *name;
	int since;
	entry_point call, per_thread; /* per_thread NULL: `call` is used for per-thread default streams, too */
} rows[] = {
#define CALL(name, since, symbol)             { #name, since, (entry_point)symbol, NULL },
#define PTDS(name, since, symbol, per_thread) { #name, since, (entry_point)symbol, (entry_point)per_thread },
	SOFT_CALLS(CALL, PTDS)
#undef CALL
#undef PTDS
#define CALL(name, since, symbol, why) { #name, since, (entry_point)soft_refused_##symbol, NULL },
#define PTDS(name, since, symbol, per_thread, why) \
	{ #name, since, (entry_point)soft_refused_##symbol, (entry_point)soft_refused_##per_thread },
		SOFT_REFUSED(CALL, PTDS)
#undef CALL
#undef PTDS
};

enum {
	KNOWN_FLAGS = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
};

/* Find the newest version of the call that is not newer than `version`.  *known: the call exists in at least one version. */
static const struct row *find_call(const char *name, int version, bool *known)
{
	const struct row *best = NULL;

	*known = false;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		*known = true;
		if (rows[i].since <= version && (!best || rows[i].since > best->since))
			best = &rows[i];
	}
	return best;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const struct row *row;
	entry_point call;
	int newest;
	bool known;

	if (soft_choose_version(&newest))
		newest = DRIVER_VERSION;
	if (!name || !out || flags & ~(cuuint64_t)KNOWN_FLAGS || flags == KNOWN_FLAGS || version > newest)
		return CUDA_ERROR_INVALID_VALUE;
	row = find_call(name, version, &known);
	*out = NULL;
	if (status)
		*status = row     ? CU_GET_PROC_ADDRESS_SUCCESS
			  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!row) /* CUDA Driver API: the call succeeds with *out NULL, and *status gives the reason */
		return soft_refuse(CUDA_SUCCESS, "cuGetProcAddress: there is no %s in CUDA %d.%d", name, version / 1000,
				   version % 1000 / 10);
	call = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && row->per_thread ? row->per_thread : row->call;
	memcpy(out, &call, sizeof *out); /* POSIX, but not ISO C, allows a function pointer in a void * */
	return CUDA_SUCCESS;
}

/* Programs that use per-thread default streams call this; a flag in `flags` selects the legacy stream instead. */
EXPORT CUresult cuGetProcAddress_v2_ptsz(const char *name, void **out, int version, cuuint64_t flags,
					 CUdriverProcAddressQueryResult *status)
{
	if (flags == CU_GET_PROC_ADDRESS_DEFAULT)
		flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	return cuGetProcAddress_v2(name, out, version, flags, status);
}

EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(name, out, version, flags, NULL);
}

EXPORT CUresult cuGetProcAddress_ptsz(const char *name, void **out, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2_ptsz(name, out, version, flags, NULL);
}

EXPORT gpuload_soft_refused_table *gpuloadSoftRefusedTable;

/* Refuse NVIDIA's private function tables, which programs request by UUID.  Without this entry point NVRTC crashes when this
 * library is loaded as libcuda.so.1 (13.0: SIGSEGV); if the call fails, NVRTC works without the tables. */
EXPORT CUresult cuGetExportTable(const void **out, const CUuuid *id)
{
	(void)out;
	(void)id;
	if (gpuloadSoftRefusedTable)
		gpuloadSoftRefusedTable(__builtin_return_address(0));
	return CUDA_ERROR_INVALID_VALUE; /* the error of NVIDIA's driver 580 for an unknown UUID */
}
