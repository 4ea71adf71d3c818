/* support.h — what the tests of memalloc share: a driver, a peer process, counts of what must not leak. */
#ifndef GPULOAD_TESTS_MEMALLOC_SUPPORT_H
#define GPULOAD_TESTS_MEMALLOC_SUPPORT_H

#include "driver/context.h"
#include "memalloc/mem.h"

/* The driver that GPULOAD_DRIVER names (the tests' runner: the software one), with device 0's context current.  Asserts
 * that it opens. */
const gpul_driver *open_driver(gpul_context *c);

/* A description of exportable memory for device 0. */
gpul_mem_desc wanted(gpul_mem_kind kind, size_t bytes);

size_t count_fds(void);       /* open descriptors of this process */
size_t count_mappings(void);  /* its mappings of files, those of RAM among them: anonymous ones are malloc's, too */

/* Byte i of a pattern. */
unsigned char pattern(unsigned seed, size_t i);
/* Fill memory with a pattern through the GPU's address, or say whether it is there. */
void gpu_fill(const gpul_driver *drv, CUdeviceptr at, size_t bytes, unsigned seed);
bool gpu_sees(const gpul_driver *drv, CUdeviceptr at, size_t bytes, unsigned seed);
void cpu_fill(void *at, size_t bytes, unsigned seed);
bool cpu_sees(const void *at, size_t bytes, unsigned seed);

/* ---- another process ------------------------------------------------------------------------- */

struct peer;

/* Fork it: before this process opens a driver, which would not survive it. */
struct peer *peer_start(void);
void peer_stop(struct peer *p);  /* asserts that it ended well and leaked nothing */

typedef struct peer_answer {
	gpul_error err;      /* of gpul_mem_import() */
	bool cpu_saw;        /* the pattern of seed, through each of its pointers; true where there is none */
	bool gpu_saw;
	bool copy_tried;     /* read_only: the driver was asked to copy into it, ... */
	bool copy_refused;   /* ... and would not */
	bool store_refused;  /* read_only: its CPU pointer cannot be stored to; false where there is none */
	size_t leaked_fds;
} peer_answer;

/* Have it import, look for the pattern of seed, and (unless read_only) leave that of seed + 1. */
peer_answer peer_import(struct peer *p, const gpul_mem_offer *offer, int fd, const gpul_mem_handle *handle,
			bool read_only, unsigned seed);

#endif
