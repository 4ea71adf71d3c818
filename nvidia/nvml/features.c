/* features.c — libnvidia-ml.so.1: capabilities of the devices, their CPUs and processes, and settings.
 *
 * A device of the software driver runs on all CPUs of the process and uses the host's memory; it has no PCIe link. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvidia/nvml/nvml_internal.h"

/* ---- calls that return one number ------------------------------------------------------------ */

NUMBER(nvmlDeviceGetBrand, int, 0 * d->index)       /* NVML_BRAND_UNKNOWN */
NUMBER(nvmlDeviceGetComputeMode, int, 0 * d->index) /* NVML_COMPUTEMODE_DEFAULT */
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, 0 * d->index)
NUMBER(nvmlDeviceGetVirtualizationMode, int, 0 * d->index) /* NVML_GPU_VIRTUALIZATION_MODE_NONE */
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0 * d->index)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0 * d->index)
NUMBER(nvmlDeviceGetDisplayMode, int, 0 * d->index) /* no display: NVML_FEATURE_DISABLED */
NUMBER(nvmlDeviceGetDisplayActive, int, 0 * d->index)
NUMBER(nvmlDeviceGetPersistenceMode, int, 0 * d->index) /* always off: the driver ends with the last process that uses it */
NUMBER(nvmlDeviceGetNumFans, unsigned, 0 * d->index)

/* There is no PCIe link: generation, width and traffic are 0. */
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 0 * d->index)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, 0 * d->index)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 0 * d->index)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 0 * d->index)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 0 * d->index)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, 0 * d->index)

CALL(nvmlDeviceGetPcieThroughput, void *handle, unsigned counter, unsigned *kbytes_per_s)
{
	enum { N_COUNTERS = 2 }; /* number of counters: of sent and of received data */
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, kbytes_per_s, &d);

	if (!r && counter >= N_COUNTERS)
		r = INVALID_ARGUMENT;
	if (!r)
		*kbytes_per_s = 0;
	return r;
}

CALL(nvmlGetExcludedDeviceCount, unsigned *n)
{
	int r = gpul_ml_check_started();

	if (!r && !n)
		r = INVALID_ARGUMENT;
	if (!r)
		*n = 0;
	return r;
}

/* the type nvmlDeviceCapabilities_v1_t of NVML */
struct capabilities {
	unsigned version, mask;
};

CALL(nvmlDeviceGetCapabilities, void *handle, struct capabilities *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);

	if (r)
		return r;
	if (out->version != ML_VERSION(*out, 1))
		return VERSION_MISMATCH;
	out->mask = 0; /* no extended GPU memory */
	return SUCCESS;
}

/* The start of nvmlGridLicensableFeatures_t, the same in all versions; no feature needs a licence. */
struct licences {
	int supported;
	unsigned n;
};

#define NO_FEATURES(name) \
	CALL(name, void *handle, struct licences *out) \
	{ \
		struct ml_device *d; \
		int r = gpul_ml_find_device(handle, out, &d); \
\
		if (!r) \
			*out = (struct licences){ 0 }; \
		return r; \
	}
NO_FEATURES(nvmlDeviceGetGridLicensableFeatures)
NO_FEATURES(nvmlDeviceGetGridLicensableFeatures_v2)
NO_FEATURES(nvmlDeviceGetGridLicensableFeatures_v3)
NO_FEATURES(nvmlDeviceGetGridLicensableFeatures_v4)

/* All other fields are hardware counters (traffic, ECC, power), which do not exist here.  As in NVML, each field has its own status. */
CALL(nvmlDeviceGetFieldValues, void *handle, int n, struct field_value *values)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, n ? (const void *)values : "", &d);

	if (!r && n < 0)
		r = INVALID_ARGUMENT;
	for (int i = 0; !r && i < n; i++)
		if (!gpul_ml_link_field(d, &values[i]))
			values[i].status = NOT_SUPPORTED;
	return r;
}

/* ---- identity of a device -------------------------------------------------------------------- */

enum { UUID_BYTES = 16 };

