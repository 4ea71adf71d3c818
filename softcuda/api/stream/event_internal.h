/* event_internal.h — events, and the state of events that several processes share. */
#ifndef GPULOAD_SOFTCUDA_API_STREAM_EVENT_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_STREAM_EVENT_INTERNAL_H

#include "softcuda/api/base/ipc_internal.h"
#include "softcuda/api/stream/queue_internal.h"

struct shared_event;

struct event {
	struct link link;            /* in context->events */
	void *handle;                /* NULL: destroyed, but an operation still refers to it */
	struct context *ctx;
	unsigned flags, refs;
	bool recorded;
	struct op *pending;          /* the newest record, when it has not ended */
	struct shared_event *shared; /* other processes may have it (shared_event.c); or NULL */
	uint64_t time_ns;
};

/* ---- event.c, all under the lock --------------------------------------------------------- */

CUresult soft_event_create(struct context *ctx, unsigned flags, struct event **out);
void soft_event_destroy(struct event *e);
CUresult soft_event_record(struct event *e, struct stream *s);
/* Make the later work of s wait for the newest record of e. */
CUresult soft_stream_wait_event(struct stream *s, struct event *e);
/* From now on the state of e is in a page that other processes map. */
void soft_event_share(struct event *e, struct shared_event *shared);

/* ---- shared_event.c: any thread, with or without the lock -------------------------------- */

extern const size_t soft_shared_event_bytes;              /* of its file */
/* Map the page and lock a slot in it; the file is owned by *out.  is_own: this process created the event. */
CUresult soft_shared_event_attach(const struct ipc_file *file, bool is_own,
				  struct shared_event **out);
void soft_shared_event_close(struct shared_event *s);     /* NULL is fine */
const struct ipc_file *soft_shared_event_file(const struct shared_event *s);  /* NULL: of another process */
uint32_t soft_shared_event_draw(struct shared_event *s);  /* the ticket of a new record */
void soft_shared_event_end(struct shared_event *s, uint32_t ticket, bool failed);
bool soft_shared_event_is_remote(const struct shared_event *s);  /* another process recorded last; NULL: false */
uint64_t soft_shared_event_newest(const struct shared_event *s);
/* CUDA_ERROR_NOT_READY: the record `newest` has not ended; CUDA_ERROR_UNKNOWN: it failed or never will end. */
CUresult soft_shared_event_state(const struct shared_event *s, uint64_t newest);
/* The state after the record has ended or 20 ms have passed; lock not held. */
CUresult soft_shared_event_wait(const struct shared_event *s, uint64_t newest);

#endif
