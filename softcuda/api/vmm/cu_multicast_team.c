/* cu_multicast_team.c — the memfd of a multicast object, which processes share, and this process's mappings of bound memory ("copies").
 *
 * Nothing in the memfd is trusted, because other processes can write to it: a count is compared with its limit, and memory of another
 * process must be a sealed memfd of this driver that is large enough. */
#include "softcuda/api/vmm/cu_multicast_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
static const char team_name[] = "gpuload-multicast:2";

/* ---- create, open, free ------------------------------------------------------------------ */

static bool name_begins(int fd, const char *wanted)
{
	char path[40], name[256];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name - 1);
	name[n < 0 ? 0 : n] = '\0';
	return !strncmp(name, "/memfd:", 7) && !strncmp(name + 7, wanted, strlen(wanted));
}

bool soft_is_team_file(int fd)
{
	return name_begins(fd, team_name);
}

static bool find_copies(gpul_exec_team *team, uint64_t offset, gpul_exec_copies *out, char *why, size_t why_bytes);

static CUresult map_team(int fd, struct multicast **out)
{
	struct multicast *t = calloc(1, sizeof *t);

	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	t->shared = mmap(NULL, sizeof *t->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (t->shared == MAP_FAILED) {
		free(t);
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "a multicast object cannot be mapped: %s", strerror(errno));
	}
	t->team.find_copies = find_copies;
	pthread_mutex_init(&t->lock, NULL);
	t->seen = UINT64_MAX;
	*out = t;
	return CUDA_SUCCESS;
}

CUresult soft_team_create(const CUmulticastObjectProp *prop, struct multicast **out, int *out_fd)
{
	int fd = memfd_create(team_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CUresult r;

	if (fd < 0)
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMulticastCreate: no file descriptor: %s (ulimit -n)", strerror(errno));
	if (ftruncate(fd, sizeof(struct shared_team)) || fcntl(fd, F_ADD_SEALS, SEALS))
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMulticastCreate: %s", strerror(errno));
	else
		r = map_team(fd, out);
	if (r) {
		close(fd);
		return r;
	}
	(*out)->shared->n_devices = prop->numDevices;
	(*out)->shared->bytes = prop->size;
	(*out)->is_shareable = prop->handleTypes != 0;
	*out_fd = fd;
	return CUDA_SUCCESS;
}

CUresult soft_team_open(int fd, struct multicast **out)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	struct multicast *t;
	CUresult r;

	if (fstat(fd, &st) || st.st_size != sizeof *t->shared || seals < 0 || (seals & SEALS) != SEALS)
		return soft_refuse(CUDA_ERROR_UNKNOWN, "import: descriptor %d is not a multicast object of this driver", fd);
	r = map_team(fd, &t);
	if (r)
		return r;
	t->is_shareable = true;
	if (t->shared->n_devices && t->shared->n_devices <= GPUL_EXEC_MAX_DEVICES && t->shared->bytes &&
	    t->shared->bytes % VMM_GRANULARITY == 0) {
		*out = t;
		return CUDA_SUCCESS;
	}
	soft_team_free(t);
	return soft_refuse(CUDA_ERROR_UNKNOWN, "import: descriptor %d is a damaged multicast object", fd);
}

static void free_row(struct multicast *t, uint32_t row)
{
	atomic_store(&t->shared->binding[row].state, ROW_FREE);
	atomic_fetch_add(&t->shared->changes, 1);
}

void soft_team_free(struct multicast *t)
{
	for (struct own_binding *b = t->own, *next; b; b = next) {
		next = b->next;
		free_row(t, b->row);
		soft_memory_unref(b->memory);
		free(b);
	}
	for (struct copy *c = t->copies; c; c = c->next)
		c->is_bound = false;
	soft_team_drop_copies(t);
	munmap(t->shared, sizeof *t->shared);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- devices ------------------------------------------------------------------------------- */

int soft_team_device(const struct multicast *t, const struct device *d)
{
	CUuuid uuid;

	soft_device_uuid(d, &uuid);
	for (uint32_t k = 0; k < t->shared->n_devices && k < GPUL_EXEC_MAX_DEVICES; k++)
		if (atomic_load(&t->shared->device[k].state) == ROW_READY &&
		    !memcmp(t->shared->device[k].uuid, uuid.bytes, sizeof uuid.bytes))
			return (int)k;
	return -1;
}

bool soft_team_is_complete(const struct multicast *t)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < GPUL_EXEC_MAX_DEVICES; k++)
		n += atomic_load(&t->shared->device[k].state) == ROW_READY;
	return n >= t->shared->n_devices;
}

