/* host_file.c — the file in RAM (tmpfs) of the kinds memfd and shm, mapped into this process and registered with the driver. */
#include "memalloc/mem_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* added in Linux 5.14 */
#endif

/* A signal makes fallocate() start again, so with a periodic timer one large call might never end: allocate in steps of this size. */
enum { ALLOCATE_STEP = 64 << 20 };

static int allocate_pages(int fd, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		size_t n = bytes - at < ALLOCATE_STEP ? bytes - at : ALLOCATE_STEP;

		if (fallocate(fd, 0, (off_t)at, (off_t)n) == 0)
			at += n;
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* Map all pages in one call, which is three times faster than a page fault for each. */
static void populate_pages(void *memory, size_t bytes)
{
	volatile unsigned char *p = memory;

	if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
		return;
	for (size_t at = 0; at < bytes; at += gpul_mem_page_bytes())
		p[at] = p[at];
}

/* Check the file size limit of the process: a larger file would raise SIGXFSZ, which ends the process. */
static gpul_status check_file_size(const gpul_mem *m, gpul_error *err)
{
	const size_t bytes = m->about.mapped_bytes;
	struct rlimit files = { RLIM_INFINITY, RLIM_INFINITY };

	(void)getrlimit(RLIMIT_FSIZE, &files);
	if (files.rlim_cur != RLIM_INFINITY && bytes > files.rlim_cur)
		return gpul_mem_sys_status(m, err, EFBIG, "ftruncate", "ulimit -f");
	return GPUL_OK;
}

static gpul_status map_file(gpul_mem *m, int fd, gpul_error *err)
{
	int rights = m->about.read_only ? PROT_READ : PROT_READ | PROT_WRITE;
	void *p = mmap(NULL, m->about.mapped_bytes, rights, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return gpul_mem_sys_status(m, err, errno, "mmap",
					   errno == EPERM ? "the file of the memory is sealed against writing: attach read-only" : "");
	m->cpu = p;
	return GPUL_OK;
}

gpul_status gpul_mem_file_fill(gpul_mem *m, const char *advice, gpul_error *err)
{
	const size_t bytes = m->about.mapped_bytes;
	gpul_status st = check_file_size(m, err);
	int failed;

	if (st)
		return st;
	if (ftruncate(m->fd, (off_t)bytes))
		return gpul_mem_sys_status(m, err, errno, "ftruncate", advice);
	st = map_file(m, m->fd, err);
	if (st)
		return st;
	/* mbind() sets the NUMA node of the file, so that fallocate() allocates its pages there. */
	gpul_mem_bind(m, m->cpu, bytes);
	failed = allocate_pages(m->fd, bytes);
	if (failed) {
		gpul_mem_file_unmap(m);
		return gpul_mem_sys_status(m, err, failed, "fallocate", advice);
	}
	populate_pages(m->cpu, bytes);
	return GPUL_OK;
}

/* ---- imported files -------------------------------------------------------------- */

static gpul_status refuse_offer(const gpul_mem *m, gpul_error *err, const char *what)
{
	return gpul_fail(err, GPUL_EFORMAT, 0, "the owner offered %s memory, but %s", gpul_mem_kind_name(m->about.kind), what);
}

gpul_status gpul_mem_file_check(const gpul_mem *m, int fd, gpul_error *err)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat is;
	struct statfs where;

	if (flags < 0 || fstat(fd, &is) || fstatfs(fd, &where))
		return refuse_offer(m, err, "sent no open file descriptor");
	if (!S_ISREG(is.st_mode))
		return refuse_offer(m, err, "the descriptor is not a regular file");
	/* Refuse files on a disk, and files of huge pages: their pages may not be allocated yet, so an access could fail. */
	if (where.f_type != TMPFS_MAGIC)
		return refuse_offer(m, err, "its file is not in RAM (on tmpfs)");
	if (flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		return refuse_offer(m, err, "the descriptor cannot be read");
	if (!m->about.read_only && (flags & O_ACCMODE) != O_RDWR)
		return refuse_offer(m, err, "the descriptor is open for reading only: attach read-only");
	if (is.st_size < 0 || (size_t)is.st_size != m->about.mapped_bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the owner offered %s memory of %zu bytes, but its file has %lld bytes",
				 gpul_mem_kind_name(m->about.kind), m->about.mapped_bytes, (long long)is.st_size);
	return GPUL_OK;
}

void gpul_mem_file_unmap(gpul_mem *m)
{
	munmap(m->cpu, m->about.mapped_bytes);
	m->cpu = NULL;
}

/* ---- registration with the driver ------------------------------------------------ */

/* Check that every device can register read-only pages for reading, which some devices do not support. */
static gpul_status check_read_only(gpul_mem *m, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < m->about.n_devices; i++) {
		int can = 0;

		st = mem_cu(m, err, cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, m->handles[i]));
		if (!st && !can)
			st = gpul_fail(err, GPUL_EUNSUPPORTED, m->about.devices[i],
				       "%s memory: device %d cannot map read-only pages "
				       "(CU_MEMHOSTREGISTER_READ_ONLY): attach for writing",
				       gpul_mem_kind_name(m->about.kind), m->about.devices[i]);
	}
	return st;
}

gpul_status gpul_mem_register(gpul_mem *m, gpul_error *err)
{
	unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
	gpul_status st = m->about.read_only ? check_read_only(m, err) : GPUL_OK;

	if (st)
		return st;
	if (m->about.read_only)
		flags |= CU_MEMHOSTREGISTER_READ_ONLY;
	st = mem_cu(m, err, cuMemHostRegister(m->cpu, m->about.mapped_bytes, flags));
	if (st)
		return st;
	st = mem_cu(m, err, cuMemHostGetDevicePointer(&m->gpu, m->cpu, 0));
	if (st)
		gpul_mem_unregister(m);
	return st;
}

void gpul_mem_unregister(gpul_mem *m)
{
	(void)m->drv->cuMemHostUnregister(m->cpu);
}

gpul_status gpul_mem_file_adopt(gpul_mem *m, int fd, gpul_error *err)
{
	gpul_status st = map_file(m, fd, err);

	if (st)
		return st;
	st = gpul_mem_register(m, err);
	if (st)
		gpul_mem_file_unmap(m);
	return st;
}
