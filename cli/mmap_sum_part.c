/* mmap_sum_part.c — what each process of gpuload mmap-sum does: both sums of what it sees. */
#include "cli/mmap_sum.h"

#include "core/clock.h"

gpul_status mmap_sum_part(const gpul_ipc_view *view, gpul_type t, int timeout_ms, struct mmap_sum_report *out,
			  gpul_error *err)
{
	const size_t count = view->bytes / gpul_type_bytes(t);
	uint64_t start = gpul_clock_ns();
	gpul_status st;

	out->gpu_at = view->gpu;
	out->cpu_at = (uint64_t)(uintptr_t)view->cpu;
	st = sum_on_gpu(view->drv, t, view->gpu, count, timeout_ms, &out->gpu, err);
	out->gpu_ns = gpul_clock_ns() - start;
	start = gpul_clock_ns();
	if (!st && view->cpu)
		st = sum_on_cpu(t, view->cpu, count, &out->cpu, err);
	else if (!st)
		st = sum_of_copy(view->drv, t, view->gpu, count, &out->cpu, err);
	out->cpu_ns = gpul_clock_ns() - start;
	return st;
}