void soft_multicast_wait(struct memory *m)
{
	static const struct timespec poll = { .tv_nsec = 200000 };

	if (!m->multicast || soft_team_is_complete(m->multicast))
		return;
	m->refs++;
	soft_unlock();
	while (!soft_team_is_complete(m->multicast))
		nanosleep(&poll, NULL);
	soft_lock();
	soft_memory_unref(m);
}

/* ---- bindings ------------------------------------------------------------------------------ */

static bool rows_overlap(const struct shared_binding *a, const struct shared_binding *b)
{
	return a->device == b->device && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Return the inode of this process's PID namespace; 0: unknown. */
static uint64_t own_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

CUresult soft_team_bind(struct multicast *t, uint32_t device, struct memory *memory, const struct shared_binding *wanted)
{
	struct own_binding *own = malloc(sizeof *own);
	struct shared_binding b = *wanted;
	struct stat st;
	uint32_t row;

	if (!own || fstat(memory->fd, &st)) {
		free(own);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	b.device = device;
	b.pid = getpid();
	b.pids = own_pids();
	b.fd = memory->fd;
	b.inode = st.st_ino;
	for (row = 0; row < MOST_BINDINGS; row++) {
		struct shared_binding *at = &t->shared->binding[row];

		if (atomic_load(&at->state) == ROW_READY && rows_overlap(at, &b)) {
			free(own);
			return soft_refuse(CUDA_ERROR_INVALID_VALUE,
					   "cuMulticastBind: the device has memory at offset %llu already: call cuMulticastUnbind",
					   (unsigned long long)b.offset);
		}
	}
	for (row = 0; row < MOST_BINDINGS; row++) {
		struct shared_binding *at = &t->shared->binding[row];
		uint32_t is_free = ROW_FREE;

		if (!atomic_compare_exchange_strong(&at->state, &is_free, ROW_TAKEN))
			continue;
		at->device = b.device, at->pid = b.pid, at->pids = b.pids, at->fd = b.fd, at->inode = b.inode;
		at->offset = b.offset, at->memory_offset = b.memory_offset, at->bytes = b.bytes;
		memory->refs++;
		*own = (struct own_binding){ .next = t->own, .row = row, .memory = memory };
		t->own = own;
		atomic_store(&at->state, ROW_READY);
		atomic_fetch_add(&t->shared->changes, 1);
		return CUDA_SUCCESS;
	}
	free(own);
	return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMulticastBind: the object has %d bindings already", MOST_BINDINGS);
}

CUresult soft_team_unbind(struct multicast *t, uint32_t device, uint64_t offset, uint64_t bytes)
{
	for (uint32_t row = 0; row < MOST_BINDINGS; row++) {
		const struct shared_binding *b = &t->shared->binding[row];

		if (atomic_load(&b->state) != ROW_READY || b->device != device || b->offset != offset || b->bytes != bytes)
			continue;
		free_row(t, row);
		for (struct own_binding **at = &t->own; *at; at = &(*at)->next) {
			struct own_binding *own = *at;

			if (own->row != row)
				continue;
			*at = own->next;
			soft_memory_unref(own->memory);
			free(own);
			break;
		}
		return CUDA_SUCCESS;
	}
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMulticastUnbind: the device has no binding of %llu bytes at offset %llu",
			   (unsigned long long)bytes, (unsigned long long)offset);
}

/* ---- the copies of this process -------------------------------------------------------------- */

void soft_team_drop_copies(struct multicast *t)
{
	pthread_mutex_lock(&t->lock);
	for (struct copy **at = &t->copies; *at;) {
		struct copy *c = *at;

		if (c->is_bound) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		if (c->at)
			munmap(c->at, c->bytes);
		free(c);
	}
	pthread_mutex_unlock(&t->lock);
}

/* Open the memory of a binding; -1: it no longer exists, or it is not memory of this driver. */
static int open_memory(const struct shared_binding *b)
{
	char path[48];
	struct stat st;
	int seals, fd;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", b->pid, b->fd);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -1;
	seals = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == b->inode && name_begins(fd, "gpuload-" MEMORY_OF_CREATE ":");
	close(fd);
	fd = seals ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return -1;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) && st.st_ino == b->inode && b->bytes <= (uint64_t)st.st_size &&
	    b->memory_offset <= (uint64_t)st.st_size - b->bytes)
		return fd;
	close(fd);
	return -1;
}

/* Returns true if the process that bound the memory has exited.  (A process that only closes the descriptor frees the row first.) */
static bool has_exited(const struct shared_binding *b)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", b->pid, b->fd);
	return b->pids && b->pids == own_pids() && lstat(path, &st) && errno == ENOENT;
}

static bool is_copy_of(const struct copy *c, const struct shared_binding *b)
{
	return c->device == b->device && c->inode == b->inode && c->offset == b->offset && c->memory_offset == b->memory_offset &&
	       c->bytes == b->bytes;
}

