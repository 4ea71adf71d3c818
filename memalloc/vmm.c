/* vmm.c — memory of the kinds host-numa and device, allocated by the driver's virtual memory management.
 *
 *     cuMemCreate ─> physical ──────────┐
 *                                       ├─ cuMemMap ─> mapped ─ cuMemSetAccess ─> each GPU, and
 *     cuMemAddressReserve ─> addresses ─┘                                         the CPU (host-numa)
 *
 * All GPUs and the CPU use the same address.  An import gets `physical` from a descriptor or a fabric handle;
 * the other steps are the same. */
#include "memalloc/mem_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/log.h"

static const CUmemAllocationHandleType by_fd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, by_fabric = CU_MEM_HANDLE_TYPE_FABRIC;

_Static_assert(sizeof(CUmemFabricHandle) == sizeof(gpul_mem_handle), "both handle types have the same size");

static CUmemLocation device_location(int ordinal)
{
	return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal };
}

static CUmemLocation memory_location(const gpul_mem *m)
{
	return m->about.kind == GPUL_MEM_DEVICE ? device_location(m->about.device)
						: (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = m->about.node };
}

static CUmemAllocationProp allocation_properties(const gpul_mem *m)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = (m->about.exportable ? by_fd : CU_MEM_HANDLE_TYPE_NONE) |
					(m->fabric ? by_fabric : CU_MEM_HANDLE_TYPE_NONE),
		.location = memory_location(m),
		.allocFlags.gpuDirectRDMACapable = m->about.rdma_capable,
	};
}

