/* memory.h — declarations that the parts of bench_memory share: samples, rows of the table, the driver's bare calls. */
#ifndef GPULOAD_BENCH_MEMORY_MEMORY_H
#define GPULOAD_BENCH_MEMORY_MEMORY_H

#include <sys/types.h>

#include "core/clock.h"
#include "driver/context.h"
#include "memalloc/mem.h"

enum { MEMORY_MAX_SAMPLES = 10000 };

struct memory_bench {
	const gpul_driver *drv;
	gpul_context context; /* the context of device 0, current on this thread */
	int n_devices, runs;
	size_t bytes;     /* size of the memory that is allocated and attached: 64 MiB */
	size_t big_bytes; /* size of the memory that kernels read: at most 1 GiB */
};

/* ---- memory_rows.c ----------------------------------------------------------------------- */

/* Print one row of the table: the median and the 99th percentile of n samples, in unit.  If bare is
 * not NULL, it contains n samples of the driver's bare calls, measured alternately with ours; the
 * row then also shows their median and the median of the ratios.  Sorts both arrays. */
void memory_row(const char *what, const char *unit, double *ours, double *bare, int n);
/* Print a row for a measurement that this machine does not support. */
void memory_row_skipped(const char *what, const char *why);
void memory_rows_begin(const struct memory_bench *b);
/* Print all rows as JSON, one object on each line. */
void memory_rows_json(const struct memory_bench *b);

static inline double memory_us(uint64_t since_ns)
{
	return (double)(gpul_clock_ns() - since_ns) * 1e-3;
}

/* ---- memory_bare.c: the driver's calls without gpuload ---------------------------------- */

struct bare {
	CUmemGenericAllocationHandle physical;
	CUdeviceptr at;
	size_t bytes;
};

/* Create (or import) host-numa memory on node 0, or device memory, and map it for device 0. */
gpul_status bare_create(const gpul_driver *drv, gpul_mem_kind kind, size_t bytes, struct bare *out, gpul_error *err);
gpul_status bare_import(const gpul_driver *drv, gpul_mem_kind kind, size_t bytes, int fd, struct bare *out, gpul_error *err);
void bare_destroy(const gpul_driver *drv, const struct bare *b);

gpul_mem_desc memory_desc(gpul_mem_kind kind, size_t bytes);

/* ---- the parts of the benchmark; each prints its rows ----------------------------------------------------- */

gpul_status memory_alloc(struct memory_bench *b, gpul_error *err); /* defined in memory_bare.c */
gpul_status memory_gpu(struct memory_bench *b, gpul_error *err);   /* defined in memory_gpu.c */
gpul_status memory_cpu(struct memory_bench *b, gpul_error *err);   /* defined in memory_cpu.c */

/* Call memory_owner_start() and memory_victims_start(), which fork, before a driver is opened: a driver cannot be used after a fork. */
struct memory_owner;
struct memory_owner *memory_owner_start(gpul_driver_choice choice, size_t bytes);
gpul_status memory_attach(struct memory_bench *b, struct memory_owner *o, gpul_error *err);
void memory_owner_stop(struct memory_owner *o);

struct memory_victims;
struct memory_victims *memory_victims_start(int n);
gpul_status memory_kill(struct memory_victims *v, gpul_error *err);
void memory_victims_stop(struct memory_victims *v);

#endif
