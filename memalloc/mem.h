/* mem.h — memory that GPUs, CPUs and other processes can map.
 *
 *     kind        made by                                 CPU pointer   other processes map it by
 *     host-numa   cuMemCreate on a NUMA node              the same      a file descriptor
 *     device      cuMemCreate on a GPU                    none          a file descriptor (or fabric handle)
 *     memfd       memfd_create, sealed; cuMemHostRegister the same      a file descriptor
 *     shm         shm_open; cuMemHostRegister             maybe another a file descriptor (or its name)
 *     pinned      cuMemHostAlloc                          maybe another nothing: it stays in its process
 *     device-ipc  cuMemAlloc                              none          cuIpcGetMemHandle (legacy)
 *
 *     describe ─ gpul_mem_create ─> gpul_mem ─ gpul_mem_export ─> fd ┄┄ ipc/ ┄┄> gpul_mem_import ─> gpul_mem
 *
 * "The same" means that one address is valid on the CPU and on every GPU with access.  Files of RAM are filled with
 * zeros; what other kinds hold at first is the driver's choice.  A memfd cannot shrink while others have it mapped; a
 * file in /dev/shm can (it takes no seals), which is SIGBUS for all who touch it: share that kind only among processes
 * that trust each other.  Device-ipc memory has peer access turned on between its GPUs, and it stays on. */
#ifndef GPULOAD_MEMALLOC_MEM_H
#define GPULOAD_MEMALLOC_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_mem_kind {
	GPUL_MEM_AUTO = 0,   /* host memory: the first that works of HOST_NUMA, MEMFD, SHM */
	GPUL_MEM_HOST_NUMA = 1,
	GPUL_MEM_DEVICE = 2,
	GPUL_MEM_MEMFD = 3,
	GPUL_MEM_SHM = 4,
	GPUL_MEM_PINNED = 5,
	GPUL_MEM_DEVICE_IPC = 6,
} gpul_mem_kind;         /* the numbers are a wire format (ipc) */
enum { GPUL_MEM_N_KINDS = 7, GPUL_MEM_MAX_DEVICES = 16 };

/* "auto", "host-numa", ... as in the drawing; "?" for a number that is no kind. */
const char *gpul_mem_kind_name(gpul_mem_kind kind);
/* Parse such a name; false: it is none. */
bool gpul_mem_kind_parse(const char *text, gpul_mem_kind *out);

enum { GPUL_MEM_NODE_OF_GPU = -1 };  /* the NUMA node that devices[0] hangs on */

typedef struct gpul_mem_desc {
	gpul_mem_kind kind;
	size_t bytes;            /* wanted; rounded up to the granularity */
	int node;                /* a NUMA node that has memory, as in /sys/devices/system/node, or NODE_OF_GPU; pinned
				  * memory lies where the driver puts it, device memory on its GPU */
	const int *devices;      /* ordinals of the GPUs that get access; devices[0] owns device memory */
	unsigned n_devices;      /* at least 1 */
	bool read_only;          /* GPUs and CPU of this object may only read: for imports */
	bool exportable;         /* another process is to map it: kinds that cannot be are refused */
	bool fabric;             /* device: exportable by fabric handle, too (NVLink between nodes) */
	const char *shm_name;    /* shm: name for shm_open, which stays until destroyed; NULL: it never has one */
} gpul_mem_desc;

typedef struct gpul_mem gpul_mem;  /* opaque: the struct lives in mem_internal.h */

/* What an object turned out to be. */
typedef struct gpul_mem_info {
	gpul_mem_kind kind;          /* never AUTO */
	size_t bytes, mapped_bytes;  /* as asked for; as mapped: rounded up to granularity_bytes */
	size_t granularity_bytes;    /* of the driver, or the page */
	size_t alignment_bytes;      /* that both addresses have at least */
	int node;                    /* that its pages were asked for on; -1: device kinds, pinned, imported files */
	bool node_clamped;           /* the GPU hangs on no node that has memory: the first that has was taken */
	bool node_unbound;           /* the system would not place it: lies where it likes; the log says why */
	int device;                  /* ordinal that owns device memory or registered it; devices[0] */
	unsigned n_devices;
	int devices[GPUL_MEM_MAX_DEVICES];
	bool read_only, exportable, imported;
	char why[248];               /* AUTO: why the kinds before this one were left, "" if none was */
} gpul_mem_info;

