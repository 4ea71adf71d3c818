/* support.h — helpers for the tests of memalloc: a driver and a peer process. */
#ifndef GPULOAD_TESTS_MEMALLOC_SUPPORT_H
#define GPULOAD_TESTS_MEMALLOC_SUPPORT_H

#include "driver/context.h"
#include "memalloc/mem.h"
#include "tests/support/open_files.h"

/* Open the driver that GPULOAD_DRIVER names (the test runner sets the software driver) and make the context of device 0 current. */
const gpul_driver *open_driver(gpul_context *c);

/* Return a description of exportable memory for device 0. */
gpul_mem_desc wanted(gpul_mem_kind kind, size_t bytes);

/* Return byte i of the pattern for a seed. */
unsigned char pattern(unsigned seed, size_t i);
/* Write a pattern through the GPU or CPU address, or check that memory contains the pattern. */
void gpu_fill(const gpul_driver *drv, CUdeviceptr at, size_t bytes, unsigned seed);
bool gpu_sees(const gpul_driver *drv, CUdeviceptr at, size_t bytes, unsigned seed);
void cpu_fill(void *at, size_t bytes, unsigned seed);
bool cpu_sees(const void *at, size_t bytes, unsigned seed);

/* ---- the peer process ------------------------------------------------------------------------ */

struct peer;

/* Fork a peer process; call this before opening a driver, because a driver cannot be used after fork(). */
struct peer *peer_start(void);
void peer_stop(struct peer *p); /* asserts that the peer exited with status 0 */

typedef struct peer_answer {
	gpul_error err; /* the error of gpul_mem_import() */
	bool cpu_saw;   /* the CPU read the pattern of seed; true without a CPU address */
	bool gpu_saw;
	bool copy_tried;    /* read_only: the peer tried to copy into the memory by a driver call */
	bool copy_refused;  /* the driver refused that copy */
	bool store_refused; /* read_only: a store by the CPU failed; false without a CPU address */
	size_t leaked_fds;
} peer_answer;

/* Have the peer import the memory, check the pattern of seed, and (unless read_only) write the pattern of seed + 1. */
peer_answer peer_import(struct peer *p, const gpul_mem_offer *offer, int fd, const gpul_mem_handle *handle, bool read_only, unsigned seed);

#endif
