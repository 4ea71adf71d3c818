/* net_trace.h — the trace of the proxy's thread: its puts of slots and words, and its waits, with their times.
 *
 *     kernel posts step n ─ proxy: gpul_rdma_put() ┄┄ in flight ┄┄ the put has ended
 *                                  └──────── one event, SLOT ──────────────┘
 *
 *     const uint64_t began = gpul_net_trace_now(t);                      0 if the trace is off
 *     ... start a put ...
 *     gpul_net_trace_put(t, began, ...);   later: gpul_net_trace_ended(t, ...)
 *
 * The proxy's thread records events; any other thread may start, stop and read the trace.  With the trace off, each hook only tests one
 * word. */
#ifndef GPULOAD_COMM_NET_NET_TRACE_H
#define GPULOAD_COMM_NET_NET_TRACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpul_comm_net_kind {
	GPUL_COMM_NET_SLOT,   /* a step of a channel: its entry and data, followed by the tail */
	GPUL_COMM_NET_CREDIT, /* the number of steps that this rank has read, as credit for the sender */
	GPUL_COMM_NET_GRANT,  /* a request for permission to send (a grant), or the permission */
	GPUL_COMM_NET_WAIT,   /* the thread had nothing to do; .peer is -1 */
	GPUL_COMM_NET_N_KINDS
};

typedef struct gpul_comm_net_event {
	uint64_t begin_ns, end_ns; /* times of gpul_clock_ns() */
	uint64_t step;             /* SLOT: number of the step, as in the kernels' events; CREDIT, GRANT: the value that was put */
	uint32_t kind;
	int32_t peer;     /* the other rank; -1: none */
	uint32_t channel; /* number of the block to whose channel the put belongs */
	uint32_t bytes;   /* SLOT: bytes of data */
} gpul_comm_net_event;

/* Only net_trace.c uses the members, except `on`, which the proxy tests. */
typedef struct gpul_comm_net_trace {
	bool on;              /* read and written by __atomic functions */
	pthread_mutex_t lock; /* protects all members below; not locked while the trace is off */
	unsigned n_routes, n_flights;
	struct gpul_comm_net_pending *pending; /* array of n_routes * n_flights puts that have not ended */
	unsigned n_pending;
	uint64_t started_ns;
	gpul_comm_net_event *events;
	size_t n, max, n_lost;
} gpul_comm_net_trace;

/* Initialise a trace; it is off.  n_flights: limit of the puts in flight of a route, a power of 2. */
void gpul_net_trace_init(gpul_comm_net_trace *t, unsigned n_routes, unsigned n_flights);
void gpul_net_trace_free(gpul_comm_net_trace *t);

/** Start recording.
 *
 * @t           initialised
 * @max_events  room for events; those beyond it are counted, but lost.  0: continue the previous trace, and keep its events
 * Errors  GPUL_EINVAL max_events is 0, and there is no previous trace; GPUL_ENOMEM
 * Threads any thread but the proxy's */
gpul_status gpul_net_trace_start(gpul_comm_net_trace *t, size_t max_events, gpul_error *err);
/* Stop recording.  Call it when the collectives of all ranks have ended, because puts that start later are not recorded.  Waits
 * up to three seconds for the puts in flight; those that have not ended by then are lost. */
void gpul_net_trace_stop(gpul_comm_net_trace *t);
/* Copy up to max events to out, in the order in which they ended.  n_lost: the number of events that are not in out. */
void gpul_net_trace_read(gpul_comm_net_trace *t, gpul_comm_net_event *out, size_t max, size_t *n, size_t *n_lost);

/* ---- hooks, which only the proxy's thread calls ---- */

/* True while the hooks may record. */
static inline bool gpul_net_trace_is_on(const gpul_comm_net_trace *t)
{
	return __atomic_load_n(&t->on, __ATOMIC_RELAXED);
}

/* Return the time; 0: the trace is off. */
static inline uint64_t gpul_net_trace_now(const gpul_comm_net_trace *t)
{
	return __builtin_expect(gpul_net_trace_is_on(t), 0) ? gpul_clock_ns() : 0;
}

/* The parts of the next three functions that run only while the trace is on. */
void gpul_net_trace_add_put(gpul_comm_net_trace *t, unsigned route, uint32_t flight, const gpul_comm_net_event *event);
void gpul_net_trace_end_put(gpul_comm_net_trace *t, unsigned route, uint32_t flight);
void gpul_net_trace_add_wait(gpul_comm_net_trace *t, uint64_t began_ns);

/* Record the start of a put of a route; flight: number of the put among those in flight. */
static inline void gpul_net_trace_put(gpul_comm_net_trace *t, unsigned route, uint32_t flight, gpul_comm_net_event event)
{
	if (__builtin_expect(event.begin_ns != 0, 0))
		gpul_net_trace_add_put(t, route, flight, &event);
}

/* Record the end of put number `flight` of a route. */
static inline void gpul_net_trace_ended(gpul_comm_net_trace *t, unsigned route, uint32_t flight)
{
	if (__builtin_expect(gpul_net_trace_is_on(t), 0))
		gpul_net_trace_end_put(t, route, flight);
}

/* Record that the thread has been idle since began_ns. */
static inline void gpul_net_trace_waited(gpul_comm_net_trace *t, uint64_t began_ns)
{
	if (__builtin_expect(gpul_net_trace_is_on(t), 0))
		gpul_net_trace_add_wait(t, began_ns);
}

#ifdef __cplusplus
}
#endif

#endif
