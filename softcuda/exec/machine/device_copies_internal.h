/* device_copies_internal.h — a launch that copies or fills memory for a kernel. */
#ifndef GPULOAD_SOFTCUDA_EXEC_MACHINE_DEVICE_COPIES_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_MACHINE_DEVICE_COPIES_INTERNAL_H

#include "softcuda/exec/machine/nest_internal.h"

struct device_copy {           /* the first members are the kernel's parameters */
	uint64_t to, from;     /* for a fill, `from` is the byte to store */
	uint64_t to_pitch, from_pitch, width, height;
	bool fill;
};
enum { COPY_PARAMS_BYTES = 6 * 8 };
_Static_assert(offsetof(struct device_copy, fill) == COPY_PARAMS_BYTES, "as the kernels declare them");

/* Set kernel, grid and block; false: out of memory. */
bool gpul_device_copy(struct nesting *g, gpul_exec_memory *memory, const struct device_copy *copy, gpul_exec_launch_config *config);

#endif
