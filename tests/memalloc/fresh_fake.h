/* fresh_fake.h — the fake driver as the tests of every kind of memory begin with it. */
#ifndef GPULOAD_TESTS_MEMALLOC_FRESH_FAKE_H
#define GPULOAD_TESTS_MEMALLOC_FRESH_FAKE_H

#include "driver/context.h"
#include "memalloc/mem.h"

enum { N_ALL_KINDS = GPUL_MEM_N_KINDS - 1, BYTES = 100000 };
extern const gpul_mem_kind all_kinds[N_ALL_KINDS];  /* but AUTO */

/* The fake with two devices, device 0's context current, no failure planned; what is alive then
 * is ours. */
const gpul_driver *fresh_fake(gpul_context *c);

/* Exportable memory of BYTES that both devices may use; device memory by fabric handle, too. */
gpul_mem_desc for_two(gpul_mem_kind kind);

#endif
