/* process.h — the parts that every actor has: a driver, a context and a kernel that sums. */
#ifndef GPULOAD_TESTS_FAULT_PROCESS_H
#define GPULOAD_TESTS_FAULT_PROCESS_H

#include "driver/context.h"
#include "tests/fault/fault.h"

struct process {
	gpul_driver drv; /* a copy of the driver's table, at whose calls this process can be killed (step.h) */
	gpul_context context;
	CUlibrary library; /* contains the kernel; loaded at its first use */
	CUfunction sum;
	CUdeviceptr total;
};

gpul_status process_open(const struct fault *f, struct process *p, gpul_error *err);
void process_close(struct process *p);

/* Fill memory with shared_word() values, or check them: by the CPU if it can access the memory, else by copies. */
gpul_status process_fill(struct process *p, const gpul_ipc_view *v, gpul_error *err);

/* Start to sum the user's bytes on the GPU, rounds times; then wait and check the result against shared_sum(). */
gpul_status process_sum_start(struct process *p, const gpul_ipc_view *v, int64_t rounds, gpul_error *err);
gpul_status process_sum_end(struct process *p, const gpul_ipc_view *v, int64_t rounds, gpul_error *err);

/* Sum once by the GPU and, if the CPU can access the memory, by the CPU; check both sums. */
gpul_status process_sums_right(struct process *p, const gpul_ipc_view *v, gpul_error *err);

#endif
