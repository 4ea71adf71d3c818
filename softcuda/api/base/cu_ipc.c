/* cu_ipc.c — creates a file that other processes can open, and opens the file of another process by its handle. */
#include "softcuda/api/base/cu_ipc_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[4] = { 'G', 'P', 'U', 'i' };

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, NAME_BYTES = 80 };

/* Write the file's name to out, for example "gpuload-ipc-m-4096-0123...". */
static void name_of(enum ipc_kind kind, uint64_t bytes, const unsigned char id[16], char out[NAME_BYTES])
{
	int n = snprintf(out, NAME_BYTES, "gpuload-ipc-%c-%llu-", (char)kind, (unsigned long long)bytes);

	for (int i = 0; i < 16; i++)
		n += snprintf(out + n, (size_t)(NAME_BYTES - n), "%02x", id[i]);
}

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

CUresult soft_ipc_create(enum ipc_kind kind, size_t bytes, struct ipc_file *out)
{
	struct ipc_file f = { .bytes = bytes };
	char name[NAME_BYTES];

	if (getrandom(f.id, sizeof f.id, 0) != sizeof f.id)
		return CUDA_ERROR_OPERATING_SYSTEM;
	name_of(kind, f.bytes, f.id, name);
	f.fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f.fd < 0)
		return soft_refuse(errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM, "memfd_create: %s",
				   strerror(errno));
	if (ftruncate(f.fd, (off_t)whole_pages(bytes)) || fcntl(f.fd, F_ADD_SEALS, SEALS)) {
		close(f.fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = f;
	return CUDA_SUCCESS;
}

void soft_ipc_close(struct ipc_file *f)
{
	close(f->fd);
	f->fd = -1;
}

/* Return the start time of the process: pid and start time together identify a process until the machine restarts.
 * Returns 0 when the process does not exist or /proc is not mounted. */
static uint64_t process_start(int pid)
{
	char path[32], text[1024], *after_name;
	unsigned long long started = 0;
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = '\0';
	after_name = strrchr(text, ')'); /* the name may contain blanks and parentheses */
	/* In /proc/PID/stat, the name is field 2, and the start time is field 22: proc(5). */
	if (!after_name || sscanf(after_name + 1,
				  " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
				  " %llu",
				  &started) != 1)
		return 0;
	return started;
}

/* Return the start time of this process, which is cached, and read again after fork() in the child.  The caller holds the lock. */
static uint64_t own_start(void)
{
	static pid_t pid;
	static uint64_t started;

	if (pid != getpid()) {
		pid = getpid();
		started = process_start(pid);
	}
	return started;
}

CUresult soft_ipc_describe(enum ipc_kind kind, const struct ipc_file *f, const struct device *device, struct ipc_handle *out)
{
	struct ipc_handle h = {
		.kind = (uint8_t)kind,
		.pid = getpid(),
		.fd = f->fd,
		.started = own_start(),
		.bytes = f->bytes,
	};
	CUuuid uuid;

	if (!h.started)
		return soft_refuse(CUDA_ERROR_OPERATING_SYSTEM, "cuIpc: /proc is not mounted, but memory is shared through it");
	memcpy(h.magic, magic, sizeof h.magic);
	memcpy(h.id, f->id, sizeof h.id);
	soft_device_uuid(device, &uuid);
	memcpy(h.uuid, uuid.bytes, sizeof h.uuid);
	*out = h;
	return CUDA_SUCCESS;
}

bool soft_ipc_is_handle(enum ipc_kind kind, const struct ipc_handle *h)
{
	static const uint8_t zero[3];

	return !memcmp(h->magic, magic, sizeof magic) && h->kind == kind && !memcmp(h->zero, zero, sizeof zero) && h->pid > 0 &&
	       h->fd >= 0 && h->bytes && h->bytes <= soft.memory_bytes;
}

bool soft_ipc_is_own(const struct ipc_handle *h)
{
	return h->pid == getpid() && h->started == own_start();
}

/* Returns true if the open file has the name that the handle requires.  fd was opened with O_PATH, so it may be a file of any kind. */
static bool has_name(int fd, enum ipc_kind kind, const struct ipc_handle *h)
{
	char path[32], name[NAME_BYTES], want[NAME_BYTES + 24], have[NAME_BYTES + 24];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, have, sizeof have - 1);
	if (n < 0)
		return false;
	have[n] = '\0';
	name_of(kind, h->bytes, h->id, name);
	snprintf(want, sizeof want, "/memfd:%s (deleted)", name);
	return !strcmp(have, want);
}

/* Check owner, size and seals, too: another process of this user can create a file with this name, and shrink it later (SIGBUS). */
static bool is_shared_file(int fd, const struct ipc_handle *h)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == whole_pages(h->bytes) && st.st_uid == geteuid();
}

static int refuse_handle(int fd, CUresult r, const char *fmt, int pid)
{
	soft_refuse(r, fmt, pid);
	if (fd >= 0)
		close(fd);
	return -1;
}

int soft_ipc_open(enum ipc_kind kind, const struct ipc_handle *h)
{
	CUresult r = kind == IPC_MEMORY ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_MAP_FAILED;
	char path[48];
	int found, fd;

	if (process_start(h->pid) != h->started)
		return refuse_handle(-1, r, "cuIpc: process %d, the owner of the handle, has exited", h->pid);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->fd);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0 && errno != ENOENT)
		return refuse_handle(-1, r,
				     "cuIpc: the files of process %d, the owner of the handle, cannot "
				     "be opened: it must run as the same user",
				     h->pid);
	if (found < 0 || !has_name(found, kind, h))
		return refuse_handle(found, r, "cuIpc: process %d has freed the memory or event of the handle", h->pid);
	snprintf(path, sizeof path, "/proc/self/fd/%d", found);
	fd = open(path, O_RDWR | O_CLOEXEC);
	close(found);
	if (fd < 0 || !is_shared_file(fd, h))
		return refuse_handle(fd, r, "cuIpc: the file of process %d does not match the handle", h->pid);
	return fd;
}