static void read_uuid(const struct ml_device *d, unsigned char bytes[UUID_BYTES])
{
	const char *text = d->is.uuid + strlen("GPU-");

	for (int i = 0; i < UUID_BYTES; i++, text += 2) {
		char pair[3] = "";

		text += *text == '-';
		memcpy(pair, text, 2);
		bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
}

struct uuid { /* the type nvmlUUID_v1_t of NVML */
	unsigned version, type;
	union {
		char text[41];
		unsigned char bytes[UUID_BYTES];
	} is;
};

CALL(nvmlDeviceGetHandleByUUIDV, const struct uuid *uuid, void **out)
{
	enum { TEXT = 1, BINARY = 2 };
	int r = gpul_ml_check_started();
	const unsigned char *b;
	char text[48];

	if (r || !uuid || !out)
		return r ? r : INVALID_ARGUMENT;
	if (uuid->version != ML_VERSION(*uuid, 1))
		return VERSION_MISMATCH;
	b = uuid->is.bytes;
	if (uuid->type == TEXT)
		snprintf(text, sizeof text, "%.41s", uuid->is.text);
	else if (uuid->type == BINARY)
		snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
			 b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	else
		return INVALID_ARGUMENT;
	return nvmlDeviceGetHandleByUUID(text, out);
}

/* the type nvmlPdi_v1_t of NVML */
struct pdi {
	unsigned version;
	unsigned long long value;
};

/* A number that differs for each device: the first half of the UUID. */
CALL(nvmlDeviceGetPdi, void *handle, struct pdi *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);
	unsigned char bytes[UUID_BYTES];

	if (r)
		return r;
	if (out->version != ML_VERSION(*out, 1))
		return VERSION_MISMATCH;
	read_uuid(d, bytes);
	out->value = 0;
	for (int i = 0; i < 8; i++)
		out->value = out->value << 8 | bytes[i];
	return SUCCESS;
}

struct pci_info_ext { /* the type nvmlPciInfoExt_v1_t of NVML */
	unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
	char bus_id[32];
};

CALL(nvmlDeviceGetPciInfoExt, void *handle, struct pci_info_ext *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);

	if (r)
		return r;
	if (out->version != ML_VERSION(*out, 1))
		return VERSION_MISMATCH;
	*out = (struct pci_info_ext){ .version = out->version, .domain = d->is.pci_domain, .bus = d->is.pci_bus };
	snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:00.0", d->is.pci_domain, d->is.pci_bus);
	return SUCCESS;
}

/* ---- CPUs and memory of the host ------------------------------------------------------------- */

enum { WORD_BITS = 8 * sizeof(unsigned long) };

static void set_bit(unsigned long *words, unsigned n_words, unsigned bit)
{
	if (bit / WORD_BITS < n_words)
		words[bit / WORD_BITS] |= 1UL << bit % WORD_BITS;
}

/* Scope 0 is the NUMA node, 1 the socket.  In both scopes, the result is the CPUs of the process, on which a device runs. */
CALL(nvmlDeviceGetCpuAffinityWithinScope, void *handle, unsigned n_words, unsigned long *words, unsigned scope)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, words, &d);
	cpu_set_t cpus;

	if (r || !n_words || scope > 1)
		return r ? r : INVALID_ARGUMENT;
	memset(words, 0, n_words * sizeof *words);
	if (sched_getaffinity(0, sizeof cpus, &cpus))
		return NOT_SUPPORTED; /* more CPUs than fit into a cpu_set_t */
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			set_bit(words, n_words, cpu);
	return SUCCESS;
}

CALL(nvmlDeviceGetCpuAffinity, void *handle, unsigned n_words, unsigned long *words)
{
	return nvmlDeviceGetCpuAffinityWithinScope(handle, n_words, words, 0);
}

/* Get the NUMA nodes that have memory, as the kernel lists them: "0-1,4"; one node if it lists none. */
CALL(nvmlDeviceGetMemoryAffinity, void *handle, unsigned n_words, unsigned long *words, unsigned scope)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, words, &d), n;
	unsigned first, last;
	char separator;
	FILE *f;

	if (r || !n_words || scope > 1)
		return r ? r : INVALID_ARGUMENT;
	memset(words, 0, n_words * sizeof *words);
	f = fopen("/sys/devices/system/node/has_memory", "r");
	while (f && fscanf(f, "%u", &first) == 1) {
		n = fscanf(f, "-%u", &last);
		for (unsigned node = first; node <= (n == 1 ? last : first) && node < n_words * WORD_BITS; node++)
			set_bit(words, n_words, node);
		if (fscanf(f, "%c", &separator) != 1 || separator != ',')
			break;
	}
	if (!f)
		set_bit(words, n_words, 0);
	else
		fclose(f);
	return SUCCESS;
}

/* ---- pairs of devices ------------------------------------------------------------------------ */

static int find_pair(void *handle1, void *handle2, const void *out, struct ml_device *pair[2])
{
	int r = gpul_ml_find_device(handle1, out, &pair[0]);

	return r ? r : gpul_ml_find_device(handle2, out, &pair[1]);
}

/* All devices are in the address space of the process, so they can read, write and do atomics on each other's memory. */
CALL(nvmlDeviceGetP2PStatus, void *handle1, void *handle2, unsigned capability, int *out)
{
	enum { OK = 0, LINK_NOT_SUPPORTED = 5, UNKNOWN = 6, NVLINK = 2, N_CAPABILITIES = 5 };
	struct ml_device *pair[2];
	int r = find_pair(handle1, handle2, out, pair);

	if (!r && capability > N_CAPABILITIES)
		r = INVALID_ARGUMENT;
	if (!r)
		*out = capability == N_CAPABILITIES                          ? UNKNOWN
		       : capability == NVLINK && !gpul_ml_has_links(pair[0]) ? LINK_NOT_SUPPORTED
									     : OK;
	return r;
}

