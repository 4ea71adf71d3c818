/* nvml.c — libnvidia-ml.so.1: describes the devices of the software driver beside it.
 *
 * The types are those of nvml.h, which need not be installed; a device is a pointer into the table of devices. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>

#include "core/own_folder.h"
#include "softcuda/api/describe.h"
#include "softcuda/toolchain/nvml/refused_internal.h"

/* Each call is declared, because the headers that do may be missing. */
#define CALL(name, ...)                                                \
	__attribute__((visibility("default"))) int name(__VA_ARGS__);  \
	int name(__VA_ARGS__)

enum {  /* nvmlReturn_t */
	SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9,
	VERSION_MISMATCH = 25,
};
enum { MAX_DEVICES = 16 };

struct device { gpuload_soft_device is; int index; };

typedef struct pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
} pci_info;
struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct utilization { unsigned gpu, memory; };

static struct {
	pthread_mutex_t lock;
	int n_users, n_devices;   /* n_users: nvmlInit without nvmlShutdown */
	int (*describe)(int index, gpuload_soft_device *out);
	struct device device[MAX_DEVICES];
	double last_wall_s, last_cpu_s;   /* at the last query of the utilisation */
} nvml = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- start ----------------------------------------------------------------------------------- */

static int open_driver(void)
{
	char path[4096 + 32];
	void *handle, *p;

	if (!gpul_own_folder(path, sizeof path - 32))
		return DRIVER_NOT_LOADED;
	strcat(path, "/libcuda.so.1");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	p = handle ? dlsym(handle, "gpuloadSoftDescribeDevice") : NULL;
	if (!p)
		return DRIVER_NOT_LOADED;
	memcpy(&nvml.describe, &p, sizeof p);
	return SUCCESS;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double wall_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

CALL(nvmlInitWithFlags, unsigned flags)
{
	int r = SUCCESS;

	(void)flags;
	pthread_mutex_lock(&nvml.lock);
	if (!nvml.describe)
		r = open_driver();
	for (int i = 0; !r && i < MAX_DEVICES; i++) {
		nvml.device[i].index = i;
		nvml.n_devices = nvml.describe(i, &nvml.device[i].is);
	}
	if (!r && nvml.n_users++ == 0) {
		nvml.last_wall_s = wall_seconds();
		nvml.last_cpu_s = cpu_seconds();
	}
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

CALL(nvmlInit, void)
{
	return nvmlInitWithFlags(0);
}

CALL(nvmlInit_v2, void)
{
	return nvmlInitWithFlags(0);
}

CALL(nvmlShutdown, void)
{
	int r;

	pthread_mutex_lock(&nvml.lock);
	r = nvml.n_users > 0 ? SUCCESS : UNINITIALIZED;
	nvml.n_users -= !r;
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

static int check_initialised(void)
{
	int r;

	pthread_mutex_lock(&nvml.lock);
	r = nvml.n_users > 0 ? SUCCESS : UNINITIALIZED;
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

/* Check a handle, describe its device anew, and check an output pointer. */
static int find_device(void *handle, const void *out, struct device **device)
{
	int r = check_initialised();

	if (r)
		return r;
	for (int i = 0; i < nvml.n_devices && out; i++) {
		if (handle != &nvml.device[i])
			continue;
		*device = &nvml.device[i];
		return SUCCESS;
	}
	return INVALID_ARGUMENT;
}

/* ---- the system ------------------------------------------------------------------------------ */

static int give_text(const char *text, char *out, unsigned length)
{
	if (!out)
		return INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return INSUFFICIENT_SIZE;
	strcpy(out, text);
	return SUCCESS;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
	static const char *const texts[] = {
		[SUCCESS] = "Success", [UNINITIALIZED] = "Uninitialized", [INVALID_ARGUMENT] = "Invalid Argument", [NOT_SUPPORTED] = "Not Supported",
		[NOT_FOUND] = "Not Found", [INSUFFICIENT_SIZE] = "Insufficient Size", [DRIVER_NOT_LOADED] = "Driver Not Loaded",
		[VERSION_MISMATCH] = "Argument Version Mismatch",
	};

	return result >= 0 && (size_t)result < sizeof texts / sizeof *texts && texts[result] ? texts[result] : "Unknown Error";
}

/* Driver and library version: CUDA 13.0 came with driver 580. */
CALL(nvmlSystemGetDriverVersion, char *version, unsigned length)
{
	int r = check_initialised();

	return r ? r : give_text("580.00", version, length);
}

CALL(nvmlSystemGetNVMLVersion, char *version, unsigned length)
{
	int r = check_initialised();

	return r ? r : give_text("13.580.00", version, length);
}

CALL(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
	gpuload_soft_device d = { 0 };

	if (!version)
		return INVALID_ARGUMENT;
	pthread_mutex_lock(&nvml.lock);
	if (nvml.describe || !open_driver())
		nvml.describe(0, &d);
	pthread_mutex_unlock(&nvml.lock);
	*version = d.driver_version;
	return d.driver_version ? SUCCESS : DRIVER_NOT_LOADED;
}

CALL(nvmlSystemGetCudaDriverVersion, int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

CALL(nvmlSystemGetProcessName, unsigned pid, char *name, unsigned length)
{
	char path[64], text[4096] = "";
	int r = check_initialised();
	FILE *f;

	if (r || !name || !length)
		return r ? r : INVALID_ARGUMENT;
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	f = fopen(path, "r");
	if (!f)
		return NOT_FOUND;
	if (!fread(text, 1, sizeof text - 1, f))
		*text = '\0';
	fclose(f);
	snprintf(name, length, "%s", text);
	return SUCCESS;
}

/* ---- which devices --------------------------------------------------------------------------- */

CALL(nvmlDeviceGetCount_v2, unsigned *n)
{
	int r = check_initialised();

	if (!r && !n)
		r = INVALID_ARGUMENT;
	if (!r)
		*n = (unsigned)nvml.n_devices;
	return r;
}

CALL(nvmlDeviceGetCount, unsigned *n)
{
	return nvmlDeviceGetCount_v2(n);
}

CALL(nvmlUnitGetCount, unsigned *n)
{
	int r = check_initialised();

	if (!r && !n)
		r = INVALID_ARGUMENT;
	if (!r)
		*n = 0;
	return r;
}

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, void **out)
{
	int r = check_initialised();

	if (!r && (!out || index >= (unsigned)nvml.n_devices))
		r = INVALID_ARGUMENT;
	if (!r)
		*out = &nvml.device[index];
	return r;
}

CALL(nvmlDeviceGetHandleByIndex, unsigned index, void **out)
{
	return nvmlDeviceGetHandleByIndex_v2(index, out);
}

CALL(nvmlDeviceGetHandleByUUID, const char *uuid, void **out)
{
	int r = check_initialised();

	if (r || !uuid || !out)
		return r ? r : INVALID_ARGUMENT;
	for (int i = 0; i < nvml.n_devices; i++) {
		if (strcasecmp(nvml.device[i].is.uuid, uuid))
			continue;
		*out = &nvml.device[i];
		return SUCCESS;
	}
	return NOT_FOUND;
}

CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *id, void **out)
{
	unsigned domain, bus, slot;
	int r = check_initialised();

	if (r || !id || !out)
		return r ? r : INVALID_ARGUMENT;
	if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return INVALID_ARGUMENT;
	for (int i = 0; i < nvml.n_devices && !slot; i++) {
		if (nvml.device[i].is.pci_domain != domain || nvml.device[i].is.pci_bus != bus)
			continue;
		*out = &nvml.device[i];
		return SUCCESS;
	}
	return NOT_FOUND;
}

CALL(nvmlDeviceGetHandleByPciBusId, const char *id, void **out)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, out);
}

/* ---- one device ------------------------------------------------------------------------------ */

CALL(nvmlDeviceGetName, void *handle, char *name, unsigned length)
{
	struct device *d;
	int r = find_device(handle, name, &d);

	return r ? r : give_text(d->is.name, name, length);
}

CALL(nvmlDeviceGetUUID, void *handle, char *uuid, unsigned length)
{
	struct device *d;
	int r = find_device(handle, uuid, &d);

	return r ? r : give_text(d->is.uuid, uuid, length);
}

/* Calls that give one number. */
#define NUMBER(name, type, expression)             \
	CALL(name, void *handle, type *out)        \
	{                                          \
		struct device *d;                  \
		int r = find_device(handle, out, &d); \
                                                   \
		if (!r)                            \
			*out = (type)(expression); \
		return r;                          \
	}
NUMBER(nvmlDeviceGetIndex, unsigned, d->index)
NUMBER(nvmlDeviceGetMinorNumber, unsigned, d->index)
NUMBER(nvmlDeviceGetBrand, int, d->index * 0)           /* NVML_BRAND_UNKNOWN */
NUMBER(nvmlDeviceGetComputeMode, int, d->index * 0)     /* NVML_COMPUTEMODE_DEFAULT */
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, d->index * 0)
NUMBER(nvmlDeviceGetNumGpuCores, unsigned, d->is.n_processors)
NUMBER(nvmlDeviceGetArchitecture, unsigned, d->is.cc >= 100 ? 10 : d->is.cc >= 90 ? 9 : d->is.cc == 89 ? 8 : d->is.cc >= 80 ? 7
					 : d->is.cc >= 75 ? 6 : d->is.cc >= 70 ? 5 : d->is.cc >= 60 ? 4 : 3)

