/* pointer.h — finds the kind of memory that an address belongs to; the send path registers each kind differently. */
#ifndef GPULOAD_RDMA_GPU_POINTER_H
#define GPULOAD_RDMA_GPU_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_rdma_pointer_kind {
	GPUL_RDMA_PAGEABLE,  /* memory that the driver does not know: malloc(), mmap() */
	GPUL_RDMA_PINNED,    /* host memory of cuMemHostAlloc or cuMemHostRegister */
	GPUL_RDMA_HOST_NUMA, /* host memory of cuMemCreate */
	GPUL_RDMA_DEVICE,    /* memory of a GPU */
	GPUL_RDMA_MANAGED,   /* memory of cuMemAllocManaged, whose pages move: a NIC cannot use it */
} gpul_rdma_pointer_kind;

/* Return the name of a kind: "pageable host", "pinned host", "host-numa", "device", "managed"; "?" for an unknown number. */
const char *gpul_rdma_pointer_kind_name(gpul_rdma_pointer_kind kind);

typedef struct gpul_rdma_pointer {
	gpul_rdma_pointer_kind kind;
	int device;        /* DEVICE: ordinal of the GPU; -1: other kinds */
	bool mapped;       /* memory of cuMemCreate and cuMemMap */
	bool rdma_capable; /* DEVICE: the driver reports that other PCIe devices, such as NICs, can access the memory */
} gpul_rdma_pointer;

/** Find what kind of memory an address belongs to.
 *
 * @drv  borrowed; NULL: no driver is used, so all memory is PAGEABLE
 * @at   an address of the CPU or of a GPU; it need not be valid: an unknown address is PAGEABLE
 * @out  filled; unchanged on failure
 * @err  explains a failure
 * Errors  GPUL_ECUDA, for example because no context is current on this thread
 * Threads any thread with a current context
 * Source  CUDA Driver API, Unified Addressing: cuPointerGetAttributes; cuMemRetainAllocationHandle */
gpul_status gpul_rdma_pointer_find(const gpul_driver *drv, uint64_t at, gpul_rdma_pointer *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
