/* proxy.h — a thread that serves FIFOs: takes batches out, calls the handler of each kind, releases.
 *
 *     gpul_proxy_start ──> thread: ┌> poll a batch ─ handlers ─ release ─┐
 *                                  │  nothing there: progress, spin,     │
 *                                  └─ then sleep, bounded ───────────────┘
 *     gpul_proxy_drain: all that is there has been handled      gpul_proxy_stop: and the thread has ended
 *
 * The first error of a handler ends it: the kernels' waits end with its status as the abort word's code, and stop
 * returns it to the owner.  A desc of zeros, but for fifos, n_fifos and kinds, is a good one. */
#ifndef GPULOAD_PROXY_PROXY_H
#define GPULOAD_PROXY_PROXY_H

#include "proxy/fifo.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is done with triggers of a kind, on the proxy's thread.
 *
 * @context  as in gpul_proxy_kind
 * @fifo     that they came from
 * @items    a run of its triggers that are of one kind, in their order; valid during the call.  They are
 *           released after it has returned
 * @n        at least 1
 * Returns   GPUL_OK, or an error that ends the proxy */
typedef gpul_status (*gpul_proxy_handler)(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n,
					  gpul_error *err);

/** Called in each turn of the loop, also when nothing was there: for completions, time-outs.
 *
 * @context  as in gpul_proxy_desc
 * @busy     is false; set it when something was done or is awaited: the thread does not sleep then, and a drain is not
 *           over
 * Returns   GPUL_OK, or an error that ends the proxy */
typedef gpul_status (*gpul_proxy_progress)(void *context, bool *busy, gpul_error *err);

typedef struct gpul_proxy_kind {
	gpul_proxy_handler handler;  /* NULL: a trigger of this kind is an error */
	void *context;
} gpul_proxy_kind;

/* Where the thread runs.  A node's CPU is one that the calling thread may use, and where there is a choice neither the
 * one that it is on nor another proxy's of this process.  Where there is no choice but the caller's own, it is not
 * pinned (the log says so): two threads that take turns on one CPU wait for each other. */
typedef enum gpul_proxy_pin {
	GPUL_PROXY_PIN_AUTO,  /* to a CPU of the node on which the first FIFO's memory is; one that was opened, or whose
			       * node cannot be had: not */
	GPUL_PROXY_PIN_NONE,
	GPUL_PROXY_PIN_NODE,  /* to a CPU of NUMA node pin_number */
	GPUL_PROXY_PIN_CPU,   /* to CPU pin_number, whatever the calling thread's affinity */
} gpul_proxy_pin;

enum {
	GPUL_PROXY_BATCH = 64,
	GPUL_PROXY_MAX_BATCH = 65536,
	GPUL_PROXY_SPIN_NS = 50000,
	GPUL_PROXY_SLEEP_NS = 200000,
};
#define GPUL_PROXY_SPIN_ALWAYS UINT64_MAX

typedef struct gpul_proxy_desc {
	gpul_fifo *const *fifos;  /* the FIFOs are borrowed until stop (the array is copied); nobody else polls them */
	unsigned n_fifos;
	gpul_proxy_kind kinds[GPUL_FIFO_N_KINDS];
	gpul_proxy_progress progress;  /* NULL: none */
	void *progress_context;
	gpul_proxy_pin pin;
	int pin_number;         /* of a node or a CPU, by pin */
	unsigned batch;         /* triggers at most between two releases of a FIFO; 0: GPUL_PROXY_BATCH */
	bool release_later;     /* true: the thread releases nothing; handlers and progress do, with
				 * gpul_fifo_release_lane(), when the work is done */
	uint64_t spin_ns;       /* so long it spins after the last trigger before it sleeps; 0: GPUL_PROXY_SPIN_NS;
				 * GPUL_PROXY_SPIN_ALWAYS: it never sleeps */
	uint64_t max_sleep_ns;  /* the latency that sleeping may add; 0: GPUL_PROXY_SLEEP_NS.  A sleep is asked to be
				 * shorter by what sleeps were late of late; where that leaves nothing, the thread
				 * yields instead.  No promise on a busy machine: stats tell what sleeps took */
	const int *watch_fds;   /* descriptors that become readable or hang up when another process ends (a pidfd, a
				 * socket); borrowed, the array is copied.  Noticed at once by a thread that sleeps, by
				 * one that works within a millisecond and the batch at hand (eight batches, when
				 * handlers have just become slow).  A process that has called
				 * gpul_fifo_gpu_hold_lifeline() needs none: its death is noticed sooner, after a sleep at
				 * most, and is the same error */
	unsigned n_watch_fds;
} gpul_proxy_desc;

