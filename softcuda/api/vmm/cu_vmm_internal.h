/* cu_vmm_internal.h — the objects of virtual memory management, and the source file of each step.
 *
 *     cuMemCreate ────────────> memory: a sealed memfd (cu_vmm_handle.c) <── cuMemImport... (cu_vmm_share.c)
 *                                 │ referenced by its handles and its mappings
 *     cuMemAddressReserve ──> reservation: addresses without memory (cu_vmm.c)
 *                                 │
 *     cuMemMap ───────────────> mapping: in the table of memory that kernels may access; PROT_NONE for the CPU
 *     cuMemSetAccess ─────────>   └ the access rights of each location (cu_vmm_access.c)
 *
 *     cuMulticastCreate ──────> memory, too, with a team of devices (cu_multicast.c); it is mapped like other memory
 *
 * None of these objects belongs to a context: they need no context, and work after a fault. */
#ifndef GPULOAD_SOFTCUDA_API_VMM_CU_VMM_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_VMM_CU_VMM_INTERNAL_H

#include "softcuda/api/base/cu_state_internal.h"

/* granularity of every kind of memory in bytes, as on NVIDIA's driver */
enum { VMM_GRANULARITY = 2 << 20 };

struct multicast;

/* Physical memory; freed with its last reference. */
struct memory {
	unsigned refs;       /* references: one for each cuMemRelease that the application must still call, and one for each mapping */
	void *handle;        /* the application's handle, which stays the same until the memory is freed */
	unsigned n_releases; /* calls of cuMemRelease still to be made; 0: the handle is invalid until retained again */
	int fd;              /* the memfd; close-on-exec */
	size_t bytes;
	CUmemAllocationProp prop;    /* for imported memory, requestedHandleTypes is 0 */
	bool imported;               /* the bytes count as allocated only in the process that created the memory */
	struct multicast *multicast; /* a multicast object (cu_multicast_internal.h), owned; NULL: ordinary memory */
	void (*multicast_end)(struct multicast *t);
};

struct reservation {
	uint64_t base;
	size_t bytes;
	size_t n_mappings;
};

struct mapping {
	struct memory *memory;
	struct reservation *in;
	void *handle; /* identifies the mapping in the table of memory that kernels may access */
	uint64_t base;
	size_t bytes;              /* size of the memory; for a multicast object, size of the mapped part, which begins at its start */
	uint64_t id;               /* the value of CU_POINTER_ATTRIBUTE_BUFFER_ID */
	CUmemAccess_flags host;    /* access rights of the CPU */
	uint32_t readers, writers; /* bit d: device d may read, or may write */
	bool sync_memops;
};

/* Functions of cu_vmm_handle.c; the caller holds the lock. */
void soft_memory_unref(struct memory *m);
/* Give the application a handle of m, which it must release once.  On success, that release drops the caller's reference. */
CUresult soft_memory_adopt(struct memory *m, CUmemGenericAllocationHandle *out);
struct memory *soft_memory_find(CUmemGenericAllocationHandle handle);
bool soft_numa_node_exists(int node);
/* Functions of cu_vmm_name.c.  soft_memory_name() writes the name for new memory; false: no random id, or the name is too long. */
#define MEMORY_OF_CREATE "vmm"
#define MEMORY_OF_POOL   "pool"
bool soft_memory_name(const char *kind, const CUmemLocation *location, size_t bytes, char *buf, size_t buf_bytes);
CUresult soft_memory_parse_name(const char *kind, int fd, size_t *bytes, CUmemLocation *location);
/* Give the application a handle of a multicast object; takes over t and fd, even on failure (cu_multicast.c). */
CUresult soft_multicast_adopt(struct multicast *t, int fd, CUmemAllocationHandleType type, CUmemGenericAllocationHandle *out);
/* Wait until all devices of a multicast object were added, as cuMemMap and cuMulticastBind* do; returns immediately for other
 * memory (cu_multicast_team.c).  The caller holds the lock, which is released during the wait. */
void soft_multicast_wait(struct memory *m);
/* Functions of cu_vmm.c; the caller holds the lock. */
struct mapping *soft_mapping_at(uint64_t address); /* NULL: none */
bool soft_is_reserved(uint64_t address);           /* true: cuMemAddressReserve has reserved the address */
/* Returns true if the CPU or some device may read (or write) m (cu_vmm_access.c).  The caller holds the lock. */
bool soft_mapping_allows(const struct mapping *m, bool write);

static inline bool is_host_memory(const struct memory *m)
{
	return m->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

#endif
