/* cu_vmm_share.c — exports memory as a file descriptor, and imports it in another process.
 *
 * The importer checks that the descriptor is a memfd, that its size is the size in its
 * name (cu_vmm_name.c), and that seals prevent any change of the size. */
#include "softcuda/api/vmm/cu_multicast_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { NEEDED_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

/* Check that the file has the size that its name states, and that the size cannot change. */
static CUresult check_file(int fd, size_t bytes)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || seals < 0 || (seals & NEEDED_SEALS) != NEEDED_SEALS)
		return soft_refuse(CUDA_ERROR_UNKNOWN, "import: descriptor %d is not a sealed memfd: it could shrink", fd);
	if (!bytes || bytes % VMM_GRANULARITY || st.st_size < 0 || (size_t)st.st_size != bytes)
		return soft_refuse(CUDA_ERROR_UNKNOWN, "import: descriptor %d was exported with %zu bytes, but its file has %lld bytes", fd,
				   bytes, (long long)st.st_size);
	if ((mode & O_ACCMODE) != O_RDWR)
		return soft_refuse(CUDA_ERROR_UNKNOWN, "import: descriptor %d is not open for reading and writing", fd);
	return CUDA_SUCCESS;
}

static CUresult import_fd(int fd, CUmemGenericAllocationHandle *out)
{
	struct memory *m = calloc(1, sizeof *m);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!m)
		return r;
	*m = (struct memory){ .refs = 1, .imported = true };
	m->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	r = soft_memory_parse_name(MEMORY_OF_CREATE, fd, &m->bytes, &m->prop.location);
	if (!r)
		r = check_file(fd, m->bytes);
	if (r)
		goto free_m;
	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* duplicated, because the caller keeps fd */
	if (m->fd < 0) {
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "import: no file descriptor is left (ulimit -n)");
		goto free_m;
	}
	soft_lock();
	r = soft_memory_adopt(m, out);
	if (r)
		soft_memory_unref(m);
	soft_unlock();
	return r;
free_m:
	free(m);
	return r;
}

static CUresult import_multicast(int fd, CUmemGenericAllocationHandle *out)
{
	struct multicast *t;
	CUresult r = soft_team_open(fd, &t);
	int own;

	if (r)
		return r;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own >= 0)
		return soft_multicast_adopt(t, own, CU_MEM_HANDLE_TYPE_NONE, out);
	soft_team_free(t);
	return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "import: no file descriptor is left (ulimit -n)");
}

EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle, CUmemAllocationHandleType type)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return soft_answer(CUDA_ERROR_NOT_PERMITTED, "import: fabric handles are not supported");
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "import: handle type %d is not supported: use a file descriptor (1)",
				   (int)type);
	return soft_is_team_file((int)(intptr_t)os_handle) ? import_multicast((int)(intptr_t)os_handle, out)
							   : import_fd((int)(intptr_t)os_handle, out);
}

EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
					     unsigned long long flags)
{
	struct memory *m;
	int fd = -1;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	m = soft_memory_find(handle);
	if (!m || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || m->prop.requestedHandleTypes != type)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"export: invalid handle, or its requestedHandleTypes does not "
				"include type %d",
				(int)type);
	else if ((fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "export: no file descriptor is left (ulimit -n)");
	else
		*(int *)out = fd;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
					      unsigned long long flags)
{
	CUresult r = soft_check_initialised();

	(void)flags;
	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
			   "cuMemGetHandleForAddressRange: %zu bytes at %#llx, type %d: memory of "
			   "the CPU cannot be exported as a dma-buf",
			   bytes, address, (int)type);
}
