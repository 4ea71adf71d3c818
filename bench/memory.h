/* memory.h — what the parts of bench_memory share: samples, rows, the bare calls. */
#ifndef GPULOAD_BENCH_MEMORY_H
#define GPULOAD_BENCH_MEMORY_H

#include <sys/types.h>

#include "core/clock.h"
#include "driver/context.h"
#include "memalloc/mem.h"

enum { MEMORY_MAX_SAMPLES = 10000 };

struct memory_bench {
	const gpul_driver *drv;
	gpul_context context;      /* of device 0, current */
	int n_devices, runs;
	size_t bytes;              /* of what is allocated and attached: 64 MiB */
	size_t big_bytes;          /* of what is read from end to end: 1 GiB, or less */
};

/* ---- memory_rows.c ----------------------------------------------------------------------- */

/* One line of the table: the median and the 99th percentile of n samples, in unit.  With bare,
 * which has as many, taken in turn with the others, also its median and the median of the ratios.
 * Sorts both. */
void memory_row(const char *what, const char *unit, double *ours, double *bare, int n);
/* A line for what this machine cannot do. */
void memory_row_skipped(const char *what, const char *why);
void memory_rows_begin(const struct memory_bench *b);
/* All lines once more as JSON, one object a line. */
void memory_rows_json(const struct memory_bench *b);

static inline double memory_us(uint64_t since_ns)
{
	return (double)(gpul_clock_ns() - since_ns) * 1e-3;
}

/* ---- memory_bare.c: the driver's calls and nothing else ---------------------------------- */

struct bare {
	CUmemGenericAllocationHandle physical;
	CUdeviceptr at;
	size_t bytes;
};

/* Of host-numa (node 0) or device memory, for device 0. */
gpul_status bare_create(const gpul_driver *drv, gpul_mem_kind kind, size_t bytes, struct bare *out,
			gpul_error *err);
gpul_status bare_import(const gpul_driver *drv, gpul_mem_kind kind, size_t bytes, int fd, struct bare *out,
			gpul_error *err);
void bare_destroy(const gpul_driver *drv, const struct bare *b);

gpul_mem_desc memory_desc(gpul_mem_kind kind, size_t bytes);

/* ---- the parts; each prints its rows ----------------------------------------------------- */

gpul_status memory_alloc(struct memory_bench *b, gpul_error *err);   /* memory_bare.c */
gpul_status memory_gpu(struct memory_bench *b, gpul_error *err);     /* memory_gpu.c */
gpul_status memory_cpu(struct memory_bench *b, gpul_error *err);     /* memory_cpu.c */

/* Processes must be there before a driver is opened: they are started first, and used later. */
struct memory_owner;
struct memory_owner *memory_owner_start(gpul_driver_choice choice, size_t bytes);
gpul_status memory_attach(struct memory_bench *b, struct memory_owner *o, gpul_error *err);
void memory_owner_stop(struct memory_owner *o);

struct memory_victims;
struct memory_victims *memory_victims_start(int n);
gpul_status memory_kill(struct memory_victims *v, gpul_error *err);
void memory_victims_stop(struct memory_victims *v);

#endif
