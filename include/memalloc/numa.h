/* numa.h — finds out on which NUMA nodes the pages of an allocation are. */
#ifndef GPULOAD_MEMALLOC_NUMA_H
#define GPULOAD_MEMALLOC_NUMA_H

#include "memalloc/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_NUMA_MAX_NODES = 64 };

typedef struct gpul_mem_numa {
	size_t n_sampled;                    /* number of pages queried */
	size_t on_node[GPUL_NUMA_MAX_NODES]; /* number of the queried pages on node i */
	size_t not_there;                    /* number of queried pages that are not allocated, or for which the kernel reported no node */
	int expected;                        /* the expected node, gpul_mem_info.node; -1 (pinned, imported files): any node */
	bool as_expected;                    /* at least one page is allocated, and all allocated pages are on the expected node */
} gpul_mem_numa;

/** Query the kernel for the NUMA node of each sampled page.
 *
 * No page is moved; pages that this process has not accessed yet are mapped first.  One of every_pages pages is queried
 * (512: 2 MiB apart, 0.1 ms per GiB; 1: all pages, 53 ms per GiB), and always the first and the last.
 *
 * @m            an object of a host kind
 * @every_pages  at least 1
 * @out          filled
 * Errors  GPUL_EINVAL device memory, or every_pages 0; GPUL_ESYS native = errno: EPERM in containers without SYS_NICE
 * Source  Linux move_pages(2) */
gpul_status gpul_mem_verify_numa(const gpul_mem *m, size_t every_pages, gpul_mem_numa *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
