/* fake_device.c — the attributes of the fake driver's devices: the values that the test sets, and 1 for all other attributes. */
#include "tests/fake/fake_driver.h"

#include <stdint.h>

static int attribute(const fake_behaviour *b, CUdevice_attribute which)
{
	switch (which) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return b->major;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return b->minor;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		return b->max_threads_per_block;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
		return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
		return INT32_MAX;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
		return 65535;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
		return 49152;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		return b->max_shared_bytes;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
		return b->host_numa_id;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
		return !b->no_rdma_memory;
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		return !b->no_dmabuf;
	case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
		return !b->no_read_only_register;
	default:
		return 1;
	}
}

CUresult fake_device_attribute(int *value, CUdevice_attribute which, CUdevice d)
{
	(void)d;
	*value = attribute(fake_behave(), which);
	return fake_step();
}