CALL(nvmlDeviceGetCudaComputeCapability, void *handle, int *major, int *minor)
{
	struct device *d;
	int r = find_device(handle, minor ? major : NULL, &d);

	if (!r) {
		*major = (int)d->is.cc / 10;
		*minor = (int)d->is.cc % 10;
	}
	return r;
}

CALL(nvmlDeviceGetPciInfo_v3, void *handle, pci_info *out)
{
	struct device *d;
	int r = find_device(handle, out, &d);

	if (r)
		return r;
	*out = (pci_info){ .domain = d->is.pci_domain, .bus = d->is.pci_bus };
	snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:00.0", d->is.pci_domain & 0xffff, d->is.pci_bus & 0xff);
	snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:00.0", d->is.pci_domain, d->is.pci_bus);
	return SUCCESS;
}

CALL(nvmlDeviceGetPciInfo_v2, void *handle, pci_info *out)
{
	return nvmlDeviceGetPciInfo_v3(handle, out);
}

CALL(nvmlDeviceGetPciInfo, void *handle, pci_info *out)
{
	return nvmlDeviceGetPciInfo_v3(handle, out);
}

CALL(nvmlDeviceGetMemoryInfo, void *handle, struct memory *out)
{
	struct device *d;
	int r = find_device(handle, out, &d);
	gpuload_soft_device now;

	if (r)
		return r;
	nvml.describe(d->index, &now);
	*out = (struct memory){ now.memory_bytes, now.memory_bytes - now.used_bytes, now.used_bytes };
	return SUCCESS;
}

