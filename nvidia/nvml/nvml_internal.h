/* nvml_internal.h — declarations shared by the files of libnvidia-ml.so.1.
 *
 * The types are those of nvml.h, which may not be installed; a device is a pointer into the table of devices. */
#ifndef GPULOAD_NVIDIA_NVML_NVML_INTERNAL_H
#define GPULOAD_NVIDIA_NVML_NVML_INTERNAL_H

#include <stdbool.h>

#include "softcuda/api/cu_describe.h"

/* Each call is declared before its definition, because the headers that declare it may be missing. */
#define CALL(name, ...) \
	__attribute__((visibility("default"))) int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

/* clang-format off */
enum {  /* the type nvmlReturn_t of NVML */
	SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9, TIMEOUT = 10, INSUFFICIENT_MEMORY = 20, VERSION_MISMATCH = 25,
};
/* clang-format on */

/* Value of the version field of a versioned structure. */
#define ML_VERSION(object, version) ((unsigned)sizeof(object) | (unsigned)(version) << 24)

struct ml_device {
	gpuload_soft_device is;
	int index;
};
/* the type nvmlMemory_t of NVML */
struct ml_memory {
	unsigned long long total, free, used;
};

typedef struct pci_info { /* the type nvmlPciInfo_t of NVML */
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
} pci_info;

struct field_value { /* the type nvmlFieldValue_t of NVML */
	unsigned field, scope;
	long long time_us, latency_us;
	int type, status;
	unsigned long long value;
};

/* True if the device has NVLinks.  gpul_ml_link_field() fills in a field about NVLinks; false: another field, or no NVLinks. */
bool gpul_ml_has_links(const struct ml_device *d);
bool gpul_ml_link_field(const struct ml_device *d, struct field_value *v);

int gpul_ml_check_started(void);
/* Find the device of a handle; out is the caller's output pointer, which must not be NULL. */
int gpul_ml_find_device(void *handle, const void *out, struct ml_device **device);
struct ml_device *gpul_ml_device(unsigned index); /* Return a device; NULL: the index is too large. */
void gpul_ml_describe(const struct ml_device *d, gpuload_soft_device *now);
int gpul_ml_give_text(const char *text, char *out, unsigned length);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
int nvmlDeviceGetMemoryInfo(void *handle, struct ml_memory *out);

/* Define a call that returns one number. */
#define NUMBER(name, type, expression) \
	CALL(name, void *handle, type *out) \
	{ \
		struct ml_device *d; \
		int r = gpul_ml_find_device(handle, out, &d); \
\
		if (!r) \
			*out = (type)(expression); \
		return r; \
	}

#endif
