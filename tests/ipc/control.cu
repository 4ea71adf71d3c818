// Kernels that use the control page, for test_control.c.
#include "ipc/control_device.cuh"

// Echo: for each value posted to step 0, add 1 to each element of data and post the value to step 1; ends after n values.
extern "C" __global__ void echo(gpul_ipc_control *control, unsigned *data, unsigned long long n, unsigned *result)
{
	__shared__ unsigned waited;

	for (unsigned long long i = 1; i <= n; i++) {
		if (threadIdx.x == 0)
			waited = gpul_ipc_wait(control, 0, i, 10000000000ull);
		__syncthreads();
		if (waited != GPUL_IPC_REACHED)
			break;
		data[threadIdx.x] += 1;
		__syncthreads();
		if (threadIdx.x == 0)
			gpul_ipc_post(control, 1, i);
	}
	if (threadIdx.x == 0)
		*result = waited;
}

// Wait for a step that is never posted: the time-out or the abort word ends the wait.
extern "C" __global__ void wait_for(gpul_ipc_control *control, unsigned long long timeout_ns, unsigned *result)
{
	gpul_ipc_post(control, 62, 1);
	*result = gpul_ipc_wait(control, 61, 1, timeout_ns);
}

extern "C" __global__ void raise(gpul_ipc_control *control, unsigned code, unsigned *seen)
{
	gpul_ipc_abort(control, code);
	*seen = gpul_ipc_aborted(control);
}

// The layout of struct gpul_ipc_control as the device compiler sees it.
extern "C" __global__ void layout(unsigned long long *out)
{
	const gpul_ipc_control *page = 0;

	out[0] = sizeof *page;
	out[1] = (unsigned long long)&page->abort;
	out[2] = (unsigned long long)&page->generation;
	out[3] = (unsigned long long)&page->step[0].value;
	out[4] = (unsigned long long)&page->step[1].value;
}
