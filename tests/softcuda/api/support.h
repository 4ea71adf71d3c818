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

#define ok(call)           assert_int_equal(call, CUDA_SUCCESS)
#define fails(call, error) assert_int_equal(call, error)

/* False on NVIDIA's driver, which differs in some results (softcuda/api/README.md lists the differences). */
bool on_software_driver(void);

/* One PTX module with all kernels; support.c describes each kernel. */
extern const char kernels_ptx[];

/* cmocka setup and teardown: cuInit, and a new current context. */
int make_context(void **state);
int destroy_context(void **state);

CUfunction get_kernel(const char *name); /* loads kernels_ptx in the current context */
void launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream, void **params);

/* Allocate a word in page-locked memory; the kernel `spin` runs until this word is not 0. */
uint32_t *make_flag(void);
void raise_flag(uint32_t *flag);

/* Map private memory below all other mappings of the process.  After munmap() its addresses stay unmapped, because the kernel
 * places later mappings, such as the stacks of other threads, at higher addresses. */
char *map_apart(size_t bytes);

/* Redirect the process's stderr to a temporary file, until release_stderr(). */
void catch_stderr(void);
/* The number of lines since catch_stderr() that contain the text. */
int lines_with(const char *text);
void release_stderr(void);

/* Define TEST_after_a_tick, which runs a test after a tick of the driver's clock.  cmocka installs its own SIGSEGV handlers for
 * each test, and the driver replaces them at its next tick. */
void wait_a_tick(void);
#define AFTER_A_TICK(test) \
	static void test##_after_a_tick(void **state) \
	{ \
		wait_a_tick(); \
		test(state); \
	}

#endif
