/* status.c — turns a CUresult into a message: the call, the error's name, its meaning, and advice. */
#include "driver/driver.h"

#include <stdio.h>
#include <string.h>

/* Advice for errors that the user can do something about; for other errors, the driver's explanation is enough. */
static const struct {
	CUresult code;
	const char *advice;
} advices[] = {
	{ CUDA_ERROR_OUT_OF_MEMORY, "free memory on the device or use smaller buffers; nvidia-smi lists the processes that use it" },
	{ CUDA_ERROR_NOT_INITIALIZED, "open the driver with gpul_driver_open() first" },
	{ CUDA_ERROR_NO_DEVICE, "no GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES, "
				"or use the soft driver" },
	{ CUDA_ERROR_INVALID_DEVICE, "gpuload devices lists the device numbers" },
	{ CUDA_ERROR_INVALID_IMAGE, "the image is damaged, or not PTX, cubin or fatbin" },
	{ CUDA_ERROR_INVALID_CONTEXT, "make a context current on this thread: gpul_context_open()" },
	{ CUDA_ERROR_NO_BINARY_FOR_GPU, "the image has no code for this device's architecture: compile for it, or include PTX" },
	{ CUDA_ERROR_INVALID_PTX, "the JIT compiler's log names the line; or compile for an older target (gpuload ls shows it)" },
	{ CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
	  "the PTX is newer than this driver: update the driver, or lower .version if the code allows" },
	{ CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "libnvidia-ptxjitcompiler is not installed: install it, or load a cubin instead of PTX" },
	{ CUDA_ERROR_NOT_FOUND, "no such name in the image: gpuload ls lists the names" },
	{ CUDA_ERROR_ILLEGAL_ADDRESS, "the kernel accessed memory out of bounds; the context is unusable; --driver soft shows where" },
	{ CUDA_ERROR_MISALIGNED_ADDRESS, "an access is not aligned to its size; the context is unusable" },
	{ CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many registers for this block size: launch fewer threads per block" },
	{ CUDA_ERROR_LAUNCH_TIMEOUT, "the display watchdog stopped the kernel: split the work" },
	{ CUDA_ERROR_LAUNCH_FAILED, "the kernel trapped or had a fault; the context is unusable; --driver soft shows where" },
	{ CUDA_ERROR_ASSERT, "an assert in the kernel failed; its line is on stdout or stderr" },
	{ CUDA_ERROR_ILLEGAL_INSTRUCTION, "the kernel's code is damaged, or was built for another architecture" },
	{ CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	  "launch fewer blocks: all blocks of a cooperative launch must be resident at the same time" },
	{ CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "libcuda.so.1 and the kernel module differ in "
					     "version: reboot after the driver update" },
	{ CUDA_ERROR_SYSTEM_NOT_READY, "start nvidia-fabricmanager (NVSwitch machines), see dmesg" },
	{ CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
	  "libcuda of cuda-compat is on the library path, but this GPU needs the installed driver" },
	{ CUDA_ERROR_MPS_CONNECTION_FAILED, "the MPS server is not reachable: see nvidia-cuda-mps-control" },
	{ CUDA_ERROR_DEVICE_UNAVAILABLE, "another process holds the GPU in exclusive mode" },
	{ CUDA_ERROR_ECC_UNCORRECTABLE, "the GPU's memory has a fault: see nvidia-smi -q -d ECC" },
};

const char *gpul_cu_advice(CUresult r)
{
	for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
		if (advices[i].code == r)
			return advices[i].advice;
	return "";
}

/* True for sticky errors: a kernel caused them, and every later call returns them. */
static _Bool is_kernel_fault(CUresult r)
{
	return r == CUDA_ERROR_ILLEGAL_ADDRESS || r == CUDA_ERROR_MISALIGNED_ADDRESS || r == CUDA_ERROR_ILLEGAL_INSTRUCTION ||
	       r == CUDA_ERROR_LAUNCH_FAILED || r == CUDA_ERROR_ASSERT || r == CUDA_ERROR_INVALID_PC ||
	       r == CUDA_ERROR_INVALID_ADDRESS_SPACE || r == CUDA_ERROR_HARDWARE_STACK_ERROR;
}

/* True if the software driver refused a function, because it contains an instruction that is not interpreted. */
static _Bool is_refused_kernel(CUresult r, const char *function)
{
	return r == CUDA_ERROR_NOT_SUPPORTED &&
	       (strcmp(function, "cuKernelGetFunction") == 0 || strcmp(function, "cuModuleGetFunction") == 0);
}

gpul_status gpul_cu_status(const gpul_driver *drv, gpul_error *err, CUresult r, const char *call)
{
	const char *name = NULL, *meaning = NULL, *advice = gpul_cu_advice(r);
	char function[64]; /* the name in the call: "cuFoo" for "cuFoo(a, b)" */

	if (r == CUDA_SUCCESS)
		return GPUL_OK;
	snprintf(function, sizeof function, "%.*s", (int)strcspn(call, "("), call);
	if (r == CUDA_ERROR_NOT_SUPPORTED && !gpul_driver_has(drv, function))
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)r,
				 "%s: the %s driver (CUDA %d.%d) does not have this function; gpuload was built with CUDA %d.%d: "
				 "update the driver",
				 function, drv->name, drv->version / 1000, drv->version % 1000 / 10, CUDA_VERSION / 1000,
				 CUDA_VERSION % 1000 / 10);
	if (drv->cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
		name = "an unknown CUresult";
	if (drv->cuGetErrorString(r, &meaning) != CUDA_SUCCESS || !meaning)
		meaning = "no description is available";
	if ((is_kernel_fault(r) || is_refused_kernel(r, function)) && drv->last_fault && *drv->last_fault())
		return gpul_fail(err, GPUL_ECUDA, (int)r, "%s: %s (%d)", drv->last_fault(), name, (int)r);
	if (strcmp(function, "cuInit") == 0 && drv->last_fault && *drv->last_fault()) /* a tool of the software driver could not start */
		return gpul_fail(err, r == CUDA_ERROR_INVALID_VALUE ? GPUL_EINVAL : GPUL_ESYS, (int)r, "%s", drv->last_fault());
	return gpul_fail(err, GPUL_ECUDA, (int)r, "%s: %s (%d), %s%s%s", function, name, (int)r, meaning, *advice ? ": " : "", advice);
}
