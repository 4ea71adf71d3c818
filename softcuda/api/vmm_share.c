/* vmm_share.c — memory that goes to another process, as a file descriptor.
 *
 * Nothing but the descriptor travels, so what the importer must know is in the memfd's name,
 * which the system shows to whoever holds the descriptor:
 *
 *     /proc/self/fd/N -> /memfd:gpuload-vmm:1:d:<UUID of the device>:<bytes>:<random id>
 * (deleted) n:<NUMA node> h:0                        all numbers in hexadecimal
 *
 * An importer believes it as far as the system vouches for it: a memfd, of that size, sealed so
 * that the size stays. */
#include "softcuda/api/vmm_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UUID_TEXT = 33, NEEDED_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

static void to_hex(char *text, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;

	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", from[i]);
}

bool soft_memory_name(const CUmemAllocationProp *prop, size_t bytes, char *buf,
		      size_t buf_bytes)
{
	unsigned char id[16];
	char id_text[UUID_TEXT], where[UUID_TEXT] = "0";
	char letter = 'h';
	CUuuid uuid;
	int n;

	if (getrandom(id, sizeof id, 0) != sizeof id)
		return false;
	to_hex(id_text, id, sizeof id);
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		letter = 'd';
		soft_device_uuid(&soft.device[prop->location.id], &uuid);
		to_hex(where, uuid.bytes, sizeof uuid.bytes);
	} else if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
		letter = 'n';
		snprintf(where, sizeof where, "%x", (unsigned)prop->location.id);
	}
	n = snprintf(buf, buf_bytes, "gpuload-vmm:1:%c:%s:%zx:%s", letter, where, bytes,
		     id_text);
	return n > 0 && (size_t)n < buf_bytes;
}

/* ---- reading it back -------------------------------------------------------------------- */

static bool find_device(const char *uuid_text, int *ordinal)
{
	char text[UUID_TEXT];
	CUuuid uuid;

	for (int i = 0; i < soft.n_devices; i++) {
		soft_device_uuid(&soft.device[i], &uuid);
		to_hex(text, uuid.bytes, sizeof uuid.bytes);
		if (!strcmp(text, uuid_text)) {
			*ordinal = i;
			return true;
		}
	}
	return false;
}

static CUresult parse_location(char letter, const char *where, CUmemLocation *out)
{
	char *end;
	unsigned long node;

	if (letter == 'd') {
		out->type = CU_MEM_LOCATION_TYPE_DEVICE;
		return find_device(where, &out->id)
			       ? CUDA_SUCCESS
			       : soft_refuse(
					 CUDA_ERROR_INVALID_DEVICE,
					 "import: the memory is of the device with UUID %s, "
					 "which "
					 "this process does not see (CUDA_VISIBLE_DEVICES?)",
					 where);
	}
	node = strtoul(where, &end, 16);
	if (letter != 'n' || *end || end == where || node > 0xffff)
		return soft_refuse(CUDA_ERROR_UNKNOWN,
				   "import: no location that can be shared");
	out->type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	out->id = (int)node;
	return CUDA_SUCCESS;
}

/* The name's parts, where fd is one of ours. */
static CUresult parse_name(int fd, size_t *bytes, CUmemLocation *location)
{
	char path[40], name[256], where[UUID_TEXT], id[UUID_TEXT], letter, rest;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name - 1);
	name[n < 0 ? 0 : n] = '\0';
	if (sscanf(name, "/memfd:gpuload-vmm:1:%c:%32[0-9a-f]:%zx:%32[0-9a-f] (deleted%c",
		   &letter, where, bytes, id, &rest) != 5 ||
	    rest != ')')
		return soft_refuse(
			CUDA_ERROR_UNKNOWN,
			"import: descriptor %d is \"%.60s\", not memory of cuMemCreate", fd,
			name);
	return parse_location(letter, where, location);
}

/* The file is what its name says, and stays so. */
static CUresult check_file(int fd, size_t bytes)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || seals < 0 ||
	    (seals & NEEDED_SEALS) != NEEDED_SEALS)
		return soft_refuse(CUDA_ERROR_UNKNOWN,
				   "import: descriptor %d is no sealed memory: it could shrink",
				   fd);
	if (!bytes || bytes % VMM_GRANULARITY || st.st_size < 0 || (size_t)st.st_size != bytes)
		return soft_refuse(CUDA_ERROR_UNKNOWN,
				   "import: descriptor %d says %zu bytes and has %lld", fd,
				   bytes, (long long)st.st_size);
	if ((mode & O_ACCMODE) != O_RDWR)
		return soft_refuse(CUDA_ERROR_UNKNOWN,
				   "import: descriptor %d is not read and write", fd);
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
	r = parse_name(fd, &m->bytes, &m->prop.location);
	if (!r)
		r = check_file(fd, m->bytes);
	if (r)
		goto free_m;
	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the caller's own stays the caller's */
	if (m->fd < 0) {
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY,
				"import: no file descriptor left (ulimit -n)");
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

EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out,
					       void *os_handle, CUmemAllocationHandleType type)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return soft_refuse(CUDA_ERROR_NOT_PERMITTED, "import: there is no fabric");
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "import: handle type %d; file descriptors (1) are had here",
				   (int)type);
	return import_fd((int)(intptr_t)os_handle, out);
}

EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
					     CUmemAllocationHandleType type,
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
	if (!m || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    m->prop.requestedHandleTypes != type)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"export: no such handle, or not made (requestedHandleTypes) "
				"for type %d",
				(int)type);
	else if ((fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY,
				"export: no file descriptor left (ulimit -n)");
	else
		*(int *)out = fd;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr address, size_t bytes,
					      CUmemRangeHandleType type,
					      unsigned long long flags)
{
	CUresult r = soft_check_initialised();

	(void)flags;
	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
			   "cuMemGetHandleForAddressRange: %zu bytes at %#llx: type %d is a "
			   "dma-buf, which "
			   "memory of the CPU is not exported as",
			   bytes, address, (int)type);
}