CALL(nvmlDeviceGetMemoryInfo_v2, void *handle, struct memory_v2 *out)
{
	struct memory m;
	int r = nvmlDeviceGetMemoryInfo(handle, out ? &m : NULL);

	if (r)
		return r;
	if (out->version != (sizeof *out | 2u << 24))
		return VERSION_MISMATCH;
	*out = (struct memory_v2){ out->version, m.total, 0, m.free, m.used };
	return SUCCESS;
}

CALL(nvmlDeviceGetUtilizationRates, void *handle, struct utilization *out)
{
	struct device *d;
	int r = find_device(handle, out, &d);
	double wall, cpu, share;
	struct memory m;

	if (!r)
		r = nvmlDeviceGetMemoryInfo(handle, &m);
	if (r)
		return r;
	pthread_mutex_lock(&nvml.lock);
	wall = wall_seconds() - nvml.last_wall_s;
	cpu = cpu_seconds() - nvml.last_cpu_s;
	nvml.last_wall_s += wall;
	nvml.last_cpu_s += cpu;
	pthread_mutex_unlock(&nvml.lock);
	share = wall > 0 ? 100 * cpu / (wall * d->is.n_processors) : 0;
	out->gpu = share > 100 ? 100 : (unsigned)share;
	out->memory = m.total ? (unsigned)(100 * (double)m.used / (double)m.total) : 0;
	return SUCCESS;
}

/* No process is listed: what other processes do on their CPUs is not known. */
#define NO_PROCESSES(name)                                          \
	CALL(name, void *handle, unsigned *n, void *infos)          \
	{                                                           \
		struct device *d;                                   \
		int r = find_device(handle, n, &d);                 \
                                                                    \
		(void)infos;                                        \
		if (!r)                                             \
			*n = 0;                                     \
		return r;                                           \
	}
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)

/* ---- everything else ------------------------------------------------------------------------- */

/* The same function under each name; it reads no argument. */
CALL(gpuload_nvml_refused, void)
{
	int r = check_initialised();

	return r ? r : NOT_SUPPORTED;
}

#define REFUSED(name) __attribute__((visibility("default"))) int name(void) __attribute__((alias("gpuload_nvml_refused")));
NVML_REFUSED(REFUSED)
