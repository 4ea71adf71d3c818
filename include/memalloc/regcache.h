/* regcache.h — a cache of registered memory, with reference counts.
 *
 *     get(address, bytes) ── inside a region that is registered? ── yes: count the reference, 50 ns
 *                                                               └ no: register its pages, ms
 *     put(region)         ── after the last user: the region stays registered for later gets, until the
 *                            cache exceeds its limit
 *
 * Registering (cuMemHostRegister, ibv_reg_mr) pins pages and takes milliseconds; a send path uses the same buffers
 * many times.  The caller supplies the functions that register and deregister: gpul_reg_ops. */
#ifndef GPULOAD_MEMALLOC_REGCACHE_H
#define GPULOAD_MEMALLOC_REGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_regcache gpul_regcache; /* opaque: the struct is in regcache.c */

/* The functions that register and deregister; never called concurrently for overlapping pages. */
typedef struct gpul_reg_ops {
	/* Register the whole pages [at, at + bytes).  *token is passed to dereg later: an MR, for example. */
	gpul_status (*reg)(void *user, void *at, size_t bytes, void **token, gpul_error *err);
	void (*dereg)(void *user, void *at, size_t bytes, void *token);
	bool may_overlap; /* true: two registrations may share pages (verbs: yes; cuMemHostRegister: no) */
	void *user;
} gpul_reg_ops;

typedef struct gpul_region {
	void *at; /* start of the registered pages */
	size_t bytes;
	void *token;
} gpul_region;

typedef struct gpul_regcache_stats {
	uint64_t hits, misses, evictions;
	size_t n_regions, n_in_use;
	size_t registered_bytes;
} gpul_regcache_stats;

/** Create an empty cache.
 *
 * @ops         copied
 * @idle_bytes  unused regions are kept up to this total; the least recently used are deregistered first
 * @out         owned by the caller: gpul_regcache_destroy(); untouched on failure
 * Errors  GPUL_EINVAL an op is missing; GPUL_ENOMEM
 * Threads any thread may call this and all functions below, even concurrently */
gpul_status gpul_regcache_create(const gpul_reg_ops *ops, size_t idle_bytes, gpul_regcache **out, gpul_error *err);
/** Deregister everything, even regions that are still in use (a bug of the caller).  NULL is fine. */
void gpul_regcache_destroy(gpul_regcache *c);

/** Functions that register host memory with a driver (cuMemHostRegister, PORTABLE and DEVICEMAP); drv is borrowed.
 * Memory that the driver allocated itself needs no registration and is accepted unchanged.  A context must be current
 * on each thread that calls get, put, invalidate or destroy. */
gpul_reg_ops gpul_reg_ops_driver(const gpul_driver *drv);

/** Get the region that covers [at, at + bytes), registering it first if necessary.
 *
 * A new region replaces the unused regions that it overlaps, and covers all of them.  Overlapping a region that is in use is an error,
 * unless ops.may_overlap.  When no more memory can be pinned, all unused regions are deregistered first and the call is tried again.
 *
 * @c      cache
 * @at     any address
 * @bytes  at least 1
 * @out    borrowed; unchanged until gpul_regcache_put()
 * Errors  GPUL_EINVAL 0 bytes, or the end overflows; GPUL_EUNSUPPORTED it overlaps a region in use; GPUL_ENOMEM; the
 *         error of ops.reg */
gpul_status gpul_regcache_get(gpul_regcache *c, void *at, size_t bytes, const gpul_region **out, gpul_error *err);
/** Release the reference that a gpul_regcache_get() has taken. */
void gpul_regcache_put(gpul_regcache *c, const gpul_region *r);

/** Find the region that contains an address, without taking a reference; false: no such region.  *out is a copy. */
bool gpul_regcache_find(gpul_regcache *c, const void *at, gpul_region *out);

/** Deregister the unused regions that overlap [at, at + bytes); call it before munmap.  Returns the number of
 * overlapping regions still in use: those are deregistered when their last user releases them. */
size_t gpul_regcache_invalidate(gpul_regcache *c, void *at, size_t bytes);

/* Get the cache's counters. */
void gpul_regcache_stats_get(gpul_regcache *c, gpul_regcache_stats *out);

#ifdef __cplusplus
}
#endif

#endif
