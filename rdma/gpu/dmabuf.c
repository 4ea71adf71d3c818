/* dmabuf.c — exports GPU memory as dma-buf descriptors. */
#include "rdma/gpu/dmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "rdma/gpu/pointer.h"

/* The flag CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE, since CUDA 12.8; earlier drivers return CUDA_ERROR_INVALID_VALUE for it. */
enum { MAPPED_BY_PCIE = 1 };
#if CUDA_VERSION >= 12080
_Static_assert((int)MAPPED_BY_PCIE == (int)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE, "as in cuda.h");
#endif

gpul_status gpul_rdma_dmabuf_supported(const gpul_driver *drv, int device, gpul_error *err)
{
	CUdevice d;
	int can = 0;
	gpul_status st = gpul_cu(drv, err, cuDeviceGet(&d, device));

	if (!st)
		st = gpul_cu(drv, err, cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, d));
	if (!st && !can)
		st = gpul_fail(err, GPUL_EUNSUPPORTED, device,
			       "device %d of the %s driver does not export its memory as dma-buf: this needs NVIDIA's open "
			       "kernel modules (515 or later) and Linux 5.12 with CONFIG_DMA_SHARED_BUFFER",
			       device, drv->name);
	return st;
}

/* ---- the range ------------------------------------------------------------------------------------------------- */

static gpul_status check_range(const gpul_driver *drv, uint64_t at, uint64_t bytes, gpul_rdma_pointer *p, gpul_error *err)
{
	gpul_status st;

	if (bytes == 0 || bytes > UINT64_MAX - at || at + bytes > UINT64_MAX - (1 << 20))
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot export a dma-buf: %" PRIu64 " bytes at %#" PRIx64 ": not a valid range",
				 bytes, at);
	st = gpul_rdma_pointer_find(drv, at, p, err);
	if (st)
		return st;
	if (p->kind == GPUL_RDMA_PAGEABLE)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%#" PRIx64 " is not an address of the %s driver: it is host memory, which needs no dma-buf, "
				 "or not mapped",
				 at, drv->name);
	if (p->kind != GPUL_RDMA_DEVICE)
		return gpul_fail(err, GPUL_EINVAL, 0, "%#" PRIx64 " is %s memory, not device memory: %s", at,
				 gpul_rdma_pointer_kind_name(p->kind),
				 p->kind == GPUL_RDMA_MANAGED ? "its pages move, so copy it to device memory"
							      : "register it without a dma-buf");
	return gpul_rdma_dmabuf_supported(drv, p->device, err);
}

/* Find the end of the allocation that contains `at`. */
static gpul_status find_end(const gpul_driver *drv, uint64_t at, uint64_t first, uint64_t *end, gpul_error *err)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	CUresult r = drv->cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)at);

	if (r == CUDA_ERROR_NOT_FOUND || r == CUDA_ERROR_INVALID_VALUE || (!r && (base > at || at - base >= bytes)))
		return gpul_fail(err, GPUL_EINVAL, (int)r,
				 "no device memory is mapped at %#" PRIx64 ", %" PRIu64 " bytes into the range that starts at "
				 "%#" PRIx64,
				 at, at - first, first);
	if (!r)
		*end = base + bytes;
	return gpul_cu_status(drv, err, r, "cuMemGetAddressRange");
}

/* Divide the range into one piece per allocation.  *n counts all pieces, but only the first GPUL_RDMA_MAX_PIECES are written. */
static gpul_status divide_range(const gpul_driver *drv, uint64_t at, uint64_t bytes, gpul_rdma_dmabuf pieces[GPUL_RDMA_MAX_PIECES],
				uint64_t *n, gpul_error *err)
{
	const uint64_t last = at + bytes;

	*n = 0;
	for (uint64_t from = at, end = 0; from < last; from = end, ++*n) {
		gpul_status st = find_end(drv, from, at, &end, err);

		if (st)
			return st;
		if (end > last)
			end = last;
		if (*n < GPUL_RDMA_MAX_PIECES)
			pieces[*n] = (gpul_rdma_dmabuf){ .at = from, .bytes = end - from, .fd = -1 };
	}
	return GPUL_OK;
}

/* ---- one piece ------------------------------------------------------------------------------------------------- */

/* Return advice on why the driver refused the export; "": the driver's error needs no advice. */
static const char *advice_for(CUresult r, const gpul_rdma_pointer *p, gpul_rdma_dmabuf_path path)
{
	if (path == GPUL_RDMA_DMABUF_PCIE && (r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_NOT_SUPPORTED))
		return ": this device or driver has no dma-buf mapping by PCIe (CUDA 12.8): use the default path";
	if (p->mapped && !p->rdma_capable && r != CUDA_ERROR_OUT_OF_MEMORY)
		return ": the memory was created without gpuDirectRDMACapable, which NICs need";
	if (r == CUDA_ERROR_NOT_SUPPORTED)
		return ": this needs NVIDIA's open kernel modules, and a kernel with dma-buf";
	if (r == CUDA_ERROR_OPERATING_SYSTEM || r == CUDA_ERROR_OUT_OF_MEMORY)
		return ": check the limit of open files (ulimit -n) and dmesg";
	return "";
}

