/* lesson.h — shared by the five programs: a GPU, a file of kernels, and memory that CPU and GPU access.
 *
 * On the first error, these functions print its text and end the program. */
#ifndef LESSON_H
#define LESSON_H

#include <stdbool.h>

#include "driver/context.h"
#include "loader/loader.h"
#include "memalloc/mem.h"
#include "steps.h"

struct lesson {
	const gpul_driver *drv;
	gpul_context context;
	gpul_module *module;
	CUstream stream; /* the stream of all kernels */
	gpul_mem *mem[4];
	CUdeviceptr device[4];
	int n_mem, n_device;
};

/* An argument of a kernel; ARG(variable) initialises it. */
struct lesson_arg {
	void *value;
	size_t bytes;
};
#define ARG(variable) { &(variable), sizeof(variable) }

/* Open GPU 0 on the driver that GPULOAD_DRIVER names, and load the kernels of a PTX or CUDA C++ file. */
void lesson_begin(struct lesson *l, const char *kernels);
void lesson_end(struct lesson *l);

/* Allocate memory of zeros: host memory with one address for CPU and GPU, or device memory for kernels only. */
void *lesson_host(struct lesson *l, size_t bytes);
CUdeviceptr lesson_device(struct lesson *l, size_t bytes);

/* Start a kernel with blocks of one thread each, without waiting for it. */
void lesson_start(struct lesson *l, const char *kernel, unsigned blocks, const struct lesson_arg *args, size_t n_args);
/* True if the kernel has ended. */
bool lesson_ended(struct lesson *l);
/* Wait until the kernel has ended. */
void lesson_join(struct lesson *l);

/* One iteration of a waiting loop: yields the CPU, and ends the program after a time-out.  *since is 0 before the first
 * iteration. */
void lesson_wait(uint64_t *since, const char *for_what);

/* Steps 4 and 5: statistics of the threads that have polled. */
struct lesson_pollers {
	unsigned n_threads; /* the number of threads that have polled */
	u64 fewest;         /* the lowest number of polls of any thread */
};
struct lesson_pollers lesson_polls(const struct polls *polls, u64 *total);

/* End the program with err's text unless st is GPUL_OK. */
void lesson_need(gpul_status st, const gpul_error *err);

#endif
