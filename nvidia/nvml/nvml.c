/* nvml.c — libnvidia-ml.so.1: describes the devices of the software driver in the same folder.
 *
 * This file has initialisation, device look-up and device identity; features.c has the rest. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>

#include "core/own_folder.h"
#include "nvidia/nvml/nvml_internal.h"
#include "nvidia/nvml/refused_internal.h"

enum { MAX_DEVICES = 16 };

struct driver_branch {
	unsigned version;
	char branch[80];
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct utilization {
	unsigned gpu, memory;
};

static struct {
	pthread_mutex_t lock;
	int n_users, n_devices; /* n_users: number of nvmlInit calls minus number of nvmlShutdown calls */
	int (*describe)(int index, gpuload_soft_device *out);
	struct ml_device device[MAX_DEVICES];
	double last_wall_s, last_cpu_s; /* time and CPU time at the last query of the utilisation */
} nvml = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- nvmlInit and nvmlShutdown --------------------------------------------------------------- */

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

int gpul_ml_check_started(void)
{
	int r;

	pthread_mutex_lock(&nvml.lock);
	r = nvml.n_users > 0 ? SUCCESS : UNINITIALIZED;
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

int gpul_ml_find_device(void *handle, const void *out, struct ml_device **device)
{
	int r = gpul_ml_check_started();

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

struct ml_device *gpul_ml_device(unsigned index)
{
	return index < (unsigned)nvml.n_devices ? &nvml.device[index] : NULL;
}

void gpul_ml_describe(const struct ml_device *d, gpuload_soft_device *now)
{
	nvml.describe(d->index, now);
}

/* ---- the system ------------------------------------------------------------------------------ */

int gpul_ml_give_text(const char *text, char *out, unsigned length)
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
	/* Error texts, as the library of NVIDIA's driver for CUDA 13.0 gives them. */
	/* clang-format off */
	static const char *const texts[] = {
		"Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions", "Already Initialized", "Not Found",
		"Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
		"Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset", "GPU access blocked by the operating system",
		"Driver/library version mismatch", "In use by another client", "Insufficient Memory", "No data", "vGPU ECC not supported",
		"Insufficient Resources", "Invalid Frequency", "Argument version mismatch", "Requested functionality has been deprecated",
		"System is not in ready state", "No supported GPUs were found", "Resource not in correct state to perform requested operation",
		"Reset type is not supported for given device",
	};
	/* clang-format on */

	return result >= 0 && (size_t)result < sizeof texts / sizeof *texts ? texts[result] : "Unknown Error";
}

/* Version of driver and library: CUDA 13.0 came with driver 580. */
CALL(nvmlSystemGetDriverVersion, char *version, unsigned length)
{
	int r = gpul_ml_check_started();

	return r ? r : gpul_ml_give_text("580.00", version, length);
}

CALL(nvmlSystemGetNVMLVersion, char *version, unsigned length)
{
	int r = gpul_ml_check_started();

	return r ? r : gpul_ml_give_text("13.580.00", version, length);
}

CALL(nvmlSystemGetDriverBranch, struct driver_branch *out, unsigned length)
{
	int r = gpul_ml_check_started();

	if (r || !out)
		return r ? r : INVALID_ARGUMENT;
	if (out->version != ML_VERSION(*out, 1))
		return VERSION_MISMATCH;
	return gpul_ml_give_text("r580_00", out->branch, length < sizeof out->branch ? length : sizeof out->branch);
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
	int r = gpul_ml_check_started();
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

/* ---- finding devices ------------------------------------------------------------------------- */

CALL(nvmlDeviceGetCount_v2, unsigned *n)
{
	int r = gpul_ml_check_started();

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
	int r = gpul_ml_check_started();

	if (!r && !n)
		r = INVALID_ARGUMENT;
	if (!r)
		*n = 0;
	return r;
}

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, void **out)
{
	int r = gpul_ml_check_started();

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
	int r = gpul_ml_check_started();

	if (r || !uuid || !out)
		return r ? r : INVALID_ARGUMENT;
	for (int i = 0; i < nvml.n_devices; i++) {
		const char *is = nvml.device[i].is.uuid;

		if (strcasecmp(is, uuid) && strcasecmp(is + strlen("GPU-"), uuid)) /* the Python package cuda-core omits "GPU-" */
			continue;
		*out = &nvml.device[i];
		return SUCCESS;
	}
	return NOT_FOUND;
}

CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *id, void **out)
{
	unsigned domain, bus, slot;
	int r = gpul_ml_check_started();

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
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, name, &d);

	return r ? r : gpul_ml_give_text(d->is.name, name, length);
}

