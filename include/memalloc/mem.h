/* mem.h — memory that GPUs, CPUs and other processes can map.
 *
 *     kind        allocated by                            CPU address     other processes map it by
 *     host-numa   cuMemCreate on a NUMA node              = GPU address   a file descriptor
 *     device      cuMemCreate on a GPU                    none            a file descriptor (or fabric handle)
 *     memfd       memfd_create, sealed; cuMemHostRegister = GPU address   a file descriptor
 *     shm         shm_open; cuMemHostRegister             may differ      a file descriptor (or its name)
 *     pinned      cuMemHostAlloc                          may differ      (cannot be shared)
 *     device-ipc  cuMemAlloc                              none            cuIpcGetMemHandle (legacy)
 *
 *     describe ─ gpul_mem_create ─> gpul_mem ─ gpul_mem_export ─> fd ┄┄ ipc/ ┄┄> gpul_mem_import ─> gpul_mem
 *
 * "= GPU address": one address is valid on the CPU and on every GPU with access.  memfd and shm memory starts as zeros; the initial
 * contents of other kinds depend on the driver.  A memfd is sealed, so it cannot shrink while others have it mapped.  A file in
 * /dev/shm cannot be sealed: if a process shrinks it, each process that then accesses it is killed (SIGBUS), so share that kind
 * only among processes that trust each other.  Device-ipc memory enables peer access between its GPUs, and leaves it enabled. */
#ifndef GPULOAD_MEMALLOC_MEM_H
#define GPULOAD_MEMALLOC_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Do not change the numbers, because they are part of a wire format (ipc). */
typedef enum gpul_mem_kind {
	GPUL_MEM_AUTO = 0, /* host memory: the first of HOST_NUMA, MEMFD and SHM that works */
	GPUL_MEM_HOST_NUMA = 1,
	GPUL_MEM_DEVICE = 2,
	GPUL_MEM_MEMFD = 3,
	GPUL_MEM_SHM = 4,
	GPUL_MEM_PINNED = 5,
	GPUL_MEM_DEVICE_IPC = 6,
} gpul_mem_kind;
enum { GPUL_MEM_N_KINDS = 7, GPUL_MEM_MAX_DEVICES = 16 };

/* Return the name of a kind: "auto", "host-numa" and so on, as in the table above; "?" for an unknown number. */
const char *gpul_mem_kind_name(gpul_mem_kind kind);
/* Parse the name of a kind; false: unknown name. */
bool gpul_mem_kind_parse(const char *text, gpul_mem_kind *out);

/* a value of gpul_mem_desc.node: the NUMA node that devices[0] is attached to */
enum { GPUL_MEM_NODE_OF_GPU = -1 };

typedef struct gpul_mem_desc {
	gpul_mem_kind kind;
	size_t bytes;         /* requested size; is rounded up to the granularity */
	int node;             /* a NUMA node with memory, as in /sys/devices/system/node, or NODE_OF_GPU; ignored for
				  * pinned memory (the driver chooses) and device memory (it is in its GPU) */
	const int *devices;   /* ordinals of the GPUs that get access; devices[0] owns device memory */
	unsigned n_devices;   /* number of devices, at least 1 */
	bool read_only;       /* imports only: GPUs and CPU may read through this object, but not write */
	bool exportable;      /* other processes can map the memory; refused for kinds that cannot be shared */
	bool fabric;          /* device memory: can also be exported as a fabric handle (NVLink between machines) */
	const char *shm_name; /* kind shm: name for shm_open(), removed with the memory; NULL: no name */
} gpul_mem_desc;

typedef struct gpul_mem gpul_mem; /* opaque: the struct is in mem_internal.h */

/* Properties of a memory object. */
typedef struct gpul_mem_info {
	gpul_mem_kind kind;         /* never AUTO */
	size_t bytes, mapped_bytes; /* the requested size, and this size rounded up to a multiple of granularity_bytes */
	size_t granularity_bytes;   /* granularity of the driver, or the page size */
	size_t alignment_bytes;     /* the CPU and the GPU address are multiples of this */
	int node;                   /* NUMA node requested for the pages; -1: device kinds, pinned memory, imported files */
	bool node_clamped;          /* the GPU's own node has no memory, so node is the first node with memory */
	bool node_unbound;          /* the system refused to place the pages on node; the log has the reason */
	int device;                 /* devices[0], which owns device memory or has registered host memory */
	unsigned n_devices;
	int devices[GPUL_MEM_MAX_DEVICES];
	bool read_only, exportable, imported;
	bool rdma_capable; /* device: allocated so that NICs can access it (GPUDirect RDMA); never for host-numa */
	char why[248];     /* AUTO: why it skipped the kinds before this one; "": it skipped none */
} gpul_mem_info;

