/* ipc_event.c — events that another process waits for or records.
 *
 *     one page, mapped by all that have the event
 *
 *              63          32 31           0
 *             ┌──────────────┬──────────────┐
 *     newest  │ ticket       │ slot         │  the newest record's number, and who made it
 *             ├──────────────┼──────────────┤
 *     ended   │ failed       │ ended        │  the newest ticket that ended; a futex
 *             └──────────────┴──────────────┘
 *
 * To record is to draw a ticket; when the stream gets there the ticket ends, and who waits for it or
 * for an earlier one goes on.  A process that dies never ends its tickets.  Therefore each that has
 * the event holds a lock on the byte `slot` of the file, which the kernel drops with the process: a
 * waiter that finds no lock there gives up.
 *
 * Source: fcntl(2), open file description locks; futex(2). */
#include "softcuda/api/ipc_internal.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
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
	bool is_own;             /* made here: only then it can be handed out */
};

enum { LOOK_AGAIN_MS = 20 };     /* how soon a waiter sees that the recorder has died */

static uint32_t ticket_of(uint64_t newest)
{
	return (uint32_t)(newest >> 32);
}

/* Tickets go round after 2^32. */
static bool is_not_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) >= 0;
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
		  const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* ---- making, opening, closing ----------------------------------------------------------- */

static struct flock slot_lock(uint32_t slot)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot,
			       .l_len = 1 };
}

/* Map the page and take a slot in it; the file's descriptor is s's then. */
static CUresult attach(const struct ipc_file *file, bool is_own, struct shared_event **out)
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

void soft_ipc_event_close(struct shared_event *s)
{
	if (!s)
		return;
	munmap(s->page, sizeof *s->page);
	soft_ipc_close(&s->file);  /* and the lock on the slot with it */
	free(s);
}

/* From now on the event's state is in a page; the record that is under way becomes ticket 1. */
static CUresult make_shareable(struct event *e)
{
	struct ipc_file file;
	CUresult r;

	if (e->shared)
		return e->shared->is_own ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	r = soft_ipc_create(IPC_EVENT, sizeof(struct page), &file);
	if (r)
		return r;
	r = attach(&file, true, &e->shared);
	if (r)
		soft_ipc_close(&file);
	else if (e->pending)
		soft_ipc_event_draw(e, e->pending);
	return r;
}

EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
	struct ipc_handle h;
	struct event *e;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	e = soft_handle_find(HANDLE_EVENT, event);
	if (!e || !(e->flags & CU_EVENT_INTERPROCESS))
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!out)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = make_shareable(e);
	if (!r)
		r = soft_ipc_describe(IPC_EVENT, &e->shared->file, e->ctx->device, &h);
	if (!r)
		memcpy(out, &h, sizeof h);
	soft_unlock();
	return r;
}

