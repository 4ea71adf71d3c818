/* support.h — helpers for the tests of rdma/gpu that accept every driver. */
#ifndef GPULOAD_TESTS_RDMA_GPU_SUPPORT_H
#define GPULOAD_TESTS_RDMA_GPU_SUPPORT_H

#include "driver/context.h"
#include "memalloc/mem.h"
#include "tests/support/open_files.h"

/* The driver that GPULOAD_DRIVER names, and the context of device 0, which is current; set by open_gpu(). */
extern const gpul_driver *drv;
extern gpul_context context;

/* Open driver and context.  Prints a message and returns false if there is no driver. */
bool open_gpu(void);

/* Call through drv; the test fails if the call does. */
#define MUST(call) must(drv->call, #call)
void must(CUresult r, const char *what);

gpul_mem *create_memory(gpul_mem_kind kind, size_t bytes); /* creates memory of device 0 */

#endif
