/* limits.c — reads the launch limits of a device, once per module. */
#include "loader/loader_internal.h"

gpul_status gpul_limits_read(const gpul_driver *drv, CUdevice device, gpul_limits *out,
			     gpul_error *err)
{
	uint32_t major = 0, minor = 0;
	const struct {
		CUdevice_attribute which;
		uint32_t *to;
	} wanted[] = {
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &out->threads },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &out->block[0] },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &out->block[1] },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &out->block[2] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &out->grid[0] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &out->grid[1] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &out->grid[2] },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &out->shared },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &out->shared_optin },
	};
	gpul_status st = GPUL_OK;

	for (size_t i = 0; !st && i < sizeof wanted / sizeof wanted[0]; i++) {
		int value = 0;

		st = gpul_cu(drv, err, cuDeviceGetAttribute(&value, wanted[i].which, device));
		*wanted[i].to = (uint32_t)value;
	}
	out->cc = 10 * major + minor;
	if (out->shared_optin < out->shared)
		out->shared_optin = out->shared; /* devices before Volta have no opt-in */
	return st;
}