static bool is_valid(const struct multicast *t, const struct shared_binding *b)
{
	return b->device < t->shared->n_devices && b->device < GPUL_EXEC_MAX_DEVICES && b->bytes && b->bytes % VMM_GRANULARITY == 0 &&
	       b->offset % VMM_GRANULARITY == 0 && b->memory_offset % VMM_GRANULARITY == 0 && b->bytes <= t->shared->bytes &&
	       b->offset <= t->shared->bytes - b->bytes;
}

/* Find the copy of a binding in this process; gone: find a copy whose memory was lost instead. */
static struct copy *find_copy(const struct multicast *t, const struct shared_binding *b, bool gone)
{
	for (struct copy *c = t->copies; c; c = c->next)
		if (is_copy_of(c, b) && gone == !c->at)
			return c;
	return NULL;
}

/* Map the memory of a binding.  Returns false if it cannot be opened; *at NULL: it was lost, because its process has exited. */
static bool map_memory(const struct shared_binding *b, uint8_t **at)
{
	const int fd = open_memory(b);

	*at = NULL;
	if (fd < 0)
		return has_exited(b);
	*at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)b->memory_offset);
	close(fd);
	return *at != MAP_FAILED;
}

static void map_binding(struct multicast *t, const struct shared_binding *b)
{
	struct copy *c = find_copy(t, b, false);
	uint8_t *at = NULL;
	bool ok = true;

	if (!c) {
		ok = map_memory(b, &at);
		c = ok && !at ? find_copy(t, b, true) : NULL;
	}
	if (c) {
		c->is_bound = true;
		return;
	}
	c = ok ? calloc(1, sizeof *c) : NULL;
	if (!c) {
		if (ok && at)
			munmap(at, b->bytes);
		snprintf(t->failed, sizeof t->failed,
			 "memory that process %d has bound cannot be opened: it has exited, or runs as another user", b->pid);
		return;
	}
	c->next = t->copies;
	c->at = at;
	c->device = b->device;
	c->inode = b->inode;
	c->offset = b->offset;
	c->memory_offset = b->memory_offset;
	c->bytes = b->bytes;
	c->is_bound = true;
	t->copies = c;
}

/* If the bindings have changed since the last call, map all of them.  The caller holds t->lock. */
static void refresh_copies(struct multicast *t)
{
	uint64_t changes;

	while ((changes = atomic_load(&t->shared->changes)) != t->seen) {
		*t->failed = '\0';
		for (struct copy *c = t->copies; c; c = c->next)
			c->is_bound = false;
		for (uint32_t row = 0; row < MOST_BINDINGS; row++) {
			struct shared_binding *b = &t->shared->binding[row];
			struct shared_binding read = { .state = atomic_load(&b->state) };

			if (read.state != ROW_READY)
				continue;
			read.device = b->device, read.pid = b->pid, read.pids = b->pids, read.fd = b->fd, read.inode = b->inode;
			read.offset = b->offset, read.memory_offset = b->memory_offset, read.bytes = b->bytes;
			if (atomic_load(&b->state) == ROW_READY && is_valid(t, &read))
				map_binding(t, &read);
		}
		t->seen = changes;
	}
}

static bool find_copies(gpul_exec_team *team, uint64_t offset, gpul_exec_copies *out, char *why, size_t why_bytes)
{
	struct multicast *t = (struct multicast *)team;
	gpul_exec_copies found = { .begin = 0, .end = UINT64_MAX, .changes = &t->shared->changes };
	const struct copy *of[GPUL_EXEC_MAX_DEVICES] = { NULL };
	const unsigned n_devices = t->shared->n_devices;
	bool all = n_devices <= GPUL_EXEC_MAX_DEVICES;

	pthread_mutex_lock(&t->lock);
	refresh_copies(t);
	found.seen = t->seen;
	for (const struct copy *c = t->copies; c; c = c->next)
		if (c->is_bound && offset - c->offset < c->bytes) {
			of[c->device] = c;
			found.begin = c->offset > found.begin ? c->offset : found.begin;
			found.end = c->offset + c->bytes < found.end ? c->offset + c->bytes : found.end;
		}
	for (unsigned k = 0; all && k < n_devices; k++) {
		all = of[k];
		if (all && of[k]->at) {
			found.at[found.n] = of[k]->at + (found.begin - of[k]->offset);
			found.memory_id[found.n] = of[k]->inode;
			found.memory_at[found.n++] = of[k]->memory_offset + (found.begin - of[k]->offset);
		} else if (all) {
			found.n_gone++;
		} else {
			snprintf(why, why_bytes, "is at offset 0x%llx of a multicast object, where device %u of its team has no memory%s%s",
				 (unsigned long long)offset, k, *t->failed ? ": " : "", t->failed);
		}
	}
	pthread_mutex_unlock(&t->lock);
	if (all)
		*out = found;
	return all;
}
