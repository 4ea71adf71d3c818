/* proxy_internal.h — the struct that proxy.c, which runs on the caller's threads, and proxy_loop.c, the proxy's thread, share. */
#ifndef GPULOAD_PROXY_PROXY_INTERNAL_H
#define GPULOAD_PROXY_PROXY_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "proxy/proxy.h"

/* Written by the proxy's thread, read by any thread.  Relaxed accesses suffice, because no counter depends on another. */
struct gpul_proxy_counts {
	_Atomic uint64_t triggers, batches, max_batch, empty_polls;
	_Atomic uint64_t sleeps, slept_ns, longest_sleep_ns, late_ns, handler_ns;
};

struct gpul_proxy {
	/* Set before the thread starts. */
	gpul_proxy_desc desc;
	gpul_fifo **fifos;
	gpul_fifo_item *items; /* array of desc.batch elements */
	struct pollfd *waits;  /* array of 1 + desc.n_watch_fds elements; the first one is for wake_fd */
	int wake_fd;           /* eventfd that wakes a sleeping thread to stop or drain */
	int cpu;               /* CPU to which the thread is pinned; -1: not pinned */
	bool alone;            /* only one CPU is allowed: the thread yields it, because the threads that push run on the same CPU */
	uint64_t started_ns;
	pthread_t thread;

	/* Requests to the proxy's thread. */
	atomic_bool stop;
	_Atomic uint64_t drains_wanted; /* number of gpul_proxy_drain() calls so far */

	pthread_mutex_t lock;   /* protects the members down to `failed` */
	pthread_cond_t changed; /* signals a change of drains_done or ended */
	uint64_t drains_done;   /* number of drain calls that are complete */
	bool ended;
	uint64_t ended_ns, cpu_ns; /* valid when `ended` is set */
	gpul_status status;
	gpul_error failed;

	_Alignas(64) struct gpul_proxy_counts counts;
};

/* The thread function; arg is the gpul_proxy. */
void *gpul_proxy_loop(void *arg);

/* ---- cpu.c: chooses the CPU to which a proxy's thread is pinned ---- */

/** Choose a CPU and count the proxy that will run on it.
 *
 * @pin     how to choose
 * @number  number of the node or of the CPU, as pin requires; for AUTO the node of the memory, -1: not known
 * @cpu     the CPU, reserved until gpul_cpu_unreserve(); -1: do not pin
 * Errors  GPUL_EINVAL no such node, none of its CPUs is allowed for the caller, or no such CPU number
 * Source  Linux Documentation/ABI/stable/sysfs-devices-node: cpulist */
gpul_status gpul_cpu_reserve(gpul_proxy_pin pin, int number, int *cpu, gpul_error *err);
void gpul_cpu_unreserve(int cpu); /* accepts -1 */

/* Parse a CPU list such as "0-3,8\n".  Returns false on a syntax error.  Numbers that do not fit into a set are skipped. */
bool gpul_cpu_parse_list(const char *text, cpu_set_t *out);

/* Choose the CPU in `may`, except `caller`, on which the fewest proxies run.  Of equal CPUs, prefer one outside of `beside` (the
 * CPUs of the caller's core), then the highest number, because interrupts tend to go to low numbers.  -1: there is no CPU. */
int gpul_cpu_choose(const cpu_set_t *may, const cpu_set_t *beside, const unsigned *n_proxies, int caller);

#endif
