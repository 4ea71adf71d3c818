/* fake_driver.h — a driver whose n-th call fails, and that counts what is alive.
 *
 * It has one table, filled like a real one's.  Device memory is host memory, copies are copies, a launch
 * does what the test says.  Looking up an error's name, and giving something back, are not counted and
 * never fail.  Not thread-safe. */
#ifndef GPULOAD_TESTS_FAKE_DRIVER_H
#define GPULOAD_TESTS_FAKE_DRIVER_H

#include "driver/driver.h"

typedef enum fake_kind {
	FAKE_CONTEXT, FAKE_LIBRARY, FAKE_MODULE, FAKE_MEMORY, FAKE_HOST_MEMORY, FAKE_STREAM, FAKE_EVENT,
	FAKE_VMM, FAKE_RESERVATION, FAKE_MAPPING, FAKE_REGISTRATION, FAKE_IPC,  /* of fake_memory.h */
	FAKE_N_KINDS
} fake_kind;

typedef struct fake_behaviour {  /* what it claims to be; fake_driver() resets it */
	int n_devices;                   /* 1 */
	int major, minor;                /* compute capability, 9.0 */
	int max_threads_per_block;       /* 1024 */
	int max_shared_bytes;            /* opt-in limit a block, 232448 */
	int n_params;                    /* what cuFuncGetParamInfo tells: parameters of 8 bytes; 0 */
	const char *absent_kernel;       /* cuLibraryGetKernel answers NOT_FOUND for this name; NULL */
	void *global;                    /* where every variable lies; NULL: at 4096 */
	size_t global_bytes;             /* its size, 8 */
	const char *jit_log;             /* written to CU_JIT_ERROR_LOG_BUFFER when a load fails; NULL */
	void (*launched)(void **params); /* called by cuLaunchKernel; NULL */
	int host_numa_id;                /* of every device, 0 */
	int no_peer_access;              /* cuDeviceCanAccessPeer says no; 0 */
	int no_read_only_register;       /* the device cannot register read-only pages; 0 */
	size_t granularity_bytes;        /* of the cuMem calls, 65536 */
	size_t range_bytes;              /* what cuMemGetAddressRange says of anything, SIZE_MAX / 2 */
	CUmemLocation location;          /* what an imported handle says of where it lies; type 0: as made */
	/* Called by cuLibraryLoadData; NULL. */
	void (*loading)(const void *image, unsigned n, const CUjit_option *keys, void **values);
} fake_behaviour;

/* Start over: the fail_at-th call (1 = first) fails with CUDA_ERROR_OUT_OF_MEMORY; 0: none does. */
const gpul_driver *fake_driver(int fail_at);

/* The same with another error. */
const gpul_driver *fake_driver_failing(int fail_at, CUresult with);

/* From now on the n-th call fails with that error; 0: none does. */
void fake_fail_next(int n, CUresult with);

fake_behaviour *fake_behave(void);      /* change it after fake_driver() */
int fake_calls(void);                   /* calls since fake_driver() */
int fake_alive(void);                   /* objects of all kinds not yet given back */
int fake_alive_of(fake_kind kind);

/* For tables with more calls: one call is made (its error, when its turn has come); so many more of a kind. */
CUresult fake_step(void);
void fake_count(fake_kind kind, int more);

/* fake_device.c: cuDeviceGetAttribute. */
CUresult fake_device_attribute(int *value, CUdevice_attribute which, CUdevice d);

#endif
