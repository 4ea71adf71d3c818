/* proxy_internal.h — what the proxy's owner (proxy.c) and its thread (proxy_loop.c) share. */
#ifndef GPULOAD_PROXY_PROXY_INTERNAL_H
#define GPULOAD_PROXY_PROXY_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "proxy/proxy.h"

/* Written by the thread alone, read by anybody: relaxed, for each is right by itself. */
struct gpul_proxy_counts {
	_Atomic uint64_t triggers, batches, max_batch, empty_polls;
	_Atomic uint64_t sleeps, slept_ns, longest_sleep_ns, late_ns, handler_ns;
};

struct gpul_proxy {
	/* Set before the thread starts. */
	gpul_proxy_desc desc;
	gpul_fifo **fifos;
	gpul_fifo_item *items;   /* desc.batch of them */
	struct pollfd *waits;    /* 1 + desc.n_watch_fds; the first is wake_fd */
	int wake_fd;             /* eventfd: the owner wants something from a thread that sleeps */
	int cpu;                 /* -1: not pinned */
	bool alone;              /* there is one CPU: who spins keeps the others from what it waits for */
	uint64_t started_ns;
	pthread_t thread;

	/* The owner's wishes. */
	atomic_bool stop;
	_Atomic uint64_t drains_wanted;  /* a count, and the thread's answer: */

	pthread_mutex_t lock;    /* guards down to failed */
	pthread_cond_t changed;  /* drains_done, ended */
	uint64_t drains_done;
	bool ended;
	uint64_t ended_ns, cpu_ns;  /* when ended */
	gpul_status status;
	gpul_error failed;

	_Alignas(64) struct gpul_proxy_counts counts;
};

/* The thread: arg is the gpul_proxy. */
void *gpul_proxy_loop(void *arg);

#endif