CALL(nvmlDeviceOnSameBoard, void *handle1, void *handle2, int *out)
{
	struct ml_device *pair[2];
	int r = find_pair(handle1, handle2, out, pair);

	if (!r)
		*out = pair[0] == pair[1];
	return r;
}

/* values of nvmlGpuTopologyLevel_t: INTERNAL for a device and itself, NODE for two devices */
enum { INTERNAL = 0, NODE = 40 };

CALL(nvmlDeviceGetTopologyCommonAncestor, void *handle1, void *handle2, int *out)
{
	struct ml_device *pair[2];
	int r = find_pair(handle1, handle2, out, pair);

	if (!r)
		*out = pair[0] == pair[1] ? INTERNAL : NODE;
	return r;
}

/* Write all devices except `without` to the caller's list.  *n: the list's capacity; if it is 0, only the number is stored. */
static int list_devices(const struct ml_device *without, unsigned *n, void **out)
{
	const unsigned capacity = *n;
	struct ml_device *d;

	*n = 0;
	for (unsigned k = 0; (d = gpul_ml_device(k)); k++) {
		if (d == without)
			continue;
		if (capacity && *n < capacity)
			out[*n] = d;
		++*n;
	}
	return !capacity || *n <= capacity ? SUCCESS : INSUFFICIENT_SIZE;
}

CALL(nvmlDeviceGetTopologyNearestGpus, void *handle, unsigned level, unsigned *n, void **out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, n, &d);

	if (r || (*n && !out))
		return r ? r : INVALID_ARGUMENT;
	if (level == NODE)
		return list_devices(d, n, out);
	*n = 0;
	return SUCCESS;
}

/* Every device runs on every CPU of the process. */
CALL(nvmlSystemGetTopologyGpuSet, unsigned cpu, unsigned *n, void **out)
{
	int r = gpul_ml_check_started();
	cpu_set_t cpus;

	if (r || !n || (*n && !out))
		return r ? r : INVALID_ARGUMENT;
	if (cpu < CPU_SETSIZE && !sched_getaffinity(0, sizeof cpus, &cpus) && CPU_ISSET(cpu, &cpus))
		return list_devices(NULL, n, out);
	*n = 0;
	return SUCCESS;
}

/* ---- processes ------------------------------------------------------------------------------- */

struct process_v1 {
	unsigned pid;
	unsigned long long used;
};
/* the type nvmlProcessInfo_t of NVML */
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

/* List this process if it has memory on the device; the memory of other processes is unknown. */
static int list_processes(void *handle, unsigned *n, void *infos, size_t info_bytes)
{
	struct process own = { .pid = (unsigned)getpid(), .gpu_instance = ~0u, .compute_instance = ~0u };
	struct ml_memory memory;
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, n, &d);
	unsigned capacity;

	if (!r)
		r = nvmlDeviceGetMemoryInfo(handle, &memory);
	if (r)
		return r;
	own.used = memory.used;
	capacity = *n;
	*n = own.used > 0;
	if (*n > capacity)
		return INSUFFICIENT_SIZE;
	if (*n && !infos)
		return INVALID_ARGUMENT;
	if (*n)
		memcpy(infos, &own, info_bytes);
	return SUCCESS;
}

#define PROCESSES(name, type) \
	CALL(name, void *handle, unsigned *n, void *infos) \
	{ \
		return list_processes(handle, n, infos, sizeof(type)); \
	}
PROCESSES(nvmlDeviceGetComputeRunningProcesses, struct process_v1)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, struct process)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, struct process)

/* There are no graphics processes and no MPS clients. */
#define NO_PROCESSES(name) \
	CALL(name, void *handle, unsigned *n, void *infos) \
	{ \
		struct ml_device *d; \
		int r = gpul_ml_find_device(handle, n, &d); \
\
		(void)infos; \
		if (!r) \
			*n = 0; \
		return r; \
	}
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* ---- settings -------------------------------------------------------------------------------- */

/* Calls for settings that a GPU of this architecture has, but that only an administrator may change. */
#define FORBIDDEN(name, type) \
	CALL(name, void *handle, type value) \
	{ \
		struct ml_device *d; \
		int r = gpul_ml_find_device(handle, "", &d); \
\
		(void)value; \
		return r ? r : NO_PERMISSION; \
	}
FORBIDDEN(nvmlDeviceSetComputeMode, int)
FORBIDDEN(nvmlDeviceSetPersistenceMode, int)
FORBIDDEN(nvmlDeviceSetPowerManagementLimit, unsigned)
FORBIDDEN(nvmlDeviceSetPowerManagementLimit_v2, const void *)