static gpul_status explain_refusal(const gpul_driver *drv, CUresult r, const gpul_rdma_dmabuf *d, const gpul_rdma_pointer *p,
				   gpul_rdma_dmabuf_path path, gpul_error *err)
{
	static const char call[] = "cuMemGetHandleForAddressRange";
	const char *name = NULL;

	if (r == CUDA_ERROR_NOT_SUPPORTED && !gpul_driver_has(drv, call))
		return gpul_cu_status(drv, err, r, call); /* the driver lacks the function: the text advises to update it */
	if (drv->cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
		name = "an unknown CUresult";
	return gpul_fail(err, r == CUDA_ERROR_NOT_SUPPORTED ? GPUL_EUNSUPPORTED : GPUL_ECUDA, (int)r,
			 "%s of %" PRIu64 " bytes of device %d: %s (%d)%s", call, d->dmabuf_bytes, p->device, name, (int)r,
			 advice_for(r, p, path));
}

/* Export the whole host pages that contain a piece, and set d->offset, dmabuf_bytes and fd. */
static gpul_status export_piece(const gpul_driver *drv, const gpul_rdma_pointer *p, gpul_rdma_dmabuf_path path, gpul_rdma_dmabuf *d,
				gpul_error *err)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	CUresult r;
	int fd = -1;

	d->offset = d->at % page;
	d->dmabuf_bytes = (d->offset + d->bytes + page - 1) / page * page;
	r = drv->cuMemGetHandleForAddressRange(&fd, (CUdeviceptr)(d->at - d->offset), d->dmabuf_bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
					       path == GPUL_RDMA_DMABUF_PCIE ? MAPPED_BY_PCIE : 0);
	if (r)
		return explain_refusal(drv, r, d, p, path, err);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		gpul_status st = gpul_fail(err, GPUL_ESYS, errno, "dma-buf: the driver returned descriptor %d: F_SETFD: %s", fd,
					   strerror(errno));

		close(fd);
		return st;
	}
	d->fd = fd;
	return GPUL_OK;
}

/* Export a range of many allocations as one dma-buf.  Its size is checked, because a driver might export only the first allocation. */
static gpul_status export_whole(const gpul_driver *drv, const gpul_rdma_pointer *p, uint64_t n_allocations, gpul_rdma_dmabuf_path path,
				gpul_rdma_dmabuf *d, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = export_piece(drv, p, path, d, &why);
	off_t is_bytes = st ? 0 : lseek(d->fd, 0, SEEK_END);

	if (!st && is_bytes >= 0 && (uint64_t)is_bytes >= d->dmabuf_bytes) {
		gpul_log(GPUL_LOG_INFO, "rdma", "one dma-buf covers %" PRIu64 " bytes in %" PRIu64 " allocations", d->bytes, n_allocations);
		return GPUL_OK;
	}
	if (!st)
		gpul_rdma_dmabuf_close(d, 1);
	return gpul_fail(err, GPUL_EUNSUPPORTED, why.native,
			 "%" PRIu64 " bytes at %#" PRIx64 " are mapped from %" PRIu64 " allocations, and the driver does not export "
			 "them as one dma-buf: register parts of at most %d allocations",
			 d->bytes, d->at, n_allocations, (int)GPUL_RDMA_MAX_PIECES);
}

gpul_status gpul_rdma_dmabuf_export(const gpul_driver *drv, uint64_t at, uint64_t bytes, gpul_rdma_dmabuf_path path,
				    gpul_rdma_dmabuf out[GPUL_RDMA_MAX_PIECES], unsigned *n, gpul_error *err)
{
	gpul_rdma_dmabuf pieces[GPUL_RDMA_MAX_PIECES];
	uint64_t n_allocations = 0;
	gpul_rdma_pointer p;
	unsigned n_pieces = 0;
	gpul_status st = check_range(drv, at, bytes, &p, err);

	if (!st)
		st = divide_range(drv, at, bytes, pieces, &n_allocations, err);
	if (st)
		return st;
	if (n_allocations > GPUL_RDMA_MAX_PIECES) {
		pieces[0].bytes = bytes;
		st = export_whole(drv, &p, n_allocations, path, &pieces[0], err);
		n_pieces = 1;
	} else {
		while (!st && n_pieces < n_allocations)
			st = export_piece(drv, &p, path, &pieces[n_pieces++], err);
	}
	if (st) {
		gpul_rdma_dmabuf_close(pieces, n_pieces);
		return st;
	}
	memcpy(out, pieces, n_pieces * sizeof pieces[0]);
	*n = n_pieces;
	return GPUL_OK;
}

void gpul_rdma_dmabuf_close(gpul_rdma_dmabuf *pieces, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (pieces[i].fd >= 0)
			close(pieces[i].fd);
		pieces[i].fd = -1;
	}
}
