/* cu_memory_internal.h — allocations, and copies and fills of memory. */
#ifndef GPULOAD_SOFTCUDA_API_MEMORY_CU_MEMORY_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_MEMORY_CU_MEMORY_INTERNAL_H

#include "softcuda/api/array/cu_array_internal.h"
#include "softcuda/api/base/cu_ipc_internal.h"
#include "softcuda/api/stream/cu_queue_internal.h"
#include "softcuda/api/vmm/cu_vmm_internal.h"

/* clang-format off */
enum allocation_kind { ALLOC_DEVICE, ALLOC_HOST, ALLOC_REGISTERED, ALLOC_ASYNC, ALLOC_IPC, ALLOC_MANAGED, ALLOC_GRAPH,
	ALLOC_VARIABLE };  /* a managed variable of a module: never freed by the application */
/* clang-format on */

#define MEMORY_TYPE_MANAGED ((CUmemAllocationType)2) /* CU_MEM_ALLOCATION_TYPE_MANAGED, which <cuda.h> of CUDA 12 lacks */

/* A memory pool, for allocations in stream order.  A destroyed pool is freed with its last allocation. */
struct pool {
	void *handle;          /* handle of the pool; NULL: the pool was destroyed */
	struct device *device; /* the device of the memory; NULL: not on a device */
	CUmemLocation location;
	CUmemAllocationType type;
	bool is_default;
	uint32_t readers, writers; /* bit d: device d may read or write the memory; the pool's own device always may, and is not included */
	int no_reuse[3];           /* settings for the reuse of freed memory; not 0: no reuse (cu_pool_attribute.c) */
	uint64_t threshold;        /* value of CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */
	uint64_t max_bytes;        /* limit of all allocations together; 0: no limit */
	uint64_t bytes;            /* bytes that are allocated now */
	uint64_t high[2];          /* maximum of `bytes` since RESERVED_MEM_HIGH, or USED_MEM_HIGH, was set to 0 */
	unsigned n_allocations;
	struct pool_file *file; /* file with the memory, if the pool can be exported or was imported (cu_pool_file.c); else NULL */
};

struct allocation {
	struct link link; /* link in context->allocations; for an ALLOC_VARIABLE, in module->managed */
	void *handle;     /* identifies the allocation in the table of memory that kernels may access */
	struct context *ctx;
	struct device *device;   /* the device of ctx; ALLOC_IPC: the device of the memory */
	struct pool *pool;       /* ALLOC_ASYNC: the pool of the memory */
	struct managed *managed; /* advice for managed memory (cu_managed_range.c); NULL: other memory */
	enum allocation_kind kind;
	unsigned flags;            /* CU_MEMHOSTALLOC_* or CU_MEMHOSTREGISTER_* */
	struct arena_block *block; /* the block of the arena that contains the memory; NULL: not in an arena */
	size_t block_bytes;        /* size of the block, which starts at base */
	uint64_t base;
	size_t bytes; /* size that the caller requested */
	uint64_t id;
	bool sync_memops;
	bool free_is_queued;        /* cuMemFreeAsync was called, but has not freed the memory yet */
	struct ipc_file *shared;    /* the file that contains the pages (cu_ipc_memory.c); NULL: the pages are private */
	unsigned char ipc_id[16];   /* ALLOC_IPC: random id of the exporting process's file */
	struct graph_memory *graph; /* ALLOC_GRAPH: the memory of the graph's node; else NULL */
	unsigned n_opened;          /* ALLOC_IPC: calls of cuIpcOpenMemHandle without cuIpcCloseMemHandle */
	struct link in_file;        /* link in pool->file->allocations, in the order of the offsets */
	size_t offset;              /* offset in pool->file */
	unsigned exported;          /* index + 1 of the allocation's row in the file's table of exports; 0: not exported */
};

/* ---- cu_memory.c --------------------------------------------------------------------------- */

