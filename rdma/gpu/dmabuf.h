/* dmabuf.h — exports GPU memory as dma-buf descriptors, by which a NIC registers it (ibv_reg_dmabuf_mr, FI_MR_DMABUF).
 *
 *      the caller's range                  at                                 at + bytes
 *                                           ↓                                  ↓
 *     ┌──────────────────────────────┬──────────────────────────────┬──────────────────────────────┐  allocations, mapped
 *     │                              │                              │                              │  next to each other
 *     └──────────────────────────────┴──────────────────────────────┴──────────────────────────────┘
 *                                      ├─┤ offset
 *                                      └─────── piece 0: dma-buf ───┘└ piece 1 ──┘  whole host pages */
#ifndef GPULOAD_RDMA_GPU_DMABUF_H
#define GPULOAD_RDMA_GPU_DMABUF_H

#include <stdint.h>

#include "driver/driver.h"
#include "rdma/protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the NIC reaches the GPU. */
typedef enum gpul_rdma_dmabuf_path {
	GPUL_RDMA_DMABUF_DEFAULT, /* the driver chooses the path */
	GPUL_RDMA_DMABUF_PCIE,    /* through the GPU's PCIe BAR1, even if the driver would choose NVLink-C2C; for NICs with their own
			        * PCIe link to the GPU */
} gpul_rdma_dmabuf_path;

typedef struct gpul_rdma_dmabuf { /* the part of the range that lies in one allocation */
	uint64_t at, bytes;       /* GPU addresses of the piece; each piece starts where the previous one ends */
	uint64_t offset;          /* offset of `at` from the start of the dma-buf */
	uint64_t dmabuf_bytes;    /* size of the dma-buf: whole host pages */
	int fd;                   /* owned, close-on-exec */
} gpul_rdma_dmabuf;

/** Export a range of GPU memory as dma-bufs, one for each allocation that it touches.
 *
 * A range of more than GPUL_RDMA_MAX_PIECES allocations is exported as one dma-buf, if the driver can do this.
 *
 * @drv    borrowed
 * @at     GPU address of the first byte; of any alignment
 * @bytes  at least 1; all of it is mapped device memory of one GPU
 * @path   how the NIC reaches the GPU
 * @out    filled with *n pieces, owned by the caller: gpul_rdma_dmabuf_close(); untouched on failure
 * @n      number of pieces, 1 to GPUL_RDMA_MAX_PIECES
 * @err    explains a failure
 * Errors  GPUL_EINVAL 0 bytes, an overflow, host memory, or a part of the range is not mapped; GPUL_EUNSUPPORTED the driver,
 *         the device or the kernel does not export dma-bufs, or the range has too many allocations; GPUL_ESYS; GPUL_ECUDA
 * Threads any thread with a current context
 * Source  CUDA Driver API: cuMemGetHandleForAddressRange, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; Linux Documentation,
 *         driver-api/dma-buf.rst */
gpul_status gpul_rdma_dmabuf_export(const gpul_driver *drv, uint64_t at, uint64_t bytes, gpul_rdma_dmabuf_path path,
				    gpul_rdma_dmabuf out[GPUL_RDMA_MAX_PIECES], unsigned *n, gpul_error *err);
/* Close the descriptors of n pieces.  Registrations made with them stay valid. */
void gpul_rdma_dmabuf_close(gpul_rdma_dmabuf *pieces, unsigned n);

/** Report whether a device exports dma-bufs, and why not.
 *
 * @drv     borrowed
 * @device  ordinal
 * @err     explains a failure
 * Errors  GPUL_EUNSUPPORTED the device does not; the text names what is missing; GPUL_ECUDA
 * Source  CUDA Driver API: CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
gpul_status gpul_rdma_dmabuf_supported(const gpul_driver *drv, int device, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
