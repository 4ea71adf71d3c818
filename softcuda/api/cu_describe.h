/* cu_describe.h — describes the driver's devices for libnvidia-ml.so.1 in the same folder, which must work without cuInit(). */
#ifndef GPULOAD_SOFTCUDA_API_CU_DESCRIBE_H
#define GPULOAD_SOFTCUDA_API_CU_DESCRIBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpuload_soft_device {
	char name[96], uuid[48]; /* uuid as "GPU-..." */
	unsigned pci_domain, pci_bus;
	unsigned cc; /* compute capability: 90 for 9.0 */
	unsigned n_processors;
	int driver_version; /* 13000 for CUDA 13.0 */
	uint64_t memory_bytes;
	uint64_t used_bytes; /* the part of memory_bytes that this process has allocated */
	unsigned n_faults;   /* number of contexts of this process that a fault made unusable */
	int last_fault;      /* the CUresult of the most recent fault */
} gpuload_soft_device;

/** Describe a device of the machine; works before cuInit(), and ignores CUDA_VISIBLE_DEVICES.
 *
 * @index  from 0; as in GPULOAD_SOFT_DEVICES
 * @out    filled in if the device exists; may be NULL
 * Returns the number of devices of the machine; *out is untouched unless index is less than this number
 * Source  NVML API Reference Guide, Device Queries */
int gpuloadSoftDescribeDevice(int index, gpuload_soft_device *out);

#ifdef __cplusplus
}
#endif

#endif