#define FREED_BY(kind) (1u << (kind))
/* Free the allocation that starts at address, if it is of one of the kinds.  The caller does not hold the lock. */
CUresult soft_free_at(uint64_t address, unsigned kinds);
/* Report to the user and to memcheck why a call that frees these kinds cannot free the address.  The caller holds the lock. */
CUresult soft_refuse_free(const char *call, uint64_t address, unsigned kinds);
void soft_allocation_free(struct allocation *a); /* the caller holds the lock */
/* Enter the address range of a into the table of memory that kernels may access, for ctx.  The caller holds the lock. */
CUresult soft_allocation_enter(struct context *ctx, struct allocation *a, unsigned range_flags);
CUresult soft_allocate(struct context *ctx, enum allocation_kind kind, size_t bytes, unsigned flags,
		       struct allocation **out); /* the caller holds the lock */
/* Like soft_allocate(), but from pool p instead of the current pool of the context's device. */
CUresult soft_pool_allocate(struct pool *p, struct context *ctx, size_t bytes, struct allocation **out);
/* Register a managed variable of a module, whose memory belongs to the decoded program, and append it to `list`. */
CUresult soft_variable_enter(struct context *ctx, uint64_t base, size_t bytes, struct link *list);
void soft_variable_free(struct allocation *a);
/* Update which devices may use the pool's allocations; the caller holds the lock. */
void soft_update_pool_rights(const struct pool *p);
/* Returns true if queries for the allocation's addresses report host memory. */
bool soft_is_on_host(const struct allocation *a);
/* Update which devices may use the context's allocations; the caller holds the lock. */
void soft_update_peers(struct context *owner);
/* Return the allocation that contains address, or NULL; the caller holds the lock. */
struct allocation *soft_allocation_at(uint64_t address);

/* ---- cu_range.c: checks whether a call may use memory.  The caller holds the lock ----------------------------------------- */

/* the kind of memory that a call requires; SIDE_ANY: host or device */
enum side { SIDE_HOST, SIDE_DEVICE, SIDE_ANY, SIDE_ARRAY };

struct range_use {
	const char *call, *what; /* for messages: "copy", "destination" */
	uint64_t address;
	size_t bytes;
	enum side side; /* never SIDE_ARRAY */
	bool write;
};

/* Returns true if [address, address + bytes) is within an allocation, a variable, or mappings without a gap between them. */
bool soft_is_known(uint64_t address, size_t bytes);
/* Check that a copy or fill may use the range.  *known (may be NULL) is set to the result of soft_is_known(): false if the range is
 * the application's own memory.  *can_vanish (may be NULL) is set to true if the application can unmap the memory, so that accesses
 * must be guarded.  CUDA_ERROR_INVALID_VALUE, with a message: the range starts in an allocation and ends outside, was freed, is
 * only reserved, or may not be read or written. */
CUresult soft_check_range(const struct range_use *u, bool *known, bool *can_vanish);
/* Like soft_check_range(), but without a message; called again when a queued operation runs. */
bool soft_range_is_valid(const struct range_use *u);
/* Returns true if device d may write to all these bytes, for which soft_is_known() has returned true. */
bool soft_may_fill(const struct device *d, uint64_t address, size_t bytes);
/* Describe an access to an unmapped or protected address: "0x1000, which is not mapped or is protected". */
void soft_describe_address(uint64_t address, char *buf, size_t buf_bytes);

/* cu_peer.c: remove the context from all peer relations; the caller holds the lock. */
void soft_peer_forget(struct context *ctx);

/* ---- cu_graph_memory.c: the caller holds the lock -------------------------------------------- */

struct graph_memory {
	unsigned
		refs; /* references: one for each graph node, queued operation and running API function that uses it, and one while it is live */
	struct allocation *allocation; /* owned; NULL: it was freed together with its context */
	bool is_live;                  /* devices may access the memory now */
	bool will_be_live;             /* devices may access the memory after all work that is queued now has ended */
	bool is_freed_by_node;
	uint32_t readers, writers; /* devices that may read and that may write the memory; bit d: device d */
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUmemAccessDesc *descs; /* owned list; `params` points to it */
};

