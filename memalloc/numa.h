/* numa.h — on which node memory really lies. */
#ifndef GPULOAD_MEMALLOC_NUMA_H
#define GPULOAD_MEMALLOC_NUMA_H

#include "memalloc/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_NUMA_MAX_NODES = 64 };

typedef struct gpul_mem_numa {
	size_t n_sampled;                    /* pages that were asked about */
	size_t on_node[GPUL_NUMA_MAX_NODES]; /* of these: how many lie on node i */
	size_t not_there;  /* no page behind them, or the kernel would not say */
	int expected;      /* gpul_mem_info.node; -1 (pinned, imported files): any will do */
	bool as_expected;  /* some page is there, and all that are lie on it */
} gpul_mem_numa;

/** Ask the kernel on which node the pages are.
 *
 * Nothing is moved; pages that this process has not touched yet are looked up.  One page in
 * every_pages is asked about (512: 2 MiB apart, 0.1 ms a GiB; 1: all, 53 ms a GiB), the first and
 * the last always.
 *
 * @m            of a host kind
 * @every_pages  at least 1
 * @out          filled
 * Errors  GPUL_EINVAL device memory, or every_pages 0; GPUL_EUNSUPPORTED built without libnuma;
 *         GPUL_ESYS native = errno: EPERM in containers without SYS_NICE
 * Threads any thread may call
 * Source  Linux move_pages(2) */
gpul_status gpul_mem_verify_numa(const gpul_mem *m, size_t every_pages, gpul_mem_numa *out,
				 gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
