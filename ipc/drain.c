/* drain.c — waits until the GPUs have finished the work that may use the memory, before it is unmapped.
 *
 * cuCtxRecordEvent covers all streams of a context, and its event can be polled with a deadline.  Older
 * drivers lack it; then cuCtxSynchronize waits without a deadline. */
#include "ipc/client_internal.h"

#include <errno.h>
#include <time.h>

#include "core/clock.h"
#include "core/log.h"
#include "ipc/control.h"

enum { ABORT_CODE = 1, N_SPINS = 64 };

/* Poll until an event has completed; CUDA_ERROR_NOT_READY: time-out. */
static CUresult poll_event(const gpul_driver *drv, CUevent event, uint64_t begun_ns, int timeout_ms)
{
	struct timespec pause = { .tv_nsec = 10000 };

	for (unsigned n = 0;; n++) {
		CUresult r = drv->cuEventQuery(event);

		if (r != CUDA_ERROR_NOT_READY)
			return r;
		if (timeout_ms >= 0 && gpul_clock_ns() - begun_ns >= (uint64_t)timeout_ms * 1000000)
			return r;
		if (n < N_SPINS)
			continue;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec *= 2;
	}
}

/* Wait for all work of a context.  CUDA_ERROR_NOT_READY: kernels still run.  Any other error means that the context is broken or
 * destroyed, so that no kernel runs in it. */
static CUresult drain_context(const gpul_driver *drv, CUcontext context, uint64_t begun_ns, int timeout_ms)
{
	CUevent event = NULL;
	CUresult r = drv->cuCtxSetCurrent(context);

	if (r != CUDA_SUCCESS)
		return r;
	if (drv->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS && drv->cuCtxRecordEvent(context, event) == CUDA_SUCCESS)
		r = poll_event(drv, event, begun_ns, timeout_ms);
	else
		r = drv->cuCtxSynchronize();
	if (event)
		(void)drv->cuEventDestroy(event);
	return r;
}

static CUresult drain_device(const gpul_driver *drv, int ordinal, uint64_t begun_ns, int timeout_ms)
{
	CUcontext context;
	CUdevice device;
	CUresult r = drv->cuDeviceGet(&device, ordinal);

	if (r == CUDA_SUCCESS)
		r = drv->cuDevicePrimaryCtxRetain(&context, device);
	if (r != CUDA_SUCCESS)
		return r;
	r = drain_context(drv, context, begun_ns, timeout_ms);
	(void)drv->cuDevicePrimaryCtxRelease(device);
	return r;
}

static bool drain_all(const gpul_ipc_client *c, int timeout_ms)
{
	uint64_t begun_ns = gpul_clock_ns();
	CUcontext before = NULL;
	bool done = true;

	(void)c->drv->cuCtxGetCurrent(&before);
	for (unsigned i = 0; i < c->n_devices; i++)
		done &= drain_device(c->drv, c->devices[i], begun_ns, timeout_ms) != CUDA_ERROR_NOT_READY;
	(void)c->drv->cuCtxSetCurrent(before);
	return done;
}

static void raise_abort(const gpul_ipc_client *c)
{
	gpul_error why = { 0 };

	if (c->view.control_gpu && !c->view.read_only && gpul_ipc_abort(&c->view, ABORT_CODE, &why))
		gpul_log(GPUL_LOG_INFO, "ipc", "cannot tell running kernels to abort: %s", why.text);
}

gpul_status gpul_ipc_drain(gpul_ipc_client *c, int timeout_ms, gpul_error *err)
{
	if (c->owner_died)
		raise_abort(c);
	if (drain_all(c, timeout_ms))
		return GPUL_OK;
	raise_abort(c);
	if (drain_all(c, timeout_ms))
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
			 "kernels still run after 2 x %d ms and may use the shared memory, so it stays mapped until this "
			 "process ends",
			 timeout_ms);
}