struct memory_op {
	struct op op;
	struct graph_memory *memory; /* holds a reference */
};

extern const struct op_kind soft_graph_alloc_kind, soft_graph_free_kind;

/* Reserve memory with params->bytesize > 0; the caller owns one reference. */
CUresult soft_graph_memory_new(struct context *ctx, const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct graph_memory **out);
void soft_graph_memory_unref(struct graph_memory *m);
struct graph_memory *soft_graph_memory_at(uint64_t address); /* NULL: no such memory starts there */
bool soft_graph_memory_fits(const struct graph_memory *m);   /* false: the device has not enough free memory now */
/* Create an operation of this kind for the memory; s NULL: as the work of a graph node. */
CUresult soft_graph_memory_work(const struct op_kind *kind, struct stream *s, struct graph_memory *m, struct op **out);
/* Implement cuMemAllocAsync, and cuMemFreeAsync for memory of a graph, in a stream that is capturing. */
CUresult soft_graph_memory_capture(struct stream *s, size_t bytes, CUdeviceptr *out);
CUresult soft_graph_memory_free_async(struct stream *s, struct graph_memory *m);
void soft_graph_memory_free(struct graph_memory *m);
/* Functions of cu_graph_pages.c. */
size_t soft_graph_memory_rounded(size_t bytes);            /* rounds up to the pages that are mapped */
uint64_t soft_graph_memory_blocks(const struct device *d); /* total size of the mapped blocks of pages that contain live memory of graphs */
void soft_graph_memory_set_live(struct graph_memory *m, bool is_live);
void soft_graph_memory_drop(const struct allocation *a); /* return the pages to the system; their content is lost */
uint32_t soft_graph_memory_denied(const struct graph_memory *m);
uint32_t soft_graph_memory_unwritable(const struct graph_memory *m);
void soft_graph_memory_unmap(struct allocation *a);

/* ---- pools: cu_pool_object.c, cu_pool_attribute.c, cu_pool_file.c; the caller holds the lock ---------- */

CUresult soft_pool_find(CUmemoryPool handle, struct pool **out);
/* Return the pool from which cuMemAllocAsync allocates; NULL: out of memory. */
struct pool *soft_current_pool(struct device *d);
/* Add the bytes of an allocation to those of the pool, or subtract them; soft_pool_subtract() may free a destroyed pool. */
void soft_pool_add(struct pool *p, size_t bytes);
void soft_pool_subtract(struct pool *p, size_t bytes);
bool soft_pool_is_imported(const struct pool *p);
/* Create a pool for `file`, the file of another process's pool; the new pool takes over `file`. */
CUresult soft_pool_import(const CUmemLocation *location, struct pool_file *file, CUmemoryPool *out);
/* Create the file of a pool that can be exported. */
CUresult soft_pool_file_create(struct pool *p);
void soft_pool_file_free(struct pool_file *f); /* accepts NULL */
/* Map new memory of the pool's file for the allocation a, whose size is set.  soft_pool_file_unmap() unmaps it. */
CUresult soft_pool_file_map(struct pool *p, struct allocation *a);
void soft_pool_file_unmap(struct allocation *a);

/* ---- cu_managed_range.c: the caller holds the lock -------------------------------------------- */

CUresult soft_managed_create(struct allocation *a); /* sets a->managed; a->bytes must be set before */
void soft_managed_free(struct managed *m);          /* accepts NULL */

/* ---- cu_move.c: the operations of copies and fills ------------------------------------------ */

