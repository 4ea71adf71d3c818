/* corpus.h — runs one kernel on one driver: buffers, launch, comparison with a reference.
 *
 * c->err stores the first failure, and after it every helper does nothing, so that a case needs no
 * test after each call.  When the case ends, the bytes after each buffer are checked and the buffers
 * are freed. */
#ifndef GPULOAD_TESTS_CORPUS_CORPUS_H
#define GPULOAD_TESTS_CORPUS_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum { CORPUS_MAX_BUFFERS = 8, CORPUS_POISON = 0xcd };

struct corpus_buffer {
	CUdeviceptr at;
	size_t bytes;
};

struct corpus {
	const gpul_driver *drv;
	const char *path; /* path of the PTX file */
	CUmodule module;
	uint64_t seed; /* the state of corpus_random() */
	struct corpus_buffer buffers[CORPUS_MAX_BUFFERS];
	size_t n_buffers;
	gpul_error err;
};

struct corpus_case {
	const char *file; /* "vecadd" for vecadd.sm_90.ptx */
	const char *kernel;
	void (*run)(struct corpus *c);
};

/* The tables of the case_*.c files; each ends with a NULL kernel. */
extern const struct corpus_case corpus_float_cases[], corpus_integer_cases[], corpus_warp_cases[], corpus_call_cases[], corpus_host_cases[],
	corpus_library_cases[], corpus_threads_cases[], corpus_half_cases[];

/* ---- values ---- */
uint64_t corpus_random(struct corpus *c);
/* The first elements are the type's extreme values, the other elements are random bits (for floats also NaN). */
void corpus_fill_i32(struct corpus *c, int32_t *out, size_t n);
void corpus_fill_i64(struct corpus *c, int64_t *out, size_t n);
void corpus_fill_f32(struct corpus *c, float *out, size_t n);
void corpus_fill_f64(struct corpus *c, double *out, size_t n);
/* Fill with random numbers in [-1, 1). */
void corpus_fill_unit(struct corpus *c, float *out, size_t n);

/* ---- device memory ---- */
CUdeviceptr corpus_in(struct corpus *c, const void *data, size_t bytes);
CUdeviceptr corpus_out(struct corpus *c, size_t bytes); /* every byte is CORPUS_POISON */
void corpus_get(struct corpus *c, void *data, CUdeviceptr from, size_t bytes);
/* Returns the address of a module's variable; 0, and the case fails, if it does not exist or has another size. */
CUdeviceptr corpus_variable(struct corpus *c, const char *name, size_t bytes);
void corpus_release(struct corpus *c);

/* ---- launch ---- */
struct corpus_shape {
	unsigned grid_x, grid_y, block_x, block_y, shared_bytes;
	unsigned grid_z, block_z;
	bool cooperative; /* all blocks are resident, so they may wait for each other */
};
/* Start a kernel; args as for cuLaunchKernel. */
void corpus_start(struct corpus *c, const char *kernel, struct corpus_shape shape, void **args);
void corpus_wait(struct corpus *c);
/* Start a kernel and wait for it. */
void corpus_launch(struct corpus *c, const char *kernel, struct corpus_shape shape, void **args);

/* ---- comparison: the first difference is the failure ---- */
void corpus_same_u8(struct corpus *c, const char *what, const uint8_t *got, const uint8_t *want, size_t n);
void corpus_same_i32(struct corpus *c, const char *what, const int32_t *got, const int32_t *want, size_t n);
void corpus_same_i64(struct corpus *c, const char *what, const int64_t *got, const int64_t *want, size_t n);
/* Compares bits; a NaN result of arithmetic is 0x7fffffff on every GPU. */
void corpus_same_f32(struct corpus *c, const char *what, const float *got, const float *want, size_t n);
/* Compares bits, but all NaN values are equal: PTX does not define the bits of an f64 NaN. */
void corpus_same_f64(struct corpus *c, const char *what, const double *got, const double *want, size_t n);

#endif
