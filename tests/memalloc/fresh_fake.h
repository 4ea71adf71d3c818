/* fresh_fake.h — the fake driver in the state in which tests of the kinds of memory start. */
#ifndef GPULOAD_TESTS_MEMALLOC_FRESH_FAKE_H
#define GPULOAD_TESTS_MEMALLOC_FRESH_FAKE_H

#include "driver/context.h"
#include "memalloc/mem.h"

enum { N_ALL_KINDS = GPUL_MEM_N_KINDS - 1, BYTES = 100000 };
extern const gpul_mem_kind all_kinds[N_ALL_KINDS];  /* all except AUTO */

/* The fake with two devices, device 0's context current, no failure planned. */
const gpul_driver *fresh_fake(gpul_context *c);

/* A description of exportable memory of BYTES for both devices; device memory with a fabric handle. */
gpul_mem_desc for_two(gpul_mem_kind kind);

#endif
