/* regcache.h — which memory is registered already: a register cache with reference counts.
 *
 *     get(address, bytes) ── inside a region that is registered? ── yes: count it, 50 ns
 *                                                               └ no: register its pages, ms
 *     put(region)         ── nobody uses it: it stays registered, for the next get, until room
 *                            is needed
 *
 * Registering (cuMemHostRegister, ibv_reg_mr) pins pages and takes milliseconds; a send path meets
 * the same buffers again and again.  What registering is, is the caller's: see gpul_reg_ops. */
#ifndef GPULOAD_MEMALLOC_REGCACHE_H
#define GPULOAD_MEMALLOC_REGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_regcache gpul_regcache;  /* opaque: the struct lives in regcache.c */

/* Never called twice at once for pages that overlap. */
typedef struct gpul_reg_ops {
	/* Register [at, at + bytes), whole pages; what *token is, is yours (an MR, say). */
	gpul_status (*reg)(void *user, void *at, size_t bytes, void **token, gpul_error *err);
	void (*dereg)(void *user, void *at, size_t bytes, void *token);
	bool may_overlap;  /* two may share pages (verbs: yes; cuMemHostRegister: no) */
	void *user;
} gpul_reg_ops;

typedef struct gpul_region {
	void *at;            /* start of what is registered: a page */
	size_t bytes;
	void *token;
} gpul_region;

typedef struct gpul_regcache_stats {
	uint64_t hits, misses, evictions;
	size_t n_regions, n_in_use;
	size_t registered_bytes;
} gpul_regcache_stats;

/** Make an empty cache.
 *
 * @ops         copied
 * @idle_bytes  regions that nobody uses are kept up to so many bytes, the longest unused go first
 * @out         owned by the caller: gpul_regcache_destroy(); untouched on failure
 * Errors  GPUL_EINVAL an op is missing; GPUL_ENOMEM
 * Threads any thread may call; so too for everything below, also at once
 * Source  - */
gpul_status gpul_regcache_create(const gpul_reg_ops *ops, size_t idle_bytes, gpul_regcache **out,
				 gpul_error *err);
/** Deregisters everything, also what is in use: the caller's bug.  NULL is fine. */
void gpul_regcache_destroy(gpul_regcache *c);

/** Ops that register host memory with a driver: cuMemHostRegister, PORTABLE and DEVICEMAP; drv is
 * borrowed.  Memory that the driver knows already (its own) needs none, and is taken as it is.  A
 * context must be current on each thread that gets, puts, invalidates or destroys. */
gpul_reg_ops gpul_reg_ops_driver(const gpul_driver *drv);

/** The region that covers [at, at + bytes); register it when there is none.
 *
 * A new region that overlaps others that nobody uses replaces them and covers them all; where one
 * is in use and the ops may not overlap, that is an error.  Where no more can be pinned, all that
 * nobody uses is given back first.
 *
 * @c      cache
 * @at     any address
 * @bytes  at least 1
 * @out    borrowed; the same until gpul_regcache_put()
 * Errors  GPUL_EINVAL 0 bytes, or the end overflows; GPUL_EUNSUPPORTED overlaps one in use;
 *         GPUL_ENOMEM; what ops.reg returned
 * Threads any thread may call
 * Source  - */
gpul_status gpul_regcache_get(gpul_regcache *c, void *at, size_t bytes, const gpul_region **out,
			      gpul_error *err);
/** Give one reference back. */
void gpul_regcache_put(gpul_regcache *c, const gpul_region *r);

/** The region that holds an address, without counting it; false: none.  *out is a copy. */
bool gpul_regcache_find(gpul_regcache *c, const void *at, gpul_region *out);

/** Forget idle regions that touch [at, at + bytes): call it before munmap.  Returns how many are
 * still in use there, which are forgotten as soon as the last user puts them back. */
size_t gpul_regcache_invalidate(gpul_regcache *c, void *at, size_t bytes);

/* Counts so far. */
void gpul_regcache_stats_get(gpul_regcache *c, gpul_regcache_stats *out);

#ifdef __cplusplus
}
#endif

#endif
