/* start.c — the driver, and the device that a thread works on.
 *
 * The runtime API has no handle for where a call goes: each thread has a device, 0 at first,
 * and the driver's notion of it is the context that is current on the thread. So nothing but
 * the number is kept here: the context of a device is its primary one, which the driver API
 * calls of the same program share, and a context that the program made current itself is left
 * alone.
 *
 * Source: CUDA Runtime API, Interactions with the CUDA Driver API. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/log.h"
#include "loader/runtime/runtime_internal.h"

enum { MAX_DEVICES = 64 };

struct thread {
	int device;
	CUcontext context; /* what we made current on this thread */
	unsigned resets;   /* how many there had been then */
};
static _Thread_local struct thread thread;

static _Atomic(const gpul_driver *) driver;
static atomic_uint resets; /* of any device */
static atomic_bool exiting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static CUcontext contexts[MAX_DEVICES]; /* retained, one for each device in use */

_Bool gpul_rt_exiting(void)
{
	return atomic_load(&exiting);
}

static void at_exit(void)
{
	atomic_store(&exiting, 1);
}

static cudaError_t no_driver(const gpul_error *err)
{
	int native = err->native;

	if (err->status == GPUL_EUNSUPPORTED)
		return gpul_rt_fail(native == CUDA_ERROR_NO_DEVICE
					    ? cudaErrorNoDevice
					    : cudaErrorInsufficientDriver,
				    "%s", err->text);
	if (err->status == GPUL_ENOMEM)
		return gpul_rt_fail(cudaErrorMemoryAllocation, "%s", err->text);
	return gpul_rt_fail(cudaErrorInitializationError, "%s", err->text);
}

/* Exit handlers run newest first: the ones of the programs' registrations were set before
 * main(), ours is set by the first call, so it runs before them. */
static cudaError_t open_driver(const gpul_driver **out)
{
	gpul_error err = { 0 };
	const gpul_driver *none = NULL;

	if (gpul_driver_open(GPUL_DRIVER_AUTO, out, &err))
		return no_driver(&err);
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
		return gpul_rt_fail(cudaErrorInvalidDevice, "device %d: there are %d, from 0",
				    ordinal, n);
	pthread_mutex_lock(&lock);
	if (!contexts[ordinal]) {
		e = gpul_rt_cu(drv, cuDeviceGet(&device, ordinal));
		if (!e)
			e = gpul_rt_cu(drv,
				       cuDevicePrimaryCtxRetain(&contexts[ordinal], device));
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