static CUresult open_handle(struct context *ctx, const struct ipc_handle *h, CUevent *out)
{
	struct ipc_file file = { .bytes = sizeof(struct page) };
	struct event *e;
	CUresult r;

	if (!soft_ipc_is_handle(IPC_EVENT, h) || h->bytes != file.bytes)
		return CUDA_ERROR_MAP_FAILED;
	if (soft_ipc_is_own(h))
		return soft_refuse(CUDA_ERROR_INVALID_CONTEXT,
				   "the handle is this process' own: use the event itself");
	file.fd = soft_ipc_open(IPC_EVENT, h);
	if (file.fd < 0)
		return CUDA_ERROR_MAP_FAILED;
	r = soft_event_create(ctx, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, &e);
	if (r)
		goto close_file;
	r = attach(&file, false, &e->shared);
	if (r)
		goto destroy;
	*out = e->handle;
	return CUDA_SUCCESS;
destroy:
	soft_event_destroy(e);
close_file:
	soft_ipc_close(&file);
	return r;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
	struct context *ctx;
	struct ipc_handle h;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	memcpy(&h, &handle, sizeof h);
	r = out ? open_handle(ctx, &h, out) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

/* ---- recording -------------------------------------------------------------------------- */

void soft_ipc_event_draw(struct event *e, struct op *op)
{
	struct page *p = e->shared->page;
	uint64_t newest = atomic_load(&p->newest), mine;

	do
		mine = (uint64_t)(ticket_of(newest) + 1) << 32 | e->shared->slot;
	while (!atomic_compare_exchange_weak(&p->newest, &newest, mine));
	op->record.ticket = ticket_of(mine);
	op->record.has_ticket = true;
}

void soft_ipc_event_end(struct event *e, struct op *op, bool failed)
{
	struct page *p = e->shared->page;
	uint32_t ended = atomic_load(&p->ended);

	if (failed)
		atomic_store(&p->failed, op->record.ticket);
	while (!is_not_before(ended, op->record.ticket))
		if (atomic_compare_exchange_weak(&p->ended, &ended, op->record.ticket))
			break;
	futex(&p->ended, FUTEX_WAKE, INT32_MAX, NULL);
}

/* ---- waiting ---------------------------------------------------------------------------- */

/* Does the process behind the slot still have the event open?  One's own slot is free of locks to
 * oneself. */
static bool is_alive(const struct shared_event *s, uint32_t slot)
{
	struct flock lock = slot_lock(slot);

	return slot == s->slot || fcntl(s->file.fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

/* How the record that is the newest one now stands. */
static CUresult state_of(const struct shared_event *s, uint64_t newest)
{
	struct page *p = s->page;
	uint32_t ticket = ticket_of(newest);
	bool alive = is_not_before(atomic_load(&p->ended), ticket) ||
		     is_alive(s, (uint32_t)newest);

	if (is_not_before(atomic_load(&p->ended), ticket))
		return ticket && atomic_load(&p->failed) == ticket
			       ? soft_refuse(CUDA_ERROR_UNKNOWN,
					     "the work before the event failed in its process")
			       : CUDA_SUCCESS;
	if (alive)
		return CUDA_ERROR_NOT_READY;
	return soft_refuse(CUDA_ERROR_UNKNOWN,
			   "the process that recorded the event ended before its work did");
}

/* Sleep until something ended, at most LOOK_AGAIN_MS, when the record has not ended yet. */
static CUresult wait_a_little(const struct shared_event *s, uint64_t newest)
{
	const struct timespec timeout = { .tv_nsec = LOOK_AGAIN_MS * 1000000L };
	uint32_t ended = atomic_load(&s->page->ended);
	CUresult r;

	if (!is_not_before(ended, ticket_of(newest)))
		futex(&s->page->ended, FUTEX_WAIT, ended, &timeout);
	r = state_of(s, newest);
	return r;
}

bool soft_ipc_event_is_remote(const struct event *e)
{
	return e->shared && (uint32_t)atomic_load(&e->shared->page->newest) != e->shared->slot;
}

CUresult soft_ipc_event_query(struct event *e)
{
	return state_of(e->shared, atomic_load(&e->shared->page->newest));
}

CUresult soft_ipc_event_wait(struct event *e)
{
	uint64_t newest = atomic_load(&e->shared->page->newest);
	CUresult r;

	e->refs++;
	soft_unlock();
	do
		r = wait_a_little(e->shared, newest);
	while (r == CUDA_ERROR_NOT_READY);
	soft_lock();
	soft_event_unref(e);
	return r;
}

/* ---- a stream that waits ---------------------------------------------------------------- */

/* One thread for each wait that is under way: there are few, and each ends with its wait. */
static void *await(void *arg)
{
	struct op *op = arg;
	CUresult r;

	do {
		r = wait_a_little(op->record.event->shared, op->record.newest);
		soft_lock();
		if (op->ctx->fault)
			r = op->ctx->fault;
		if (r == CUDA_ERROR_NOT_READY)
			soft_unlock();
	} while (r == CUDA_ERROR_NOT_READY);
	if (r && !op->ctx->fault)
		soft_report_fault("a stream waits for an event of another process, which ended or "
				  "failed before it got there");
	soft_op_ended(op, r);
	soft_unlock();
	return NULL;
}

void soft_ipc_event_await(struct op *op)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int failed;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	failed = pthread_create(&thread, &attributes, await, op);
	pthread_attr_destroy(&attributes);
	if (failed)
		soft_op_ended(op, CUDA_ERROR_OPERATING_SYSTEM);
}

CUresult soft_ipc_event_hold(struct stream *s, struct event *e)
{
	uint64_t newest = atomic_load(&e->shared->page->newest);
	CUresult r = state_of(e->shared, newest);
	struct op *op;

	if (r != CUDA_ERROR_NOT_READY)
		return r;
	op = soft_op_new(s, OP_AWAIT);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->record.event = e;
	op->record.newest = newest;
	e->refs++;  /* free_payload of the op drops it */
	r = soft_op_submit(op, NULL);
	soft_op_release(op);
	return r;
}
