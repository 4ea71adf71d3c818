/* proxy.h — a proxy: a CPU thread that polls FIFOs, calls the handler of each trigger's kind, and releases the batch.
 *
 *     gpul_proxy_start ──> thread: ┌> poll a batch ─ handlers ─ release ─┐
 *                                  │  empty: progress, spin,             │
 *                                  └─ then sleep for a bounded time ─────┘
 *     gpul_proxy_drain: wait until the FIFOs are empty          gpul_proxy_stop: end the thread
 *
 * The first error of a handler ends the thread: the kernels' waits then end with the error's status as the abort code, and
 * gpul_proxy_stop() returns the error.  In gpul_proxy_desc only fifos, n_fifos and kinds must be set; 0 is the default of the other
 * fields. */
#ifndef GPULOAD_PROXY_PROXY_H
#define GPULOAD_PROXY_PROXY_H

#include "proxy/fifo.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Handle triggers of one kind; called on the proxy's thread.
 *
 * @context  as in gpul_proxy_kind
 * @fifo     the FIFO that held the triggers
 * @items    consecutive triggers of one kind, in order; valid during the call, released after it returns
 * @n        number of items, at least 1
 * Returns   GPUL_OK, or an error that ends the proxy */
typedef gpul_status (*gpul_proxy_handler)(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err);

/** Called in each turn of the proxy's loop, even when the FIFOs are empty, to handle completions and time-outs.
 *
 * @context  as in gpul_proxy_desc
 * @busy     false on entry; set to true while work is pending: then the thread does not sleep, and a drain goes on waiting
 * Returns   GPUL_OK, or an error that ends the proxy */
typedef gpul_status (*gpul_proxy_progress)(void *context, bool *busy, gpul_error *err);

typedef struct gpul_proxy_kind {
	gpul_proxy_handler handler; /* handles the triggers of this kind; NULL: such a trigger is an error */
	void *context;
} gpul_proxy_kind;

/* The CPU on which the thread runs.  On a node, a CPU is chosen that is allowed for the calling thread, and that is, if
 * possible, neither the caller's CPU nor that of another proxy of this process.  If only the caller's CPU is allowed, the
 * thread is not pinned and a log line reports it, because two threads pinned to one CPU would delay each other. */
typedef enum gpul_proxy_pin {
	GPUL_PROXY_PIN_AUTO, /* a CPU of the NUMA node that holds the first FIFO's memory; not pinned if gpul_fifo_open()
			       * opened that FIFO, or if no CPU of the node is allowed */
	GPUL_PROXY_PIN_NONE,
	GPUL_PROXY_PIN_NODE, /* a CPU of NUMA node pin_number */
	GPUL_PROXY_PIN_CPU,  /* CPU pin_number, regardless of the calling thread's affinity */
} gpul_proxy_pin;

enum {
	GPUL_PROXY_BATCH = 64,
	GPUL_PROXY_MAX_BATCH = 65536,
	GPUL_PROXY_SPIN_NS = 50000,
	GPUL_PROXY_SLEEP_NS = 200000,
};
#define GPUL_PROXY_SPIN_ALWAYS UINT64_MAX

typedef struct gpul_proxy_desc {
	gpul_fifo *const *fifos; /* borrowed until gpul_proxy_stop() (the array is copied); no other thread polls them */
	unsigned n_fifos;
	gpul_proxy_kind kinds[GPUL_FIFO_N_KINDS];
	gpul_proxy_progress progress; /* called in each turn of the loop; NULL: none */
	void *progress_context;
	gpul_proxy_pin pin;
	int pin_number;        /* number of the node or CPU, if pin is NODE or CPU */
	unsigned batch;        /* limit of the triggers between two releases of a FIFO; 0: GPUL_PROXY_BATCH */
	bool release_later;    /* true: the thread does not release triggers; handlers and progress call gpul_fifo_release_lane()
			        * when the work is done */
	uint64_t spin_ns;      /* time that the thread spins after the last trigger before it sleeps; 0:
				 * GPUL_PROXY_SPIN_NS; GPUL_PROXY_SPIN_ALWAYS: it never sleeps */
	uint64_t max_sleep_ns; /* limit of the latency that a sleep may add; 0: GPUL_PROXY_SLEEP_NS.  The thread subtracts
				 * the delay with which recent sleeps ended; if nothing remains, it yields instead.  On a
				 * busy machine sleeps can take longer: see longest_sleep_ns in gpul_proxy_stats */
	const int *watch_fds;  /* descriptors that become readable or hang up when another process ends (a pidfd, a socket);
			        * borrowed, the array is copied.  A sleeping thread notices this immediately, a working one within a
			        * millisecond after the current batch (after eight batches if handlers have just become slow).  Not
			        * needed for a process that has called gpul_fifo_gpu_hold_lifeline(): its death is detected sooner,
			        * at the latest after one sleep, and gives the same error */
	unsigned n_watch_fds;
} gpul_proxy_desc;

