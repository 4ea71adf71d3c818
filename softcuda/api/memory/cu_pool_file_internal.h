/* cu_pool_file_internal.h — the file with the memory of a pool that other processes can import: one sealed memfd, initially without
 * pages.  Each allocation maps a part of the file.
 *
 *     0            2 MiB
 *     ┌────────────┬───────────────┬───────┬─────────┬──────────────
 *     │ table of   │ an allocation │ free  │ another │ free ...
 *     │ exports    │               │       │         │
 *     └────────────┴───────────────┴───────┴─────────┴────────────── */
#ifndef GPULOAD_SOFTCUDA_API_MEMORY_CU_POOL_FILE_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_MEMORY_CU_POOL_FILE_INTERNAL_H

#include "softcuda/api/memory/cu_memory_internal.h"

#include <fcntl.h>

struct export_row {
	uint64_t serial; /* number of the export, counted from 1 in each pool; 0: the row is free */
	uint64_t offset, bytes;
};

enum {
	TABLE_BYTES = VMM_GRANULARITY,
	MAX_ROWS = TABLE_BYTES / sizeof(struct export_row),
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
};

struct pool_file {
	int fd;
	bool imported;
	size_t bytes;             /* size of the file */
	uint64_t id;              /* inode of the file, which is the same in all processes and identifies the pool */
	struct export_row *table; /* the table of exports at the start of the file, mapped */
	uint64_t last_serial;
	struct link allocations; /* sorted by offset; in an imported pool unsorted */
};

/* Create *out, which owns the descriptor fd of the file.  The caller holds the lock. */
CUresult soft_pool_file_open(int fd, size_t bytes, bool imported, struct pool_file **out);
/* Map the part of the file at a->offset. */
CUresult soft_pool_file_map_part(const struct pool_file *f, struct allocation *a);
/* Map the allocation that the owner of the pool exported by cuMemPoolExportPointer; `from` describes it.  The caller holds the lock. */
CUresult soft_pool_import_pointer(struct context *ctx, struct pool *p, const CUmemPoolPtrExportData *from, CUdeviceptr *out);

#endif
