/* support.h — a context and small kernels for the driver API tests. */
#ifndef GPULOAD_TESTS_SOFTCUDA_API_SUPPORT_H
#define GPULOAD_TESTS_SOFTCUDA_API_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <stdbool.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)
#define fails(call, error) assert_int_equal(call, error)

/* False on NVIDIA's driver, which differs in some results (softcuda/api/README.md lists the differences). */
bool on_software_driver(void);

/* One PTX module with all kernels; support.c describes each kernel. */
extern const char kernels_ptx[];

/* cmocka setup and teardown: cuInit, and a new current context. */
int make_context(void **state);
int destroy_context(void **state);

CUfunction get_kernel(const char *name);  /* loads kernels_ptx in the current context */
void launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream, void **params);

/* A word in page-locked memory; the kernel `spin` runs until the word is not 0. */
uint32_t *make_flag(void);
void raise_flag(uint32_t *flag);

/* Catch what the process prints on stderr; the number of caught lines that contain the text; end catching. */
void catch_stderr(void);
int lines_with(const char *text);
void release_stderr(void);

#endif