/* Counters of the thread since its start. */
typedef struct gpul_proxy_stats {
	uint64_t triggers, batches, max_batch;
	uint64_t empty_polls; /* number of turns in which all FIFOs were empty */
	uint64_t sleeps, slept_ns;
	uint64_t longest_sleep_ns; /* the longest sleep so far; it should not exceed max_sleep_ns */
	uint64_t late_ns;          /* four of five recent sleeps ended at most this long after the time for which they were set */
	uint64_t handler_ns;       /* time in handlers, estimated from one batch in 64 */
	uint64_t cpu_ns;           /* processor time of the thread */
	uint64_t elapsed_ns;       /* time from the thread's start until now, or until its end */
	int cpu;                   /* the CPU to which the thread is pinned; -1: not pinned */
	bool running;              /* false: the thread has ended with an error */
} gpul_proxy_stats;

typedef struct gpul_proxy gpul_proxy; /* opaque; the struct is defined in proxy.c */

/** Start the thread; all signals are blocked in it.
 *
 * @desc  copied
 * @out   owned by the caller: gpul_proxy_stop(); untouched on failure
 * Errors  GPUL_EINVAL no FIFO, batch too large, a watch_fd that is not open, no such CPU or node, or no CPU of the node
 *         is allowed; GPUL_ENOMEM; GPUL_ESYS
 * Source  Linux sched_setaffinity(2), PR_SET_TIMERSLACK(2const), ppoll(2), eventfd(2) */
gpul_status gpul_proxy_start(const gpul_proxy_desc *desc, gpul_proxy **out, gpul_error *err);

/** Wait until all FIFOs of the proxy are empty, with every trigger handled and released.
 *
 * A drain ends after a turn of the loop in which all FIFOs were empty and the progress function did not set *busy.  While
 * kernels push, this may never happen: call it after the kernels have ended.
 *
 * @p           a started proxy
 * @timeout_ms  < 0: no limit
 * Errors  GPUL_ESYS native = ETIMEDOUT (the message gives the number of handled triggers); the error that ended the proxy;
 *         GPUL_EINVAL called by a handler of this proxy
 * Threads any thread except the proxy's */
gpul_status gpul_proxy_drain(gpul_proxy *p, int timeout_ms, gpul_error *err);

/** End the thread and free p.
 *
 * The thread finishes the current batch (however long a handler takes) and runs one more turn.  If that turn finds triggers,
 * further ones may remain in the FIFOs, and waiting kernels are aborted (GPUL_FIFO_CODE_STOPPED); so call gpul_proxy_drain()
 * first.  If the FIFOs are empty, nothing is aborted: kernels that push later wait for the next proxy.
 *
 * @p  a started proxy; NULL is fine
 * Errors  the first error of a handler or of progress; GPUL_ESYS native = ECANCELED: a kernel timed out or gpul_fifo_abort() was
 *         called (the message gives the code); native = EPIPE: the process of a watch_fd or of a FIFO's kernels has ended;
 *         GPUL_EINVAL called by a handler of this proxy, without any effect
 * Threads one thread, when no other thread uses p any more; handlers may not call */
gpul_status gpul_proxy_stop(gpul_proxy *p, gpul_error *err);

/** Return the error that ended the thread, or GPUL_OK while it runs.  The proxy still needs gpul_proxy_stop().
 *
 * @p      a started proxy
 * Errors  as gpul_proxy_stop() */
gpul_status gpul_proxy_failed(gpul_proxy *p, gpul_error *err);

/* Copy the counters.  Any thread may call at any time. */
void gpul_proxy_get_stats(gpul_proxy *p, gpul_proxy_stats *out);

#ifdef __cplusplus
}
#endif

#endif
