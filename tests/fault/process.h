/* process.h — what every actor needs: a driver, a context, and a kernel that sums. */
#ifndef GPULOAD_TESTS_FAULT_PROCESS_H
#define GPULOAD_TESTS_FAULT_PROCESS_H

#include "driver/context.h"
#include "tests/fault/fault.h"

struct process {
	gpul_driver drv;       /* its calls are points of step.h */
	gpul_context context;
	CUlibrary library;     /* of the kernel: loaded when first needed */
	CUfunction sum;
	CUdeviceptr total;
};

gpul_status process_open(const struct fault *f, struct process *p, gpul_error *err);
void process_close(struct process *p);

/* Fill memory with shared_word()s, or check that it holds them: by the CPU where it sees the memory, else by copies. */
gpul_status process_fill(struct process *p, const gpul_ipc_view *v, gpul_error *err);

/* Start to sum the user's bytes so many times on the GPU; then wait for it and hold it to shared_sum(). */
gpul_status process_sum_start(struct process *p, const gpul_ipc_view *v, int64_t rounds, gpul_error *err);
gpul_status process_sum_end(struct process *p, const gpul_ipc_view *v, int64_t rounds, gpul_error *err);

/* Both, once, and the CPU's own sum where it sees the memory. */
gpul_status process_sums_right(struct process *p, const gpul_ipc_view *v, gpul_error *err);

#endif