/** Allocate memory and give the GPUs (and, except for device kinds, the CPU) access to it.
 *
 * All pages are allocated when it returns: too little memory causes an error here, never a signal later.  AUTO logs the reason for
 * each kind that it skips (core/log, info) and keeps the reasons in gpul_mem_info.why.  Device memory is allocated so that NICs can
 * access it (gpuDirectRDMACapable) where the device supports this; if the driver still refuses it, the memory is allocated
 * without it (core/log, info), and gpul_mem_info.rdma_capable is false.
 *
 * @drv   borrowed; must outlive *out
 * @desc  copied.  The primary context of each device must be open (gpul_context_open), and that of devices[0] current
 * @out   owned by the caller: gpul_mem_destroy(); untouched on failure
 * Errors  GPUL_EINVAL 0 bytes, a size that overflows when rounded, no device, a device named twice, an unknown node, read_only (no
 *         process could write it), exportable pinned memory, no current context; GPUL_EUNSUPPORTED the driver lacks a call, or one
 *         device cannot access another's memory (the message names both); GPUL_ENOMEM the machine, the container or /dev/shm has
 *         too little memory; GPUL_ESYS; GPUL_ECUDA native = the driver's error, such as CUDA_ERROR_OUT_OF_MEMORY
 * Threads any thread may call; one thread at a time uses an object, but any thread may call its getters
 * Source  CUDA Driver API, Virtual Memory Management: CUmemAllocationProp,
 *         CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED; Linux memfd_create(2), shm_open(3) */
gpul_status gpul_mem_create(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem **out, gpul_error *err);
/** Unmap and free the memory.  NULL is fine; cannot fail.  The caller must make sure that no kernel still uses the memory. */
void gpul_mem_destroy(gpul_mem *m);

/* Properties of m; valid as long as m.  Any thread may call. */
const gpul_mem_info *gpul_mem_about(const gpul_mem *m);
/* The memory's address on the CPU; NULL: the CPU cannot access it (device memory, on both drivers).  Any thread may call. */
void *gpul_mem_cpu(const gpul_mem *m);
/* Return the memory's address on the GPUs.  Any thread may call. */
CUdeviceptr gpul_mem_gpu(const gpul_mem *m);

/** Export the memory as a descriptor that can be sent to another process.
 *
 * The first call creates the descriptor, later calls return the same one: creating it takes 0.6 ms on NVIDIA's driver.
 *
 * @m    created with exportable, of a kind that has a descriptor
 * @out  borrowed, close-on-exec; valid as long as m
 * Errors  GPUL_EINVAL not exportable; GPUL_EUNSUPPORTED device-ipc: use gpul_mem_export_handle(); GPUL_ECUDA; GPUL_ESYS
 * Threads any thread may call, even concurrently
 * Source  CUDA Driver API: cuMemExportToShareableHandle */
gpul_status gpul_mem_export_fd(gpul_mem *m, int *out, gpul_error *err);

/* A handle of 64 bytes that identifies memory: CUmemFabricHandle or CUipcMemHandle. */
typedef struct gpul_mem_handle {
	unsigned char bytes[64];
} gpul_mem_handle;

/** Export the memory as 64 bytes: a fabric handle (desc.fabric), or the handle of cuIpcGetMemHandle (device-ipc).
 *
 * @m    created with fabric, or of kind device-ipc
 * @out  filled; needs no cleanup
 * Errors  GPUL_EINVAL neither fabric nor device-ipc; GPUL_ECUDA
 * Threads any thread may call, even concurrently
 * Source  CUDA Driver API: cuMemExportToShareableHandle, cuIpcGetMemHandle */
gpul_status gpul_mem_export_handle(gpul_mem *m, gpul_mem_handle *out, gpul_error *err);

/* The description of the memory that an owner sends, together with the descriptor or handle, to a process that maps it. */
typedef struct gpul_mem_offer {
	gpul_mem_kind kind;
	size_t bytes, mapped_bytes;
	int owner_device; /* device kinds: the importing process' ordinal of the GPU with the memory */
	bool fabric;      /* true: the handle is a fabric handle */
} gpul_mem_offer;

/** Map memory of another process (or of this process).
 *
 * Before it maps anything, it checks that fd is of the type that the kind needs (a cuMem handle is not a regular file; on the
 * software driver it is a sealed memfd), that its size is mapped_bytes, and that a memfd is sealed against shrinking.
 *
 * @drv    borrowed; must outlive *out
 * @offer  what the owner sent; not trusted
 * @fd     borrowed: neither closed nor kept; -1 when handle is given
 * @handle NULL when fd is given
 * @desc   copied: only devices and read_only are used
 * @out    owned by the caller: gpul_mem_destroy(); untouched on failure
 * Errors  GPUL_EINVAL as for gpul_mem_create(); GPUL_EFORMAT fd or a size contradicts the offer (the message tells which);
 *         GPUL_EUNSUPPORTED; GPUL_ENOMEM; GPUL_ESYS; GPUL_ECUDA
 * Source  CUDA Driver API: cuMemImportFromShareableHandle, cuIpcOpenMemHandle; Linux fcntl(2) F_GET_SEALS */
gpul_status gpul_mem_import(const gpul_driver *drv, const gpul_mem_offer *offer, int fd, const gpul_mem_handle *handle,
			    const gpul_mem_desc *desc, gpul_mem **out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
