/* cu_multicast_copies.c — maps the memory that is bound to a multicast object into this process.
 *
 * A binding of another process is not trusted: its memory must be a sealed memfd of this driver that is large enough. */
#include "softcuda/api/vmm/cu_multicast_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool soft_memfd_name_begins(int fd, const char *wanted)
{
	char path[40], name[256];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name - 1);
	name[n < 0 ? 0 : n] = '\0';
	return !strncmp(name, "/memfd:", 7) && !strncmp(name + 7, wanted, strlen(wanted));
}

uint64_t soft_own_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

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

/* Open the memfd of a binding.  -1: errno is the reason; ENOENT: it no longer exists, or is another file. */
static int open_memory(const struct shared_binding *b)
{
	char path[48];
	struct stat st;
	int seals, fd;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", b->pid, b->fd);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -1;
	seals = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == b->inode &&
		soft_memfd_name_begins(fd, "gpuload-" MEMORY_OF_CREATE ":");
	close(fd);
	errno = ENOENT;
	fd = seals ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return -1;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && (seals & MEMFD_SEALS) == MEMFD_SEALS && !fstat(fd, &st) && st.st_ino == b->inode &&
	    b->bytes <= (uint64_t)st.st_size && b->memory_offset <= (uint64_t)st.st_size - b->bytes)
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

/* Returns true if the process that bound the memory has ended.  A process that closes the descriptor removes the binding first. */
static bool has_exited(const struct shared_binding *b)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", b->pid, b->fd);
	return b->pids && b->pids == soft_own_pids() && lstat(path, &st) && errno == ENOENT;
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

/* Find the mapping of a binding; gone: find the entry of a binding whose memory no longer exists, so that it has no mapping. */
static struct copy *find_copy(const struct multicast *t, const struct shared_binding *b, bool gone)
{
	for (struct copy *c = t->copies; c; c = c->next)
		if (is_copy_of(c, b) && gone == !c->at)
			return c;
	return NULL;
}

/* Returns true if descriptors or memory are exhausted, so that a later attempt can succeed. */
static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* Map the memory of a binding.  Returns 0, or the errno of the failure.  *at NULL without a failure: the memory no longer exists. */
static int map_memory(const struct shared_binding *b, uint8_t **at)
{
	const int fd = open_memory(b);
	int error = fd < 0 ? errno : 0;
	void *pages;

	*at = NULL;
	if (error)
		return !is_shortage(error) && has_exited(b) ? 0 : error;
	pages = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)b->memory_offset);
	error = pages == MAP_FAILED ? errno : 0;
	close(fd);
	if (!error)
		*at = pages;
	return error;
}

/* Record why the memory of a binding could not be mapped. */
static void note_failure(struct multicast *t, const struct shared_binding *b, int error)
{
	t->is_short |= is_shortage(error);
	if (error == EMFILE || error == ENFILE)
		snprintf(t->failed, sizeof t->failed, "no file descriptor is left to map the memory that process %d has bound (ulimit -n)",
			 b->pid);
	else if (error == ENOMEM)
		snprintf(t->failed, sizeof t->failed, "the memory that process %d has bound cannot be mapped: %s", b->pid, strerror(error));
	else
		snprintf(t->failed, sizeof t->failed,
			 "memory that process %d has bound cannot be opened: it has exited, or runs as another user", b->pid);
}

static void map_binding(struct multicast *t, const struct shared_binding *b)
{
	struct copy *c = find_copy(t, b, false);
	uint8_t *at = NULL;
	int error = 0;

	if (!c) {
		error = map_memory(b, &at);
		c = !error && !at ? find_copy(t, b, true) : NULL;
	}
	if (c) {
		c->is_bound = true;
		return;
	}
	c = error ? NULL : calloc(1, sizeof *c);
	if (!c) {
		if (at)
			munmap(at, b->bytes);
		note_failure(t, b, error ? error : ENOMEM);
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

static void map_bindings(struct multicast *t)
{
	*t->failed = '\0';
	t->is_short = false;
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
}

/* Map the memory of all bindings; return immediately if all are mapped, and no binding has changed.  The caller holds t->lock. */
static void refresh_copies(struct multicast *t)
{
	uint64_t changes = atomic_load(&t->shared->changes);

	if (changes == t->seen && !t->is_short)
		return;
	do {
		map_bindings(t);
		t->seen = changes;
		changes = atomic_load(&t->shared->changes);
	} while (changes != t->seen);
}

bool soft_team_map(struct multicast *t, char *why, size_t why_bytes)
{
	bool is_short;

	pthread_mutex_lock(&t->lock);
	refresh_copies(t);
	is_short = t->is_short;
	if (is_short && why)
		snprintf(why, why_bytes, "%s", t->failed);
	pthread_mutex_unlock(&t->lock);
	return !is_short;
}

/* ---- the shareable objects of this process --------------------------------------------------- */

static struct multicast *teams;

static void map_teams(void)
{
	for (struct multicast *t = teams; t; t = t->next)
		soft_team_map(t, NULL, 0);
}

void soft_teams_add(struct multicast *t)
{
	t->next = teams;
	teams = t;
	soft.before_work = map_teams;
}

void soft_teams_remove(struct multicast *t)
{
	for (struct multicast **at = &teams; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			return;
		}
}

/* ---- called by the interpreter --------------------------------------------------------------- */

bool soft_team_find_copies(gpul_exec_team *team, uint64_t offset, gpul_exec_copies *out, char *why, size_t why_bytes)
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
