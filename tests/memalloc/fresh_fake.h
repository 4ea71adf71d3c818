/* fresh_fake.h — the fake driver in its initial state, for tests of the kinds of memory. */
#ifndef GPULOAD_TESTS_MEMALLOC_FRESH_FAKE_H
#define GPULOAD_TESTS_MEMALLOC_FRESH_FAKE_H

#include "driver/context.h"
#include "memalloc/mem.h"

enum { N_ALL_KINDS = GPUL_MEM_N_KINDS - 1, BYTES = 100000 };
extern const gpul_mem_kind all_kinds[N_ALL_KINDS]; /* all kinds except AUTO */

/* Reset the fake driver: two devices, the context of device 0 is current, no call fails. */
const gpul_driver *fresh_fake(gpul_context *c);

/* Return a description of BYTES of exportable memory for both devices; device memory also gets a fabric handle. */
gpul_mem_desc for_two(gpul_mem_kind kind);

#endif