CALL(nvmlDeviceGetUUID, void *handle, char *uuid, unsigned length)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, uuid, &d);

	return r ? r : gpul_ml_give_text(d->is.uuid, uuid, length);
}

NUMBER(nvmlDeviceGetIndex, unsigned, d->index)
NUMBER(nvmlDeviceGetMinorNumber, unsigned, d->index)
NUMBER(nvmlDeviceGetModuleId, unsigned, d->index) /* unique number of the device's module, below the number of GPUs */
NUMBER(nvmlDeviceGetNumGpuCores, unsigned, d->is.n_processors)
NUMBER(nvmlDeviceGetArchitecture, unsigned,
       d->is.cc >= 100  ? 10
       : d->is.cc >= 90 ? 9
       : d->is.cc == 89 ? 8
       : d->is.cc >= 80 ? 7
       : d->is.cc >= 75 ? 6
       : d->is.cc >= 70 ? 5
       : d->is.cc >= 60 ? 4
			: 3)

CALL(nvmlDeviceGetCudaComputeCapability, void *handle, int *major, int *minor)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, minor ? major : NULL, &d);

	if (!r) {
		*major = (int)d->is.cc / 10;
		*minor = (int)d->is.cc % 10;
	}
	return r;
}

/* Write the first n_bytes of the structure: older versions of the call have a shorter structure. */
static int give_pci_info(void *handle, void *out, size_t n_bytes)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);
	pci_info info;

	if (r)
		return r;
	info = (pci_info){ .domain = d->is.pci_domain, .bus = d->is.pci_bus };
	snprintf(info.bus_id_legacy, sizeof info.bus_id_legacy, "%04X:%02X:00.0", d->is.pci_domain & 0xffff, d->is.pci_bus & 0xff);
	snprintf(info.bus_id, sizeof info.bus_id, "%08X:%02X:00.0", d->is.pci_domain, d->is.pci_bus);
	memcpy(out, &info, n_bytes);
	return SUCCESS;
}

/* NVIDIA's library (observed with an H200) writes the long bus id only up to its NUL: 53 bytes in total. */
CALL(nvmlDeviceGetPciInfo_v3, void *handle, void *out)
{
	return give_pci_info(handle, out, offsetof(pci_info, bus_id) + sizeof "00000000:00:00.0");
}

/* In the second version of the structure, four reserved numbers follow instead of the long bus id; NVIDIA's library (observed
 * with an H200) leaves them unchanged, and writes the first version's fields after 32 bytes. */
CALL(nvmlDeviceGetPciInfo_v2, void *handle, void *out)
{
	return give_pci_info(handle, out, offsetof(pci_info, bus_id));
}

CALL(nvmlDeviceGetPciInfo, void *handle, void *out)
{
	return give_pci_info(handle, out, offsetof(pci_info, subsystem_id));
}

CALL(nvmlDeviceGetMemoryInfo, void *handle, struct ml_memory *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);
	gpuload_soft_device now;

	if (r)
		return r;
	nvml.describe(d->index, &now);
	*out = (struct ml_memory){ now.memory_bytes, now.memory_bytes - now.used_bytes, now.used_bytes };
	return SUCCESS;
}

CALL(nvmlDeviceGetMemoryInfo_v2, void *handle, struct memory_v2 *out)
{
	struct ml_memory m;
	int r = nvmlDeviceGetMemoryInfo(handle, out ? &m : NULL);

	if (r)
		return r;
	if (out->version != ML_VERSION(*out, 2))
		return VERSION_MISMATCH;
	*out = (struct memory_v2){ out->version, m.total, 0, m.free, m.used };
	return SUCCESS;
}

CALL(nvmlDeviceGetUtilizationRates, void *handle, struct utilization *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);
	double wall, cpu, share;
	struct ml_memory m;

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

/* ---- refused calls --------------------------------------------------------------------------- */

/* All refused calls are aliases of this function, which reads no arguments. */
CALL(gpuload_nvml_refused, void)
{
	int r = gpul_ml_check_started();

	return r ? r : NOT_SUPPORTED;
}

#define REFUSED(name) __attribute__((visibility("default"))) int name(void) __attribute__((alias("gpuload_nvml_refused")));
NVML_REFUSED(REFUSED)
