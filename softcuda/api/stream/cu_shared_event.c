/* cu_shared_event.c — the state of an event that several processes record and wait for.
 *
 *     one page, mapped by every process that has the event
 *
 *              63          32 31           0
 *             ┌──────────────┬──────────────┐
 *     newest  │ ticket       │ slot         │  number of the newest record, and the slot of its process
 *             ├──────────────┼──────────────┤
 *     ended   │ failed       │ ended        │  the newest ticket that has ended: a futex
 *             └──────────────┴──────────────┘
 *
 * Each record gets the next ticket.  When the stream arrives at the record, the process writes the ticket to `ended`
 * and wakes the threads that wait for this ticket or a lower one.  A process that is killed never does so.
 * Therefore each process that has the event holds a lock on the byte `slot` of the file, which the kernel drops when
 * the process ends: a waiter that finds no lock on the recorder's slot stops waiting.
 *
 * Source: fcntl(2), open file description locks; futex(2). */
#include "softcuda/api/stream/cu_event_internal.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct page {
	_Atomic uint64_t newest;
	_Atomic uint32_t ended, failed;
	_Atomic uint32_t n_slots;
};

struct shared_event {
	struct ipc_file file;
	struct page *page;
	uint32_t slot;
	bool is_own;
};

/* interval at which a waiting thread checks whether the recording process was killed; in milliseconds */
enum { POLL_MS = 20 };

const size_t soft_shared_event_bytes = sizeof(struct page);

static uint32_t ticket_of(uint64_t newest)
{
	return (uint32_t)(newest >> 32);
}

/* Returns true if a >= b, for tickets that wrap around after 2^32. */
static bool is_not_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) >= 0;
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static struct flock slot_lock(uint32_t slot)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1 };
}

CUresult soft_shared_event_attach(const struct ipc_file *file, bool is_own, struct shared_event **out)
{
	struct shared_event *s = calloc(1, sizeof *s);
	void *page;
	struct flock lock;

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	page = mmap(NULL, sizeof *s->page, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (page == MAP_FAILED) {
		free(s);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*s = (struct shared_event){ .file = *file, .page = page, .is_own = is_own };
	s->slot = atomic_fetch_add(&s->page->n_slots, 1) + 1;
	lock = slot_lock(s->slot);
	if (fcntl(file->fd, F_OFD_SETLK, &lock)) {
		munmap(page, sizeof *s->page);
		free(s);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*out = s;
	return CUDA_SUCCESS;
}

void soft_shared_event_close(struct shared_event *s)
{
	if (!s)
		return;
	munmap(s->page, sizeof *s->page);
	soft_ipc_close(&s->file); /* also releases the lock on the slot */
	free(s);
}

const struct ipc_file *soft_shared_event_file(const struct shared_event *s)
{
	return s->is_own ? &s->file : NULL;
}

/* ---- recording -------------------------------------------------------------------------- */

uint32_t soft_shared_event_draw(struct shared_event *s)
{
	uint64_t newest = atomic_load(&s->page->newest), drawn;

	do
		drawn = (uint64_t)(ticket_of(newest) + 1) << 32 | s->slot;
	while (!atomic_compare_exchange_weak(&s->page->newest, &newest, drawn));
	return ticket_of(drawn);
}

void soft_shared_event_end(struct shared_event *s, uint32_t ticket, bool failed)
{
	struct page *p = s->page;
	uint32_t ended = atomic_load(&p->ended);

	if (failed)
		atomic_store(&p->failed, ticket);
	while (!is_not_before(ended, ticket))
		if (atomic_compare_exchange_weak(&p->ended, &ended, ticket))
			break;
	futex(&p->ended, FUTEX_WAKE, INT32_MAX, NULL);
}

/* ---- waiting ---------------------------------------------------------------------------- */

bool soft_shared_event_is_remote(const struct shared_event *s)
{
	return s && (uint32_t)atomic_load(&s->page->newest) != s->slot;
}

uint64_t soft_shared_event_newest(const struct shared_event *s)
{
	return atomic_load(&s->page->newest);
}

/* Returns true if the process with this slot still has the event open.  fcntl() reports only locks of other processes. */
static bool is_alive(const struct shared_event *s, uint32_t slot)
{
	struct flock lock = slot_lock(slot);

	return slot == s->slot || fcntl(s->file.fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

CUresult soft_shared_event_state(const struct shared_event *s, uint64_t newest)
{
	struct page *p = s->page;
	uint32_t ticket = ticket_of(newest);
	bool alive = is_not_before(atomic_load(&p->ended), ticket) || is_alive(s, (uint32_t)newest);

	if (is_not_before(atomic_load(&p->ended), ticket))
		return ticket && atomic_load(&p->failed) == ticket
			       ? soft_refuse(CUDA_ERROR_UNKNOWN, "event of another process: the work before the event failed")
			       : CUDA_SUCCESS;
	if (alive)
		return CUDA_ERROR_NOT_READY;
	return soft_refuse(CUDA_ERROR_UNKNOWN, "event of another process: the process ended before its stream arrived at the event");
}

CUresult soft_shared_event_wait(const struct shared_event *s, uint64_t newest)
{
	const struct timespec timeout = { .tv_nsec = POLL_MS * 1000000L };
	uint32_t ended = atomic_load(&s->page->ended);

	if (!is_not_before(ended, ticket_of(newest)))
		futex(&s->page->ended, FUTEX_WAIT, ended, &timeout);
	return soft_shared_event_state(s, newest);
}