/** Allocate memory and give the GPUs (and, where that exists, the CPU) access to it.
 *
 * Pages are there when it returns: too little memory is an error here, never a signal later.  AUTO logs each
 * step's reason (core/log, info) and keeps it in gpul_mem_info.why.
 *
 * @drv   borrowed; must outlive *out
 * @desc  copied.  Each device's primary context must be open (gpul_context_open), and that of devices[0]
 *        current
 * @out   owned by the caller: gpul_mem_destroy(); untouched on failure
 * Errors  GPUL_EINVAL 0 bytes, a size that overflows when rounded, no device, a device twice, a node that
 *         is not there, read_only (nobody could fill it), exportable pinned memory, no current context;
 *         GPUL_EUNSUPPORTED this driver cannot, or one device cannot reach another's memory: names it;
 *         GPUL_ENOMEM the machine, the container or /dev/shm has not so much; GPUL_ESYS; GPUL_ECUDA
 *         what the driver said, its own out of memory (native) among it
 * Threads any thread may call; one object belongs to one thread at a time, its getters to all
 * Source  CUDA Driver API, Virtual Memory Management; Linux memfd_create(2), shm_open(3) */
gpul_status gpul_mem_create(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem **out,
			    gpul_error *err);
/** Unmap and free.  NULL is fine; cannot fail.  The caller makes sure that no kernel uses it any more. */
void gpul_mem_destroy(gpul_mem *m);

/* What it turned out to be; lives as long as m.  Any thread. */
const gpul_mem_info *gpul_mem_about(const gpul_mem *m);
/* Where the CPU sees it; NULL: it does not (device memory, on both drivers).  Any thread. */
void *gpul_mem_cpu(const gpul_mem *m);
/* Where the GPUs see it.  Any thread. */
CUdeviceptr gpul_mem_gpu(const gpul_mem *m);

/** The descriptor that stands for the memory in a message to another process.
 *
 * Made once, at the first call, and kept: making it takes 0.6 ms on NVIDIA's driver.
 *
 * @m    made with exportable, of a kind that has a descriptor
 * @out  borrowed, close-on-exec; lives as long as m
 * Errors  GPUL_EINVAL not exportable; GPUL_EUNSUPPORTED device-ipc: use gpul_mem_export_handle();
 *         GPUL_ECUDA; GPUL_ESYS
 * Threads any thread may call, also at once
 * Source  CUDA Driver API: cuMemExportToShareableHandle */
gpul_status gpul_mem_export_fd(gpul_mem *m, int *out, gpul_error *err);

/* A handle of 64 bytes that stands for the memory: CUmemFabricHandle or CUipcMemHandle. */
typedef struct gpul_mem_handle { unsigned char bytes[64]; } gpul_mem_handle;

/** The same as bytes: a fabric handle (desc.fabric), or cuIpcGetMemHandle's of device-ipc memory.
 *
 * @m    as described
 * @out  filled; it owns nothing
 * Errors  GPUL_EINVAL neither fabric nor device-ipc; GPUL_ECUDA
 * Threads any thread may call, also at once
 * Source  CUDA Driver API: cuMemExportToShareableHandle, cuIpcGetMemHandle */
gpul_status gpul_mem_export_handle(gpul_mem *m, gpul_mem_handle *out, gpul_error *err);

/* What a process is told about memory that it is to map: everything but the descriptor itself. */
typedef struct gpul_mem_offer {
	gpul_mem_kind kind;
	size_t bytes, mapped_bytes;
	int owner_device;        /* device kinds: this process' ordinal of the GPU that owns it */
	bool fabric;             /* handle is a fabric handle */
} gpul_mem_offer;

/** Map memory of another process (or of this one) into this one.
 *
 * Everything that can be checked is checked before anything is mapped: that fd is of the sort that kind
 * needs (a cuMem handle is no regular file, on the software driver a sealed memfd of its own), that its size is
 * mapped_bytes, that memfd is sealed against shrinking.
 *
 * @drv    borrowed; must outlive *out
 * @offer  what the owner says; not trusted
 * @fd     borrowed: not closed, not kept; -1 where handle stands for the memory
 * @handle NULL where fd stands for the memory
 * @desc   copied: devices and read_only count, the rest is ignored
 * @out    owned by the caller: gpul_mem_destroy(); untouched on failure
 * Errors  GPUL_EINVAL as for create; GPUL_EFORMAT fd or a size is not what offer says: says which;
 *         GPUL_EUNSUPPORTED; GPUL_ENOMEM; GPUL_ESYS; GPUL_ECUDA
 * Threads any thread may call
 * Source  CUDA Driver API: cuMemImportFromShareableHandle, cuIpcOpenMemHandle; Linux fcntl(2) F_GET_SEALS */
gpul_status gpul_mem_import(const gpul_driver *drv, const gpul_mem_offer *offer, int fd,
			    const gpul_mem_handle *handle, const gpul_mem_desc *desc, gpul_mem **out,
			    gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