struct copy { /* a copy in up to three dimensions; pitches are in bytes */
	char *dst;
	const char *src;
	size_t width_bytes, height, depth;
	size_t dst_pitch, src_pitch, dst_slice, src_slice;
	size_t dst_bytes, src_bytes; /* number of bytes from the first to the last, including the gaps between rows */
	enum side dst_side, src_side;
	bool dst_known, src_known; /* true: the memory belongs to this driver; false: it belongs to the application */
	bool can_vanish;           /* accesses must be guarded, because the application can unmap the memory: see soft_check_range() */
	bool is_waited_for; /* the call that queued the copy waits and returns its error, so an error is not a fault of the context */
	struct array_memory *dst_array, *src_array; /* the array that is the source or destination; NULL: memory with an address */
	void *staged;                               /* a private copy of the source, freed after the copy; NULL: none */
};

struct copy_op {
	struct op op;
	struct copy copy;
};

struct fill {
	char *dst;
	size_t bytes;                /* number of bytes from the first to the last, including the gaps between rows */
	size_t width, height, pitch; /* the width is in elements, the pitch in bytes */
	unsigned element_bytes;
	uint32_t value;
	bool can_vanish;
};

struct fill_op {
	struct op op;
	struct fill fill;
};

extern const struct op_kind soft_copy_kind, soft_fill_kind;

void soft_copy_ends(const struct copy *c, struct range_use *dst, struct range_use *src);
/* Copy the bytes now.  CUDA_ERROR_INVALID_VALUE, with a message: memory of the application is unmapped or protected. */
CUresult soft_move_rows(const struct copy *c);

/* ---- cu_copy.c, cu_copy_peer.c, cu_fill.c: also used by the generated _ptds calls ----------------- */

/* STAGED: the copy is queued, but its source is read before the call returns */
enum when { QUEUED, WAITED_FOR, STAGED };

CUresult soft_copy(CUstream stream, uint64_t dst, enum side dst_side, uint64_t src, enum side src_side, size_t bytes, enum when when);
/* Check and queue a copy.  A source or destination with SIDE_ARRAY is in an array, and was checked before.  The caller holds the lock. */
CUresult soft_queue_copy(struct stream *s, struct copy *c, enum side dst_side, enum side src_side, enum when when);
/* Check a copy, and create the work of a graph node; the caller holds the lock. */
CUresult soft_copy_new(const CUDA_MEMCPY3D_v2 *c, struct op **out);
CUresult soft_copy_2d(CUstream stream, const CUDA_MEMCPY2D_v2 *c, enum when when);
CUresult soft_copy_3d(CUstream stream, const CUDA_MEMCPY3D_v2 *c, enum when when);
CUresult soft_copy_peer(CUstream stream, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes);

struct copy_end {      /* the source or the destination of a copy: bytes at an offset of an array, or at an address */
	CUarray array; /* set if side is SIDE_ARRAY */
	size_t offset;
	uint64_t address;
	enum side side;
};

static inline struct copy_end end_in_array(CUarray array, size_t offset)
{
	return (struct copy_end){ .array = array, .offset = offset, .side = SIDE_ARRAY };
}
static inline struct copy_end end_in_memory(uint64_t address, enum side side)
{
	return (struct copy_end){ .address = address, .side = side };
}
static inline struct copy_end end_on_host(const void *address)
{
	return end_in_memory((uintptr_t)address, SIDE_HOST);
}
/* Functions of cu_copy_array.c. */
CUresult soft_copy_array(CUstream stream, struct copy_end dst, struct copy_end src, size_t bytes, enum when when);

CUresult soft_copy_3d_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *c);
/* Check a fill in ctx, and create its operation; s NULL: for a graph node.  *out NULL: nothing to fill.  The caller holds the lock. */
CUresult soft_fill_new(struct context *ctx, struct stream *s, const struct fill *f, struct op **out);
CUresult soft_fill(CUstream stream, CUdeviceptr dst, size_t pitch, unsigned element_bytes, uint32_t value, size_t width, size_t height);

/* ---- cu_value.c --------------------------------------------------------------------------------- */

/* Create the work of a node that waits until words have given values, or writes words.  The caller holds the lock, and releases *out. */
CUresult soft_values_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, struct op **out);
CUstreamBatchMemOpParams *soft_values_of_work(const struct op *work, unsigned *n); /* the list belongs to the work */

#endif
