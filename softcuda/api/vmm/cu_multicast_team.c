/* cu_multicast_team.c — the memfd of a multicast object, which processes share: its devices and bindings.
 *
 * Other processes can write to the memfd, so its contents are checked before use, for example counts against their limits. */
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

static const char team_name[] = "gpuload-multicast:2";

/* ---- create, open, free ------------------------------------------------------------------ */

bool soft_is_team_file(int fd)
{
	return soft_memfd_name_begins(fd, team_name);
}

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
	t->team.find_copies = soft_team_find_copies;
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
	if (ftruncate(fd, sizeof(struct shared_team)) || fcntl(fd, F_ADD_SEALS, MEMFD_SEALS))
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

	if (fstat(fd, &st) || st.st_size != sizeof *t->shared || seals < 0 || (seals & MEMFD_SEALS) != MEMFD_SEALS)
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
	b.pids = soft_own_pids();
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
