/* rt_register.c — registers the device code of a program before main() runs.
 *
 * The code is not loaded and no driver is opened yet, so a program can start without a GPU, and if it launches no
 * kernel, registration costs almost no time.  The first call that needs the code loads it (rt_load.c) and reports
 * errors in it. */
#include "nvidia/cudart/rt_calls_internal.h"

void **__cudaRegisterFatBinary(void *wrapper)
{
	return (void **)gpul_rt_add_image(wrapper);
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle; /* all symbols are registered by now, and the image is loaded when a call needs it */
}

void __cudaUnregisterFatBinary(void **handle)
{
	gpul_rt_remove_image((gpul_rt_image *)handle);
}

void __cudaRegisterFunction(void **handle, const char *stub, char *stub_again, const char *name, int thread_limit, uint3 *thread,
			    uint3 *block, dim3 *block_dim, dim3 *grid_dim, int *warp_size)
{
	(void)stub_again, (void)thread_limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim, (void)warp_size;
	gpul_rt_add_symbol((gpul_rt_image *)handle, GPUL_RT_KERNEL, stub, name, 0);
}

void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external, size_t bytes, int constant, int global)
{
	(void)address, (void)external, (void)constant, (void)global;
	gpul_rt_add_symbol((gpul_rt_image *)handle, GPUL_RT_VARIABLE, host, name, bytes);
}

/* Register a managed variable.  `host` is a pointer through which host code accesses the variable; it is NULL until
 * __cudaInitModule() sets it. */
void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name, int external, size_t bytes, int constant,
			      int global)
{
	(void)address, (void)external, (void)constant, (void)global;
	gpul_rt_add_symbol((gpul_rt_image *)handle, GPUL_RT_MANAGED, host, name, bytes);
}

/* Set the pointers to an image's managed variables.  Generated code calls this before their first use, and ignores the result. */
char __cudaInitModule(void **handle)
{
	const gpul_driver *drv;

	return !gpul_rt_enter(&drv) && !gpul_rt_place_managed(drv, (gpul_rt_image *)handle);
}

/* Register a host variable that kernels use.  Not supported: only few systems let devices access all host memory. */
void __cudaRegisterHostVar(void **handle, const char *name, char *address, size_t bytes)
{
	(void)handle, (void)name, (void)address, (void)bytes;
}

void __cudaRegisterUnifiedTable(void **handle, void *table)
{
	(void)handle, (void)table;
}
