/* rt_start.c — opens the driver, and keeps the device of each thread.
 *
 * Runtime calls have no device argument: they use the thread's current device, at first 0, whose context is made current in the
 * driver.  The runtime uses the primary context of a device, which driver API calls of the same program share; a context that the
 * program made current itself is kept.
 *
 * Source: CUDA Runtime API, Interactions with the CUDA Driver API. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/log.h"
#include "nvidia/cudart/rt_runtime_internal.h"

enum { MAX_DEVICES = 64 };

struct thread {
	int device;
	CUcontext context; /* the context that the runtime made current on this thread */
	unsigned resets;   /* value of the global `resets` when the context was made current */
};
static _Thread_local struct thread thread;

static _Atomic(const gpul_driver *) driver;
static atomic_uint resets; /* number of device resets */
static atomic_bool exiting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the array of contexts */
static CUcontext contexts[MAX_DEVICES];                  /* retained primary contexts, one for each device in use */

_Bool gpul_rt_exiting(void)
{
	return atomic_load(&exiting);
}

static void at_exit(void)
{
	atomic_store(&exiting, 1);
}

/* Print once why no driver could be opened: the program gets only an error number, which many programs do not print. */
static cudaError_t fail_open_driver(const gpul_error *err)
{
	static atomic_flag printed = ATOMIC_FLAG_INIT;
	int native = err->native;

	if (!atomic_flag_test_and_set(&printed))
		gpul_log(GPUL_LOG_NOTICE, "runtime", "%s", err->text);
	if (err->status == GPUL_EUNSUPPORTED)
		return gpul_rt_fail(native == CUDA_ERROR_NO_DEVICE ? cudaErrorNoDevice : cudaErrorInsufficientDriver, "%s", err->text);
	if (err->status == GPUL_ENOMEM)
		return gpul_rt_fail(cudaErrorMemoryAllocation, "%s", err->text);
	return gpul_rt_fail(cudaErrorInitializationError, "%s", err->text);
}

/* Open the driver and register at_exit().  Exit handlers run in reverse order, so those that were registered before main() run
 * after at_exit(). */
static cudaError_t open_driver(const gpul_driver **out)
{
	gpul_error err = { 0 };
	const gpul_driver *none = NULL;

	if (gpul_driver_open(GPUL_DRIVER_AUTO, out, &err))
		return fail_open_driver(&err);
	if ((*out)->print_faults) /* print faults, because many programs do not check the error number that they get */
		(*out)->print_faults(1);
	if (atomic_compare_exchange_strong(&driver, &none, *out))
		atexit(at_exit);
	return cudaSuccess;
}

cudaError_t gpul_rt_driver(const gpul_driver **drv)
{
	*drv = atomic_load(&driver);
	return *drv ? cudaSuccess : open_driver(drv);
}

const gpul_driver *gpul_rt_driver_if_any(void)
{
	const gpul_driver *drv = atomic_load(&driver);

	if (!drv)
		(void)gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL);
	return drv;
}

cudaError_t gpul_rt_context(const gpul_driver *drv, int ordinal, CUcontext *out)
{
	cudaError_t e = cudaSuccess;
	CUdevice device;
	int n = 0;

	e = gpul_rt_cu(drv, cuDeviceGetCount(&n));
	if (e)
		return e;
	if (ordinal < 0 || ordinal >= n || ordinal >= MAX_DEVICES)
		return gpul_rt_fail(cudaErrorInvalidDevice,
				    n == 1 ? "device %d does not exist: there is %d device, numbered from 0"
					   : "device %d does not exist: there are %d devices, numbered from 0",
				    ordinal, n);
	pthread_mutex_lock(&lock);
	if (!contexts[ordinal]) {
		e = gpul_rt_cu(drv, cuDeviceGet(&device, ordinal));
		if (!e)
			e = gpul_rt_cu(drv, cuDevicePrimaryCtxRetain(&contexts[ordinal], device));
	}
	*out = contexts[ordinal];
	pthread_mutex_unlock(&lock);
	return e;
}

cudaError_t gpul_rt_set_device(const gpul_driver *drv, int ordinal)
{
	unsigned seen = atomic_load(&resets);
	CUcontext context = NULL;
	cudaError_t e = gpul_rt_context(drv, ordinal, &context);

	if (e || (e = gpul_rt_cu(drv, cuCtxSetCurrent(context))))
		return e;
	thread = (struct thread){ .device = ordinal, .context = context, .resets = seen };
	return cudaSuccess;
}

cudaError_t gpul_rt_enter(const gpul_driver **drv)
{
	CUcontext current = NULL;
	cudaError_t e = gpul_rt_driver(drv);

	if (e || (e = gpul_rt_cu(*drv, cuCtxGetCurrent(&current))))
		return e;
	if (current && (current != thread.context || thread.resets == atomic_load(&resets)))
		return cudaSuccess;
	return gpul_rt_set_device(*drv, thread.device);
}

cudaError_t gpul_rt_device(const gpul_driver *drv, int *ordinal)
{
	CUcontext current = NULL;
	cudaError_t e = gpul_rt_cu(drv, cuCtxGetCurrent(&current));

	*ordinal = thread.device;
	if (e || !current || current == thread.context)
		return e;
	return gpul_rt_cu(drv, cuCtxGetDevice(ordinal));
}

cudaError_t gpul_rt_reset_device(const gpul_driver *drv, int ordinal)
{
	CUdevice device;
	cudaError_t e = gpul_rt_cu(drv, cuDeviceGet(&device, ordinal));

	if (e)
		return e;
	pthread_mutex_lock(&lock);
	if (contexts[ordinal]) {
		(void)drv->cuDevicePrimaryCtxRelease(device);
		contexts[ordinal] = NULL;
	}
	e = gpul_rt_cu(drv, cuDevicePrimaryCtxReset(device));
	atomic_fetch_add(&resets, 1);
	pthread_mutex_unlock(&lock);
	if (!e)
		gpul_rt_forget_fault();
	return e;
}

void gpul_rt_use(const gpul_driver *drv)
{
	atomic_store(&driver, drv);
	for (int i = 0; i < MAX_DEVICES; i++)
		contexts[i] = NULL;
	thread = (struct thread){ 0 };
}
