/* shm.c — memory of kind shm: a file in /dev/shm, mapped and registered.
 *
 * Without desc.shm_name the file never has a name (O_TMPFILE), so no file remains if the process is killed. A file with a name is
 * removed with the memory, but remains if the process is killed before. Unlike a memfd, the file cannot be sealed: each process
 * that can write the file can shrink it, and then SIGBUS kills any process that accesses the lost pages. So share it only among
 * processes that trust each other. */
#include "memalloc/mem_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static const char advice[] = "see df -h /dev/shm; in a container, docker run --shm-size";

/* For a tmpfs without O_TMPFILE: create a file with a random name, and remove the name immediately. */
static int open_unlinked(void)
{
	char name[64];
	uint64_t random[2];
	int fd;

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return -1;
	snprintf(name, sizeof name, "/gpuload-%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		shm_unlink(name);
	return fd;
}

static gpul_status open_nameless(gpul_mem *m, gpul_error *err)
{
	m->fd = open("/dev/shm", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (m->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		m->fd = open_unlinked();
	return m->fd < 0 ? gpul_mem_sys_status(m, err, errno, "cannot create a file in /dev/shm", advice) : GPUL_OK;
}

static gpul_status open_named(gpul_mem *m, const char *name, gpul_error *err)
{
	int failed;

	m->shm_name = strdup(name);
	if (!m->shm_name)
		return gpul_mem_sys_status(m, err, ENOMEM, "no memory for a copy of its name", "");
	m->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (m->fd >= 0)
		return GPUL_OK;
	failed = errno;
	free(m->shm_name);
	m->shm_name = NULL;
	if (failed == EEXIST)
		return gpul_fail(err, GPUL_ESYS, EEXIST,
				 "shm memory: %s already exists, because a process uses it, or was killed and left it there; if "
				 "no process uses it, remove it: rm /dev/shm/%s",
				 name, name + strspn(name, "/"));
	return gpul_mem_sys_status(m, err, failed, name, "a name must have exactly one slash, at its start");
}

static void close_file(gpul_mem *m)
{
	if (m->shm_name)
		shm_unlink(m->shm_name);
	free(m->shm_name);
	close(m->fd);
}

static gpul_status create_shm(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err)
{
	gpul_status st;

	st = gpul_mem_round(m, gpul_mem_page_bytes(), err);
	if (st)
		return st;
	st = desc->shm_name ? open_named(m, desc->shm_name, err) : open_nameless(m, err);
	if (st)
		return st;
	st = gpul_mem_file_fill(m, advice, err);
	if (st)
		goto close_it;
	st = gpul_mem_register(m, err);
	if (st)
		goto unmap;
	return GPUL_OK;
unmap:
	gpul_mem_file_unmap(m);
close_it:
	close_file(m);
	return st;
}

static gpul_status import_shm(gpul_mem *m, const struct mem_source *from, gpul_error *err)
{
	gpul_status st;

	st = gpul_mem_accept_size(m, from->offer, gpul_mem_page_bytes(), err);
	if (st)
		return st;
	st = gpul_mem_file_check(m, from->fd, err);
	return st ? st : gpul_mem_file_adopt(m, from->fd, err);
}

static void destroy_shm(gpul_mem *m)
{
	gpul_mem_unregister(m);
	gpul_mem_file_unmap(m);
	if (m->fd >= 0)
		close_file(m);
}

const struct mem_ops gpul_mem_shm = {
	.on_host = true,
	.has_fd = true,
	.create = create_shm,
	.import = import_shm,
	.destroy = destroy_shm,
};