/* What the thread did and what it cost, since it started. */
typedef struct gpul_proxy_stats {
	uint64_t triggers, batches, max_batch;
	uint64_t empty_polls;       /* turns that found nothing */
	uint64_t sleeps, slept_ns;
	uint64_t longest_sleep_ns;  /* was to be max_sleep_ns at most, and was this */
	uint64_t late_ns;           /* sleeps take longer than asked for: four of five by this at most, of late */
	uint64_t handler_ns;        /* in handlers: of one batch in 64, times 64 */
	uint64_t cpu_ns;            /* processor time of the thread */
	uint64_t elapsed_ns;        /* since it started, until now or it ended */
	int cpu;                    /* pinned to; -1: not */
	bool running;               /* false: it has ended, by an error */
} gpul_proxy_stats;

typedef struct gpul_proxy gpul_proxy;  /* opaque: proxy.c */

/** Start the thread.
 *
 * All signals are blocked in it.
 *
 * @desc  copied
 * @out   owned by the caller: gpul_proxy_stop(); untouched on failure
 * Errors  GPUL_EINVAL no FIFO, a batch too large, a watch_fd that is not open, no such CPU or node, none of the
 *         node's CPUs is allowed; GPUL_ENOMEM; GPUL_ESYS
 * Threads any thread may call
 * Source  Linux sched_setaffinity(2), PR_SET_TIMERSLACK(2const), ppoll(2), eventfd(2) */
gpul_status gpul_proxy_start(const gpul_proxy_desc *desc, gpul_proxy **out, gpul_error *err);

/** Wait until every trigger that is in the FIFOs has been handled and released: after the kernels have ended, all.
 *
 * It is over when a turn found nothing in any FIFO and progress was not busy; while kernels push, that may never be.
 *
 * @p           started
 * @timeout_ms  < 0: for ever
 * Errors  GPUL_ESYS native = ETIMEDOUT: says how many were handled; the error that ended the proxy; GPUL_EINVAL called
 *         by its own handler, which goes on
 * Threads any thread may call, but no handler
 * Source  - */
gpul_status gpul_proxy_drain(gpul_proxy *p, int timeout_ms, gpul_error *err);

/** End the thread and free p.
 *
 * It finishes the batch at hand (a handler that blocks is waited for) and takes one more turn.  When that finds
 * something in a FIFO, more may be there: it stays, and kernels that wait are aborted (GPUL_FIFO_CODE_STOPPED).  So
 * drain first.  FIFOs that were empty are as before: kernels that push into them later wait for the next proxy.
 *
 * @p  started; NULL is fine
 * Errors  the first error: of a handler, of progress; GPUL_ESYS native = ECANCELED: a kernel gave up, or
 *         gpul_fifo_abort() was called, with its code; native = EPIPE: a watch_fd or a FIFO said that a process has ended.
 *         GPUL_EINVAL called by its own handler: nothing was done
 * Threads one, when nobody else uses p any more; no handler
 * Source  - */
gpul_status gpul_proxy_stop(gpul_proxy *p, gpul_error *err);

/** Has it ended by itself?  GPUL_OK: it runs; else what stop would return.  Nothing is ended.
 *
 * @p      started
 * Errors  as gpul_proxy_stop()'s
 * Threads any thread may call
 * Source  - */
gpul_status gpul_proxy_failed(gpul_proxy *p, gpul_error *err);

/* Any thread, at any time. */
void gpul_proxy_get_stats(gpul_proxy *p, gpul_proxy_stats *out);

#ifdef __cplusplus
}
#endif

#endif
