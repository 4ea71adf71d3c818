/* lesson.h — what the five programs have in common: a GPU, a kernel file, memory that both see.
 *
 * These are programs to look at: the first error ends them, with its text. */
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
	CUstream stream;   /* the kernels' own */
	gpul_mem *mem[4];
	CUdeviceptr device[4];
	int n_mem, n_device;
};

/* A parameter of a kernel: ARG(variable). */
struct lesson_arg {
	void *value;
	size_t bytes;
};
#define ARG(variable) { &(variable), sizeof(variable) }

/* Open GPU 0 (GPULOAD_DRIVER says on which driver), load the kernels of a file: PTX, or CUDA C++. */
void lesson_begin(struct lesson *l, const char *kernels);
void lesson_end(struct lesson *l);

/* Zeros in host memory, at one address for the CPU and for the GPU; and in device memory, where kernels alone see it. */
void *lesson_host(struct lesson *l, size_t bytes);
CUdeviceptr lesson_device(struct lesson *l, size_t bytes);

/* Start blocks of one thread each, and go on. */
void lesson_start(struct lesson *l, const char *kernel, unsigned blocks, const struct lesson_arg *args, size_t n_args);
/* Has it ended? */
bool lesson_ended(struct lesson *l);
/* Wait until it has. */
void lesson_join(struct lesson *l);

/* One turn of a loop that waits: lets others have the processor, and ends the program when it has waited for long.
 * since: 0 before the first turn. */
void lesson_wait(uint64_t *since, const char *for_what);

/* Steps 4 and 5: who has looked. */
struct lesson_lookers {
	unsigned n_threads; /* that have looked at all */
	u64 fewest;         /* looks of the thread that has looked least */
};
struct lesson_lookers lesson_looks(const struct looks *looks, u64 *total);

/* End the program with err's text unless st is GPUL_OK. */
void lesson_need(gpul_status st, const gpul_error *err);

#endif
