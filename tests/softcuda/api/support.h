/* support.h — what the driver API tests share: a context, and kernels small enough to read. */
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

/* Not NVIDIA's driver: what only the software one does may be expected.  The rest of these tests
 * holds for both (README.md names the differences). */
bool on_software_driver(void);

/* One PTX module with all kernels (see support.c for what each does). */
extern const char kernels_ptx[];

/* cmocka group setup and teardown: cuInit, and a context of its own, current. */
int make_context(void **state);
int drop_context(void **state);

CUfunction get_kernel(const char *name);  /* of kernels_ptx, loaded in the current context */
void launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream, void **params);

/* A word that the kernel `spin` waits for, in page-locked memory. */
uint32_t *make_flag(void);
void raise_flag(uint32_t *flag);

#endif
