/* lesson.c — opens the driver, loads and starts kernels, and waits; shared by the five programs. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "lesson.h"

enum { TIMEOUT_S = 30, MAX_ARGS = 8 };

void lesson_need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "lesson: %s\n", err->text);
		exit(1);
	}
}

void lesson_begin(struct lesson *l, const char *kernels)
{
	/* The folder of gpuload's headers, needed for a .cu file, which NVRTC compiles. */
	const gpul_load_options options = { .nvrtc_args = (const char *const[]){ GPULOAD_INCLUDE, NULL } };
	gpul_error err = { 0 };

	memset(l, 0, sizeof *l);
	setvbuf(stdout, NULL, _IOLBF, 0);
	lesson_need(gpul_driver_open(GPUL_DRIVER_AUTO, &l->drv, &err), &err);
	lesson_need(gpul_context_open(l->drv, 0, &l->context, &err), &err);
	lesson_need(gpul_module_load_file(l->drv, kernels, &options, &l->module, &err), &err);
	/* Prepare all kernels now: the driver may not load a kernel while another kernel waits for this thread. */
	for (size_t i = 0; i < gpul_module_n_kernels(l->module); i++)
		lesson_need(gpul_kernel_prepare(gpul_module_kernel(l->module, i), &err), &err);
	lesson_need(gpul_cu(l->drv, &err, cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING)), &err);
}

void lesson_end(struct lesson *l)
{
	l->drv->cuStreamDestroy(l->stream);
	for (int i = 0; i < l->n_device; i++)
		l->drv->cuMemFree(l->device[i]);
	for (int i = 0; i < l->n_mem; i++)
		gpul_mem_destroy(l->mem[i]);
	gpul_module_unload(l->module);
	gpul_context_close(&l->context);
}

void *lesson_host(struct lesson *l, size_t bytes)
{
	const int device = 0;
	const gpul_mem_desc desc = {
		.kind = GPUL_MEM_AUTO, .bytes = bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1
	};
	gpul_error err = { 0 };
	void *cpu;

	lesson_need(gpul_mem_create(l->drv, &desc, &l->mem[l->n_mem], &err), &err);
	cpu = gpul_mem_cpu(l->mem[l->n_mem]);
	if ((CUdeviceptr)(uintptr_t)cpu != gpul_mem_gpu(l->mem[l->n_mem])) {
		fprintf(stderr, "lesson: this memory has different addresses on CPU and GPU\n");
		exit(1);
	}
	l->n_mem++;
	return memset(cpu, 0, bytes);
}

CUdeviceptr lesson_device(struct lesson *l, size_t bytes)
{
	CUdeviceptr p;
	gpul_error err = { 0 };

	lesson_need(gpul_cu(l->drv, &err, cuMemAlloc(&p, bytes)), &err);
	l->device[l->n_device++] = p;
	lesson_need(gpul_cu(l->drv, &err, cuMemsetD8Async(p, 0, bytes, l->stream)), &err);
	return p;
}

void lesson_start(struct lesson *l, const char *kernel, unsigned blocks, const struct lesson_arg *args, size_t n_args)
{
	const gpul_launch_config config = { .grid = { blocks, 1, 1 }, .block = { 1, 1, 1 }, .stream = l->stream };
	void *values[MAX_ARGS];
	size_t bytes[MAX_ARGS];
	const gpul_kernel *k;
	gpul_error err = { 0 };

	for (size_t i = 0; i < n_args; i++) {
		values[i] = args[i].value;
		bytes[i] = args[i].bytes;
	}
	lesson_need(gpul_kernel_find(l->module, kernel, &k, &err), &err);
	lesson_need(gpul_kernel_launch(k, &config, values, bytes, n_args, &err), &err);
}

bool lesson_ended(struct lesson *l)
{
	const CUresult r = l->drv->cuStreamQuery(l->stream);
	gpul_error err = { 0 };

	if (r == CUDA_ERROR_NOT_READY)
		return false;
	lesson_need(gpul_cu_status(l->drv, &err, r, "cuStreamQuery"), &err);
	return true;
}

void lesson_wait(uint64_t *since, const char *for_what)
{
	const uint64_t now = gpul_clock_ns();

	if (!*since)
		*since = now;
	if (now - *since > TIMEOUT_S * 1000000000ull) {
		fprintf(stderr, "lesson: waited %d s for %s\n", TIMEOUT_S, for_what);
		exit(1);
	}
	sched_yield();
}

void lesson_join(struct lesson *l)
{
	uint64_t since = 0;

	while (!lesson_ended(l))
		lesson_wait(&since, "the kernel to end");
}

struct lesson_pollers lesson_polls(const struct polls *polls, u64 *total)
{
	struct lesson_pollers who = { .fewest = ~0ull };

	*total = 0;
	for (int i = 0; i < THREADS; i++) {
		const u64 n = __atomic_load_n(&polls->of_thread[i][0], __ATOMIC_RELAXED);

		*total += n;
		who.n_threads += n != 0;
		who.fewest = n < who.fewest ? n : who.fewest;
	}
	return who;
}
