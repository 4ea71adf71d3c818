/* memfd.c — memory of kind memfd: a sealed file in RAM without a name, which works on every Linux with a GPU.
 *
 *     memfd_create ─ ftruncate ─ mmap ─ mbind ─ fallocate ─ seal ─ cuMemHostRegister
 *
 * The seals make it safe for other processes to map the file: nobody, not even the owner, can shrink it, so no access causes SIGBUS. */
#include "memalloc/mem_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	NEEDED = F_SEAL_SHRINK | F_SEAL_GROW,
};

static gpul_status create_memfd(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err)
{
	gpul_status st;

	(void)desc;
	st = gpul_mem_round(m, gpul_mem_page_bytes(), err);
	if (st)
		return st;
	m->fd = memfd_create("gpuload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (m->fd < 0)
		return gpul_mem_sys_status(m, err, errno, "memfd_create", "");
	st = gpul_mem_file_fill(m, "", err);
	if (st)
		goto close_fd;
	if (fcntl(m->fd, F_ADD_SEALS, SEALS)) {
		st = gpul_mem_sys_status(m, err, errno, "F_ADD_SEALS", "");
		goto unmap;
	}
	st = gpul_mem_register(m, err);
	if (st)
		goto unmap;
	return GPUL_OK;
unmap:
	gpul_mem_file_unmap(m);
close_fd:
	close(m->fd);
	return st;
}

static gpul_status import_memfd(gpul_mem *m, const struct mem_source *from, gpul_error *err)
{
	gpul_status st;
	int seals;

	st = gpul_mem_accept_size(m, from->offer, gpul_mem_page_bytes(), err);
	if (st)
		return st;
	/* Check the seals before the size: without seals, the size can change at any time. */
	seals = fcntl(from->fd, F_GET_SEALS);
	if (seals >= 0 && (seals & NEEDED) != NEEDED)
		return gpul_fail(err, GPUL_EFORMAT, seals,
				 "the owner offered memfd memory whose file has no seal against %s, so the owner could remove "
				 "pages in use",
				 seals & F_SEAL_SHRINK ? "growing" : "shrinking");
	st = gpul_mem_file_check(m, from->fd, err);
	if (st)
		return st;
	if (seals < 0)
		return gpul_fail(err, GPUL_EFORMAT, errno, "the owner offered memfd memory, but its file cannot have seals");
	return gpul_mem_file_adopt(m, from->fd, err);
}

static void destroy_memfd(gpul_mem *m)
{
	gpul_mem_unregister(m);
	gpul_mem_file_unmap(m);
	if (m->fd >= 0)
		close(m->fd);
}

const struct mem_ops gpul_mem_memfd = {
	.on_host = true,
	.has_fd = true,
	.create = create_memfd,
	.import = import_memfd,
	.destroy = destroy_memfd,
};
