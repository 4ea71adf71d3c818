/* cu_event_internal.h — events, and the state of events that several processes share. */
#ifndef GPULOAD_SOFTCUDA_API_STREAM_CU_EVENT_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_STREAM_CU_EVENT_INTERNAL_H

#include "softcuda/api/base/cu_ipc_internal.h"
#include "softcuda/api/stream/cu_queue_internal.h"

struct shared_event;
struct capture_point;

struct event {
	struct link link; /* link in context->events */
	void *handle;     /* handle of the event; NULL: destroyed, but an operation still refers to it */
	struct context *ctx;
	unsigned flags, refs;
	bool recorded;
	struct op *pending;             /* the operation that last recorded the event; NULL: it has ended */
	struct capture_point *captured; /* the point of a capture at which the event was last recorded (cu_capture.c); NULL: none */
	struct shared_event *shared;    /* the state shared with other processes; NULL: not shared */
	uint64_t time_ns;
	struct order *order; /* vector clock of the newest record, for tools such as racecheck (cu_order.c) */
};

/* ---- cu_event.c: the caller holds the lock -------------------------------------------------- */

CUresult soft_event_create(struct context *ctx, unsigned flags, struct event **out);
void soft_event_destroy(struct event *e);
CUresult soft_event_record(struct event *e, struct stream *s);
/* Make the later work of s wait for the newest record of e. */
CUresult soft_stream_wait_event(struct stream *s, struct event *e);
void soft_event_unref(struct event *e);
struct event *soft_event_of_record(const struct op *work);
/* Called by the run function of op: let op end when the newest record of e, which another process made, has ended. */
void soft_event_await(struct op *op, struct event *e);
/* Let other processes use e: move its state to `shared`, which they can map. */
void soft_event_share(struct event *e, struct shared_event *shared);

/* ---- cu_shared_event.c: any thread, with or without the lock -------------------------------- */

extern const size_t soft_shared_event_bytes; /* size of the file of a shared event */
/* Map the page of the file, and lock a free slot in it; *out owns the file.  is_own: this process created the event. */
CUresult soft_shared_event_attach(const struct ipc_file *file, bool is_own, struct shared_event **out);
void soft_shared_event_close(struct shared_event *s);                        /* accepts NULL */
const struct ipc_file *soft_shared_event_file(const struct shared_event *s); /* NULL: another process created s */
uint32_t soft_shared_event_draw(struct shared_event *s);                     /* returns the number (ticket) of a new record */
void soft_shared_event_end(struct shared_event *s, uint32_t ticket, bool failed);
bool soft_shared_event_is_remote(const struct shared_event *s); /* true: another process made the newest record */
uint64_t soft_shared_event_newest(const struct shared_event *s);
/* Return the state of a record.  CUDA_ERROR_NOT_READY: it has not ended; CUDA_ERROR_UNKNOWN: it failed, or its process was killed. */
CUresult soft_shared_event_state(const struct shared_event *s, uint64_t newest);
/* Wait at most 20 ms for the record to end, and return its state.  The caller does not hold the lock. */
CUresult soft_shared_event_wait(const struct shared_event *s, uint64_t newest);

#endif
