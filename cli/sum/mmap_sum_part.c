/* mmap_sum_part.c — computes the GPU's and the CPU's sum in each process of gpuload mmap-sum. */
#include "cli/sum/mmap_sum.h"

#include "core/clock.h"

/* Compute the GPU's sum; its measured time does not include loading the kernel. */
static gpul_status sum_timed(const gpul_ipc_view *v, gpul_type t, size_t count, int timeout_ms, struct mmap_sum_report *out,
			     gpul_error *err)
{
	struct sum_gpu *g;
	gpul_status st = sum_gpu_create(v->drv, t, count, &g, err);
	uint64_t start = gpul_clock_ns();

	if (st)
		return st;
	st = sum_gpu_start(g, v->gpu, count, NULL, err);
	st = st ? st : sum_gpu_finish(g, NULL, timeout_ms, &out->gpu, err);
	out->gpu_ns = gpul_clock_ns() - start;
	sum_gpu_destroy(g);
	return st;
}

gpul_status mmap_sum_compute(const gpul_ipc_view *view, gpul_type t, int timeout_ms, struct mmap_sum_report *out, gpul_error *err)
{
	const size_t count = view->bytes / gpul_type_bytes(t);
	gpul_status st = sum_timed(view, t, count, timeout_ms, out, err);
	uint64_t start = gpul_clock_ns();

	out->gpu_at = view->gpu;
	out->cpu_at = (uint64_t)(uintptr_t)view->cpu;
	if (!st && view->cpu)
		st = sum_on_cpu(t, view->cpu, count, &out->cpu, err);
	else if (!st)
		st = sum_of_copy(view->drv, t, view->gpu, count, &out->cpu, err);
	out->cpu_ns = gpul_clock_ns() - start;
	return st;
}
