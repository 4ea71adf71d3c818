/* rt_error.c — keeps the last error of each thread, and gives the names and texts of errors.
 *
 * Source: CUDA Runtime API, Error Handling. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cuda_errors.h"
#include "core/log.h"
#include "nvidia/cudart/rt_refuse_internal.h"
#include "nvidia/cudart/rt_runtime_internal.h"

static _Thread_local cudaError_t last_error;

/* True for sticky errors, after which "any further CUDA work will return the same error". */
static _Bool is_sticky(cudaError_t e)
{
	switch (e) {
	case cudaErrorECCUncorrectable:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
		return 1;
	default:
		return 0;
	}
}

/* True for errors that are not mistakes of the program: system errors, and errors that programs cause on purpose to find out which
 * features are available. */
static _Bool is_answer(cudaError_t e)
{
	switch (e) {
	case cudaErrorMemoryAllocation:
	case cudaErrorInitializationError:
	case cudaErrorInsufficientDriver:
	case cudaErrorNoDevice:
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorPeerAccessUnsupported:
	case cudaErrorPeerAccessNotEnabled:
	case cudaErrorNotSupported:
		return 1;
	default:
		return 0;
	}
}

/* True if GPULOAD_SOFT_QUIET is set: it suppresses the explanations of the software driver, and those of the runtime. */
static _Bool is_quiet(void)
{
	const char *quiet = secure_getenv("GPULOAD_SOFT_QUIET");

	return quiet && !strcmp(quiet, "1");
}

cudaError_t gpul_rt_fail(cudaError_t e, const char *fmt, ...)
{
	const _Bool is_mistake = gpul_log_shows_mistakes() && !is_answer(e) && !is_quiet();
	char text[256];
	va_list args;

	last_error = e;
	if (!is_mistake && !gpul_log_shows(GPUL_LOG_INFO))
		return e;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (is_mistake)
		gpul_log_mistake("runtime", "%s: %s", cudaGetErrorName(e), text);
	else
		gpul_log(GPUL_LOG_INFO, "runtime", "%s: %s", cudaGetErrorName(e), text);
	return e;
}

/* Record the result of a driver call.  Runtime and driver errors with the same meaning have the same number.  cudaErrorNotReady
 * does not become the last error, because it is not a failure.  Mistakes are not explained here for the software driver, which
 * explains them itself. */
cudaError_t gpul_rt_record(const gpul_driver *drv, CUresult r, const char *call)
{
	gpul_error err = { 0 };

	if (r == CUDA_SUCCESS)
		return cudaSuccess;
	if (r == CUDA_ERROR_NOT_READY)
		return cudaErrorNotReady;
	last_error = (cudaError_t)r;
	if (gpul_log_shows(GPUL_LOG_INFO)) {
		(void)gpul_cu_status(drv, &err, r, call);
		gpul_log(GPUL_LOG_INFO, "runtime", "%s: %s", cudaGetErrorName(last_error), err.text);
	}
	return last_error;
}

int gpul_rt_refuse(const char *name, const char *reason)
{
	return (int)gpul_rt_fail(cudaErrorNotSupported, "%s: not supported: %s", name, reason);
}

void gpul_rt_forget_fault(void)
{
	if (is_sticky(last_error))
		last_error = cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t e = last_error;

	last_error = cudaSuccess; /* clearing a sticky error is safe, because the next call reports the fault again */
	return e;
}

static const struct row {
	int number;
	const char *name, *text; /* name: NULL if only the driver API has the error */
} rows[] = {
#define ROW(number, driver_name, runtime_name, text) { number, runtime_name, text },
	GPUL_CUDA_ERRORS(ROW)
#undef ROW
};

static const struct row *find_row(cudaError_t e)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].number == (int)e && rows[i].name)
			return &rows[i];
	return NULL;
}

const char *cudaGetErrorName(cudaError_t e)
{
	const struct row *row = find_row(e);

	return row ? row->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t e)
{
	const struct row *row = find_row(e);

	return row ? row->text : "unrecognized error code";
}
