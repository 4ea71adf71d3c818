/* proxy.h — a thread that serves FIFOs: takes batches out, calls the handler of each kind, releases.
 *
 *     gpul_proxy_start ──> thread: ┌> poll a batch ─ handlers ─ release ─┐
 *                                  │  nothing there: progress, spin,     │
 *                                  └─ then sleep, bounded ───────────────┘
 *     gpul_proxy_drain: all that is there has been handled      gpul_proxy_stop: and the thread has ended
 *
 * The first error of a handler ends it: the kernels' waits end with its status as the abort word's code, and stop
 * returns it to the owner. */
#ifndef GPULOAD_PROXY_PROXY_H
#define GPULOAD_PROXY_PROXY_H

#include "proxy/fifo.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is done with triggers of a kind, on the proxy's thread.
 *
 * @context  as in gpul_proxy_kind
 * @items    a run of one FIFO's triggers that are of one kind, in their order; valid during the call.  They are
 *           released after it has returned
 * @n        at least 1
 * Returns   GPUL_OK, or an error that ends the proxy */
typedef gpul_status (*gpul_proxy_handler)(void *context, const gpul_fifo_item *items, unsigned n, gpul_error *err);

/** Called in each turn of the loop, also when nothing was there: for completions, time-outs.
 *
 * @context  as in gpul_proxy_desc
 * Returns   GPUL_OK, or an error that ends the proxy */
typedef gpul_status (*gpul_proxy_progress)(void *context, gpul_error *err);

typedef struct gpul_proxy_kind {
	gpul_proxy_handler handler;  /* NULL: a trigger of this kind is an error */
	void *context;
} gpul_proxy_kind;

enum { GPUL_PROXY_ANY_CPU = -1, GPUL_PROXY_CPU_OF_NODE = -2 };

typedef struct gpul_proxy_desc {
	gpul_fifo *const *fifos;  /* borrowed until stop; nobody else polls them */
	unsigned n_fifos;
	gpul_proxy_kind kinds[GPUL_FIFO_N_KINDS];
	gpul_proxy_progress progress;  /* NULL: none */
	void *progress_context;
	int cpu;                /* number to be pinned to; ANY_CPU: not pinned; CPU_OF_NODE: one of node's that this
				 * process may use */
	int node;               /* NUMA node for CPU_OF_NODE: the GPU's (numa.h) */
	unsigned batch;         /* triggers at most between two releases; 0: 64 */
	uint64_t spin_ns;       /* so long it spins after the last trigger before it sleeps */
	uint64_t max_sleep_ns;  /* the latency that sleeping may add, at most; 0: never sleeps */
	int watch_fd;           /* a descriptor that becomes readable or hangs up when the other process ends (a
				 * pidfd, a socket); borrowed; -1: none.  Looked at every millisecond at least */
} gpul_proxy_desc;

/* What the thread did and what it cost, since it started. */
typedef struct gpul_proxy_stats {
	uint64_t triggers, batches, max_batch;
	uint64_t empty_looks;             /* turns that found nothing */
	uint64_t sleeps, slept_ns;
	uint64_t longest_sleep_ns;        /* asked max_sleep_ns of the system, got this */
	uint64_t handler_ns;              /* in handlers; of one batch in 64, times 64 */
	uint64_t cpu_ns, elapsed_ns;      /* processor time of the thread; time since it started */
	int cpu;                          /* pinned to; -1: not */
	bool running;                     /* false: it has ended, by stop or an error */
} gpul_proxy_stats;

typedef struct gpul_proxy gpul_proxy;  /* opaque: proxy.c */

/** Start the thread.
 *
 * @desc  copied
 * @out   owned by the caller: gpul_proxy_stop(); untouched on failure
 * Errors  GPUL_EINVAL no FIFO, no such CPU, none of the node's CPUs is allowed; GPUL_ENOMEM; GPUL_ESYS
 * Threads any thread may call
 * Source  Linux sched_setaffinity(2), prctl(2) PR_SET_TIMERSLACK, poll(2) */
gpul_status gpul_proxy_start(const gpul_proxy_desc *desc, gpul_proxy **out, gpul_error *err);

/** Wait until every trigger that is in the FIFOs has been handled and released: after the kernels have ended, all.
 *
 * @p           started
 * @timeout_ms  < 0: for ever
 * Errors  GPUL_ESYS native = ETIMEDOUT: says how many were handled; the error that ended the proxy
 * Threads any thread may call
 * Source  - */
gpul_status gpul_proxy_drain(gpul_proxy *p, int timeout_ms, gpul_error *err);

/** End the thread and free p.  What is not handled stays in the FIFOs, and kernels that wait are aborted
 * (GPUL_FIFO_CODE_STOPPED), unless the FIFOs are empty: drain first.
 *
 * @p  started; NULL is fine
 * Errors  the first error: of a handler, of progress; GPUL_ESYS native = ECANCELED: a kernel gave up, with its code;
 *         native = EPIPE: watch_fd said that the other process has ended
 * Threads one
 * Source  - */
gpul_status gpul_proxy_stop(gpul_proxy *p, gpul_error *err);

/** Has it ended by itself?  The same error as stop would return, without ending anything.
 *
 * @p  started
 * Errors  as gpul_proxy_stop()'s
 * Threads any thread may call
 * Source  - */
gpul_status gpul_proxy_failed(gpul_proxy *p, gpul_error *err);
/* Any thread, at any time. */
void gpul_proxy_get_stats(const gpul_proxy *p, gpul_proxy_stats *out);

#ifdef __cplusplus
}
#endif

#endif
