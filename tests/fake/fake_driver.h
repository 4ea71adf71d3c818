/* fake_driver.h — a driver for tests whose n-th call fails, and that counts the objects not yet released.
 *
 * It has one table, filled like a real driver's.  Device memory is host memory, the copy calls copy bytes, and a launch calls a
 * function of the test.  Calls that look up an error's name or release an object are not counted and never fail.  Not thread-safe. */
#ifndef GPULOAD_TESTS_FAKE_DRIVER_H
#define GPULOAD_TESTS_FAKE_DRIVER_H

#include "driver/driver.h"

/* clang-format off */
typedef enum fake_kind {
	FAKE_CONTEXT, FAKE_LIBRARY, FAKE_MODULE, FAKE_MEMORY, FAKE_HOST_MEMORY, FAKE_STREAM, FAKE_EVENT,
	FAKE_VMM, FAKE_RESERVATION, FAKE_MAPPING, FAKE_REGISTRATION, FAKE_IPC,  /* the kinds on this line are counted by fake_memory.c */
	FAKE_N_KINDS
} fake_kind;
/* clang-format on */

/* The values that the fake driver reports.  fake_driver() sets the defaults, which are 0 or NULL unless stated. */
typedef struct fake_behaviour {
	int n_devices;                   /* default 1 */
	int major, minor;                /* compute capability; default 9.0 */
	int max_threads_per_block;       /* default 1024 */
	int max_shared_bytes;            /* opt-in limit of a block's shared memory; default 232448 */
	int n_params;                    /* the number of parameters, of 8 bytes each, for cuFuncGetParamInfo */
	const char *absent_kernel;       /* cuLibraryGetKernel returns NOT_FOUND for this name */
	void *global;                    /* the address of every variable; NULL: 4096 */
	size_t global_bytes;             /* the size of every variable; default 8 */
	const char *jit_log;             /* written to CU_JIT_ERROR_LOG_BUFFER when a load fails */
	void (*launched)(void **params); /* called by cuLaunchKernel unless NULL */
	int host_numa_id;                /* the NUMA node of every device */
	int no_peer_access;              /* not 0: cuDeviceCanAccessPeer returns 0 */
	int no_rdma_memory;              /* not 0: the device cannot allocate gpuDirectRDMACapable memory */
	int no_dmabuf;                   /* not 0: the device cannot export dmabufs */
	int no_read_only_register;       /* not 0: the device cannot register read-only pages */
	size_t granularity_bytes;        /* granularity that the cuMem calls report; default 65536 */
	size_t range_bytes;              /* the size that cuMemGetAddressRange returns; default SIZE_MAX / 2 */
	CUmemLocation location;          /* the location of an imported handle; type 0: as created */
	/* Called by cuLibraryLoadData unless NULL. */
	void (*loading)(const void *image, unsigned n, const CUjit_option *keys, void **values);
} fake_behaviour;

/* Reset the fake driver and return its table; call number fail_at (from 1) fails with CUDA_ERROR_OUT_OF_MEMORY; 0: no call fails. */
const gpul_driver *fake_driver(int fail_at);

/* Reset the fake driver and return its table; call number fail_at fails with this error. */
const gpul_driver *fake_driver_failing(int fail_at, CUresult with);

/* From now on, the n-th call fails with this error; 0: no call fails. */
void fake_fail_next(int n, CUresult with);

fake_behaviour *fake_behave(void); /* a test may change it after fake_driver() */
int fake_calls(void);              /* calls since fake_driver() */
int fake_alive(void);              /* objects of all kinds not yet released */
int fake_alive_of(fake_kind kind);

/* For fakes that extend the table: count one call, and return the error if this call must fail. */
CUresult fake_step(void);
/* Add `more`, which may be negative, to the number of objects of a kind. */
void fake_count(fake_kind kind, int more);

/* The fake cuDeviceGetAttribute() (fake_device.c). */
CUresult fake_device_attribute(int *value, CUdevice_attribute which, CUdevice d);

#endif