static gpul_status find_granularity(const gpul_mem *m, const CUmemAllocationProp *prop, size_t *grain, gpul_error *err)
{
	return mem_cu(m, err, cuMemGetAllocationGranularity(grain, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

/* Give access to each device and, for host-numa, to the CPU. */
static gpul_status set_access(gpul_mem *m, gpul_error *err)
{
	CUmemAccessDesc access[GPUL_MEM_MAX_DEVICES + 1];
	const CUmemAccess_flags flags = m->about.read_only ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	size_t n = 0;

	for (; n < m->about.n_devices; n++)
		access[n] = (CUmemAccessDesc){ device_location(m->about.devices[n]), flags };
	if (m->about.kind == GPUL_MEM_HOST_NUMA)
		access[n++] = (CUmemAccessDesc){ memory_location(m), flags };
	return mem_cu(m, err, cuMemSetAccess(m->gpu, m->about.mapped_bytes, access, n));
}

static gpul_status refuse_offer(const gpul_mem *m, CUresult r, const char *but, gpul_error *err)
{
	return gpul_fail(err, GPUL_EFORMAT, (int)r, "the owner offered %s memory of %zu bytes, but %s (CUresult %d)",
			 gpul_mem_kind_name(m->about.kind), m->about.mapped_bytes, but, (int)r);
}

static gpul_status map_physical(gpul_mem *m, gpul_error *err)
{
	const size_t bytes = m->about.mapped_bytes;
	gpul_status st = mem_cu(m, err, cuMemAddressReserve(&m->gpu, bytes, 0, 0, 0));
	CUresult r;

	if (st)
		return st;
	r = m->drv->cuMemMap(m->gpu, bytes, 0, m->physical, 0);
	/* The driver returns CUDA_ERROR_NOT_SUPPORTED if the memory has another size than the mapping. */
	if (r == CUDA_ERROR_NOT_SUPPORTED && m->about.imported)
		st = refuse_offer(m, r, "the driver reports a different size", err);
	else
		st = gpul_mem_cu_status(m, err, r, "cuMemMap");
	if (st)
		goto free_addresses;
	st = set_access(m, err);
	if (st)
		goto unmap;
	if (m->about.kind == GPUL_MEM_HOST_NUMA)
		m->cpu = (void *)(uintptr_t)m->gpu;
	return GPUL_OK;
unmap:
	(void)m->drv->cuMemUnmap(m->gpu, bytes);
free_addresses:
	(void)m->drv->cuMemAddressFree(m->gpu, bytes);
	return st;
}

/* Set about.rdma_capable if the device can allocate memory that NICs can access. */
static gpul_status find_rdma(gpul_mem *m, gpul_error *err)
{
	int can = 0;
	gpul_status st = mem_cu(m, err,
				cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, m->handles[0]));

	m->about.rdma_capable = !st && can;
	return st;
}

/* Call cuMemCreate.  If the driver refuses gpuDirectRDMACapable although the device reports support for it, call again without the flag. */
static gpul_status create_physical(gpul_mem *m, CUmemAllocationProp *prop, gpul_error *err)
{
	const size_t bytes = m->about.mapped_bytes;
	const CUresult refusal = m->drv->cuMemCreate(&m->physical, bytes, prop, 0);
	const bool of_request = refusal == CUDA_ERROR_INVALID_VALUE || refusal == CUDA_ERROR_NOT_SUPPORTED ||
				refusal == CUDA_ERROR_NOT_PERMITTED;
	gpul_status st;

	if (!m->about.rdma_capable || !of_request)
		return gpul_mem_cu_status(m, err, refusal, "cuMemCreate");
	m->about.rdma_capable = false;
	prop->allocFlags.gpuDirectRDMACapable = 0;
	st = mem_cu(m, err, cuMemCreate(&m->physical, bytes, prop, 0));
	if (!st)
		gpul_log(GPUL_LOG_INFO, "memalloc",
			 "device %d: the driver cannot allocate gpuDirectRDMACapable memory of %zu bytes (CUresult %d), "
			 "so NICs cannot access this memory",
			 m->about.device, bytes, (int)refusal);
	return st;
}

static gpul_status create_vmm(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err)
{
	CUmemAllocationProp prop;
	gpul_status st = GPUL_OK;
	size_t grain = 0;

	m->fabric = desc->fabric;
	if (m->about.kind == GPUL_MEM_DEVICE) {
		st = gpul_mem_check_peers(m, m->handles[0], err);
		if (!st)
			st = find_rdma(m, err);
	}
	prop = allocation_properties(m);
	if (!st)
		st = find_granularity(m, &prop, &grain, err);
	if (!st)
		st = gpul_mem_round(m, grain, err);
	if (!st)
		st = create_physical(m, &prop, err);
	if (st)
		return st;
	st = map_physical(m, err);
	if (st)
		(void)m->drv->cuMemRelease(m->physical);
	return st;
}

/* ---- import ---------------------------------------------------------------------- */

/* True for a character device of NVIDIA's driver. */
static bool is_nvidia_device(const struct stat *is)
{
	struct stat control;

	return S_ISCHR(is->st_mode) && (stat("/dev/nvidiactl", &control) || major(is->st_rdev) == major(control.st_rdev));
}

/* Check a descriptor before it is passed to the driver.  NVIDIA's driver exports opaque device descriptors; the software driver
 * exports sealed files, whose size can be read. */
static gpul_status check_fd(const gpul_mem *m, int fd, gpul_error *err)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW;
	const char *name = gpul_mem_kind_name(m->about.kind);
	const bool is_file = m->drv->fds_are_files;
	const int seals = fcntl(fd, F_GET_SEALS); /* read before the size, because the size can change until the file is sealed */
	struct stat is;

	if (fstat(fd, &is))
		return gpul_fail(err, GPUL_EFORMAT, errno, "the owner offered %s memory, but sent no open file descriptor", name);
	if (is_file ? !S_ISREG(is.st_mode) : !is_nvidia_device(&is))
		return gpul_fail(err, GPUL_EFORMAT, 0, "the owner offered %s memory, but its file descriptor is not a %s", name,
				 is_file ? "regular file" : "NVIDIA device");
	if (!is_file)
		return GPUL_OK;
	if (seals < 0 || (seals & needed) != needed)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the owner offered %s memory, but its file is not sealed against shrinking and growing", name);
	if (is.st_size < 0 || (size_t)is.st_size != m->about.mapped_bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the owner offered %s memory of %zu bytes, but its file has %lld bytes", name,
				 m->about.mapped_bytes, (long long)is.st_size);
	return GPUL_OK;
}

/* Check that the driver's properties of the imported memory match the offer. */
static gpul_status check_properties(gpul_mem *m, const gpul_mem_offer *offer, gpul_error *err)
{
	const bool on_device = m->about.kind == GPUL_MEM_DEVICE;
	CUmemAllocationProp prop = { 0 };
	size_t grain = 0;
	gpul_status st = mem_cu(m, err, cuMemGetAllocationPropertiesFromHandle(&prop, m->physical));

	if (st)
		return st;
	if (prop.location.type != (on_device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA))
		return gpul_fail(err, GPUL_EFORMAT, (int)prop.location.type,
				 "the owner offered %s memory, but the driver reports that its location type is %d",
				 gpul_mem_kind_name(m->about.kind), (int)prop.location.type);
	if (on_device && !offer->fabric && prop.location.id != offer->owner_device)
		return gpul_fail(err, GPUL_EFORMAT, prop.location.id,
				 "the owner offered memory of device %d, but the memory is on device %d", offer->owner_device,
				 prop.location.id);
	if (!on_device)
		m->about.node = prop.location.id;
	m->about.rdma_capable = on_device && prop.allocFlags.gpuDirectRDMACapable;
	st = find_granularity(m, &prop, &grain, err);
	if (!st)
		st = gpul_mem_accept_size(m, offer, grain, err);
	if (!st && on_device && !offer->fabric)
		st = gpul_mem_check_peers(m, (CUdevice)prop.location.id, err);
	return st;
}

static gpul_status import_vmm(gpul_mem *m, const struct mem_source *from, gpul_error *err)
{
	gpul_mem_handle copy; /* a copy, because the driver's parameter is not const */
	void *shareable = (void *)(intptr_t)from->fd;
	gpul_status st = GPUL_OK;
	CUresult r;

	m->about.mapped_bytes = from->offer->mapped_bytes;
	if (from->handle) {
		copy = *from->handle;
		shareable = &copy;
	} else {
		st = check_fd(m, from->fd, err);
	}
	if (st)
		return st;
	r = m->drv->cuMemImportFromShareableHandle(&m->physical, shareable, from->handle ? by_fabric : by_fd);
	if (r == CUDA_ERROR_UNKNOWN || r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_INVALID_HANDLE)
		return refuse_offer(m, r, "the descriptor or handle does not refer to memory of this driver", err);
	st = gpul_mem_cu_status(m, err, r, "cuMemImportFromShareableHandle");
	if (st)
		return st;
	st = check_properties(m, from->offer, err);
	if (!st)
		st = map_physical(m, err);
	if (st)
		(void)m->drv->cuMemRelease(m->physical);
	return st;
}

/* ---- export, destroy ------------------------------------------------------------- */

static gpul_status export_fd(gpul_mem *m, gpul_error *err)
{
	int fd = -1;
	gpul_status st = mem_cu(m, err, cuMemExportToShareableHandle(&fd, m->physical, by_fd, 0));

	if (st)
		return st;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		st = gpul_mem_sys_status(m, err, errno, "F_SETFD", "");
		close(fd);
		return st;
	}
	m->fd = fd;
	return GPUL_OK;
}

static gpul_status export_handle(gpul_mem *m, gpul_mem_handle *out, gpul_error *err)
{
	return mem_cu(m, err, cuMemExportToShareableHandle(out->bytes, m->physical, by_fabric, 0));
}

static void destroy_vmm(gpul_mem *m)
{
	(void)m->drv->cuMemUnmap(m->gpu, m->about.mapped_bytes);
	(void)m->drv->cuMemAddressFree(m->gpu, m->about.mapped_bytes);
	(void)m->drv->cuMemRelease(m->physical);
	if (m->fd >= 0)
		close(m->fd);
}

const struct mem_ops gpul_mem_vmm_host = {
	.on_host = true,
	.has_fd = true,
	.create = create_vmm,
	.import = import_vmm,
	.export_fd = export_fd,
	.destroy = destroy_vmm,
};
const struct mem_ops gpul_mem_vmm_device = {
	.has_fd = true,
	.create = create_vmm,
	.import = import_vmm,
	.export_fd = export_fd,
	.export_handle = export_handle,
	.destroy = destroy_vmm,
};
