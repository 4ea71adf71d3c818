/* driver_table.c — fills a gpul_driver from an opened shared object. */
#include "driver/driver_internal.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef void (*any_function)(void);

/* Calls that older drivers export under another name, with the same parameters. */
static const struct {
	const char *name, *older;
} renamed[] = {
	{ "cuEventElapsedTime_v2", "cuEventElapsedTime" }, /* CUDA 12.8 added v2 */
};

/* In <cuda.h> cuMemAlloc is a macro for cuMemAlloc_v2.  EXPANDED() expands the macro before TEXT() makes a string of it, so the
 * string names the version for which the field of the table has the right type. */
#define TEXT(x)     #x
#define EXPANDED(x) TEXT(x)
static const struct entry {
	const char *name;  /* name of the exported function: "cuMemAlloc_v2" */
	const char *plain; /* name in the manual: "cuMemAlloc" */
	size_t offset;     /* offset in gpul_driver of the field for this function */
} entries[] = {
#define X(fn) { EXPANDED(fn), #fn, offsetof(gpul_driver, fn) },
	GPUL_DRIVER_CALLS(X)
#undef X
};
enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

/* The table contains this function for each entry point that the driver lacks.  It is called with arguments that it does not
 * declare, which is safe, because in the calling conventions of x86-64 and arm64 the caller removes them. */
static CUresult CUDAAPI missing_entry(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void *find_symbol(void *handle, const char *name)
{
	void *p = dlsym(handle, name);

	for (size_t i = 0; !p && i < sizeof renamed / sizeof renamed[0]; i++)
		if (strcmp(renamed[i].name, name) == 0)
			p = dlsym(handle, renamed[i].older);
	return p;
}

/* Look up the exported name first, which identifies the version that <cuda.h> declares.  cuGetProcAddress selects by
 * the CUDA version instead, which is only safe if the driver is at least as new as our header, because an older driver
 * may return an older version with other parameters. */
static void *find_entry(void *handle, const gpul_driver *drv, const struct entry *e)
{
	CUresult(CUDAAPI * ask)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	void *p = find_symbol(handle, e->name), *query_pointer;

	if (p || drv->version < CUDA_VERSION)
		return p;
	query_pointer = dlsym(handle, "cuGetProcAddress_v2");
	if (!query_pointer)
		return NULL;
	memcpy(&ask, &query_pointer, sizeof ask);
	if (ask(e->plain, &p, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, NULL) != CUDA_SUCCESS)
		return NULL;
	return p;
}

gpul_status gpul_driver_fill(void *handle, const char *path, gpul_driver *out, gpul_error *err)
{
	any_function missing = (any_function)missing_entry;
	CUresult(CUDAAPI * version)(int *);
	void *p = dlsym(handle, "cuDriverGetVersion"), *q;

	if (!p || !dlsym(handle, "cuInit") || !dlsym(handle, "cuDeviceGetCount"))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s is not a CUDA driver: the library has no function cuInit", path);
	*out = (gpul_driver){ .path = path };
	memcpy(&version, &p, sizeof version);
	(void)version(&out->version); /* works before cuInit; out->version stays 0 on failure */
	for (int i = 0; i < N_ENTRIES; i++) {
		p = find_entry(handle, out, &entries[i]);
		memcpy((char *)out + entries[i].offset, p ? (void *)&p : (void *)&missing, sizeof p);
	}
	p = dlsym(handle, "gpuloadSoftLastFault"); /* only the software driver exports this symbol */
	memcpy(&out->last_fault, &p, sizeof p);
	out->name = p ? "soft" : "nvidia";
	out->interprets = out->fds_are_files = p != NULL;
	out->runs_machine_code = p == NULL;
	p = dlsym(handle, "gpuloadSoftNameImages");
	memcpy(&out->name_images, &p, sizeof p);
	p = dlsym(handle, "gpuloadSoftLastFaultLine");
	memcpy(&out->last_fault_line, &p, sizeof p);
	p = dlsym(handle, "gpuloadSoftPrintFaults");
	memcpy(&out->print_faults, &p, sizeof p);
	q = dlsym(handle, "gpuloadSoftForgetMemory");
	memcpy(&out->forget_memory, &q, sizeof q);
	q = dlsym(handle, "gpuloadSoftCheckTools");
	memcpy(&out->check_tools, &q, sizeof q);
	q = dlsym(handle, "gpuloadSoftFinishTools");
	memcpy(&out->finish_tools, &q, sizeof q);
	if (p) /* gpul_cu_status() reports faults, so the driver need not print them */
		out->print_faults(0);
	return GPUL_OK;
}

bool gpul_driver_has(const gpul_driver *drv, const char *name)
{
	const any_function missing = (any_function)missing_entry;

	for (int i = 0; i < N_ENTRIES; i++)
		if (strcmp(entries[i].name, name) == 0 || strcmp(entries[i].plain, name) == 0)
			return memcmp((const char *)drv + entries[i].offset, &missing, sizeof missing) != 0;
	return false;
}
