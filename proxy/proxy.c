/* proxy.c — starts, drains and stops a proxy.  proxy_loop.c is its thread, cpu.c chooses its CPU. */
#include "proxy/proxy_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/thread/thread.h"
#include "proxy/fifo_internal.h"

/* ---- starting -------------------------------------------------------------------- */

static gpul_status check_desc(const gpul_proxy_desc *desc, gpul_error *err)
{
	if (!desc->fifos || !desc->n_fifos)
		return gpul_fail(err, GPUL_EINVAL, 0, "desc.fifos is empty: a proxy needs at least one FIFO");
	for (unsigned i = 0; i < desc->n_fifos; i++)
		if (!desc->fifos[i])
			return gpul_fail(err, GPUL_EINVAL, (int)i, "desc.fifos[%u] is NULL, although desc.n_fifos is %u", i, desc->n_fifos);
	if (desc->batch > GPUL_PROXY_MAX_BATCH)
		return gpul_fail(err, GPUL_EINVAL, (int)desc->batch, "the batch size is %u triggers: expected at most %d", desc->batch,
				 GPUL_PROXY_MAX_BATCH);
	if (desc->n_watch_fds && !desc->watch_fds)
		return gpul_fail(err, GPUL_EINVAL, 0, "desc.n_watch_fds is %u, but desc.watch_fds is NULL", desc->n_watch_fds);
	return GPUL_OK;
}

static void free_all(gpul_proxy *p)
{
	free(p->fifos);
	free(p->items);
	free(p->waits);
	free(p);
}

/* Allocate a proxy with copies of the caller's arrays; NULL: out of memory. */
static gpul_proxy *copy_desc(const gpul_proxy_desc *desc)
{
	gpul_proxy *p = aligned_alloc(_Alignof(gpul_proxy), sizeof(*p));

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->desc = *desc;
	if (!p->desc.batch)
		p->desc.batch = GPUL_PROXY_BATCH;
	if (!p->desc.spin_ns)
		p->desc.spin_ns = GPUL_PROXY_SPIN_NS;
	if (!p->desc.max_sleep_ns)
		p->desc.max_sleep_ns = GPUL_PROXY_SLEEP_NS;
	p->fifos = calloc(desc->n_fifos, sizeof(gpul_fifo *));
	p->items = calloc(p->desc.batch, sizeof(*p->items));
	p->waits = calloc(1 + (size_t)desc->n_watch_fds, sizeof(*p->waits));
	if (!p->fifos || !p->items || !p->waits) {
		free_all(p);
		return NULL;
	}
	memcpy(p->fifos, desc->fifos, desc->n_fifos * sizeof(gpul_fifo *));
	for (unsigned i = 0; i < desc->n_watch_fds; i++)
		p->waits[1 + i] = (struct pollfd){ .fd = desc->watch_fds[i], .events = POLLIN | POLLRDHUP };
	p->desc.fifos = NULL; /* the caller may free its arrays: p->fifos and p->waits are the copies */
	p->desc.watch_fds = NULL;
	return p;
}

static gpul_status open_wake_fd(gpul_proxy *p, gpul_error *err)
{
	for (unsigned i = 1; i <= p->desc.n_watch_fds; i++)
		if (p->waits[i].fd < 0 || (poll(&p->waits[i], 1, 0) > 0 && p->waits[i].revents & POLLNVAL))
			return gpul_fail(err, GPUL_EINVAL, p->waits[i].fd, "desc.watch_fds[%u]: descriptor %d is not open", i - 1,
					 p->waits[i].fd);
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "eventfd: %s", strerror(errno));
	p->waits[0] = (struct pollfd){ .fd = p->wake_fd, .events = POLLIN };
	return GPUL_OK;
}

static gpul_status choose_cpu(gpul_proxy *p, gpul_error *err)
{
	const gpul_mem *mem = gpul_fifo_mem_of(p->fifos[0]);
	const int node = mem ? gpul_mem_about(mem)->node : -1;
	cpu_set_t allowed;

	if (!pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed))
		p->alone = CPU_COUNT(&allowed) == 1;
	if (p->alone)
		gpul_log(GPUL_LOG_INFO, "proxy",
			 "only one CPU is allowed for this thread: the proxy shares it, and yields instead of spinning");
	return gpul_cpu_reserve(p->desc.pin, p->desc.pin == GPUL_PROXY_PIN_AUTO ? node : p->desc.pin_number, &p->cpu, err);
}

static void init_lock(gpul_proxy *p)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Set the affinity before the thread starts, so that its stack is allocated on the right NUMA node. */
static gpul_status create_thread(gpul_proxy *p, gpul_error *err)
{
	pthread_attr_t attr;
	cpu_set_t one;
	int failed;

	pthread_attr_init(&attr);
	CPU_ZERO(&one);
	if (p->cpu >= 0) {
		CPU_SET((size_t)p->cpu, &one);
		pthread_attr_setaffinity_np(&attr, sizeof one, &one);
	}
	p->started_ns = gpul_clock_ns();
	failed = gpul_thread_start(&p->thread, &attr, "gpul-proxy", gpul_proxy_loop, p);
	pthread_attr_destroy(&attr);
	if (failed == EINVAL && p->cpu >= 0)
		return gpul_fail(err, GPUL_EINVAL, p->cpu, "CPU %d does not exist, or is not allowed for this process (cgroup, cpuset)",
				 p->cpu);
	if (failed)
		return gpul_fail(err, GPUL_ESYS, failed, "cannot start the thread of a proxy: pthread_create: %s", strerror(failed));
	return GPUL_OK;
}

gpul_status gpul_proxy_start(const gpul_proxy_desc *desc, gpul_proxy **out, gpul_error *err)
{
	gpul_proxy *p = NULL;
	gpul_status st = check_desc(desc, err);

	if (st)
		return st;
	p = copy_desc(desc);
	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a proxy of %u FIFOs", desc->n_fifos);
	st = open_wake_fd(p, err);
	if (st)
		goto free_p;
	st = choose_cpu(p, err);
	if (st)
		goto close_wake;
	for (unsigned i = 0; i < p->desc.n_fifos; i++)
		gpul_fifo_forget_deaths(p->fifos[i]);
	init_lock(p);
	st = create_thread(p, err);
	if (st)
		goto give_cpu;
	*out = p;
	return GPUL_OK;
give_cpu:
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	gpul_cpu_unreserve(p->cpu);
close_wake:
	close(p->wake_fd);
free_p:
	free_all(p);
	return st;
}

/* ---- while the thread runs -------------------------------------------------------- */

static void wake_thread(gpul_proxy *p)
{
	const uint64_t one = 1;

	(void)!write(p->wake_fd, &one, sizeof one); /* fails only if the eventfd's counter is full, which wakes the thread, too */
}

/* Copy the error that ended the thread; the caller holds lock. */
static gpul_status copy_failure(const gpul_proxy *p, gpul_error *err)
{
	return p->status ? gpul_fail(err, p->status, p->failed.native, "%s", p->failed.text) : GPUL_OK;
}

/* Fail if the caller is the proxy's own thread, which would wait for itself. */
static gpul_status refuse_own_thread(const gpul_proxy *p, const char *what, gpul_error *err)
{
	if (!pthread_equal(pthread_self(), p->thread))
		return GPUL_OK;
	return gpul_fail(err, GPUL_EINVAL, 0, "%s was called by a handler of this proxy and would wait for itself: return an error instead",
			 what);
}

gpul_status gpul_proxy_failed(gpul_proxy *p, gpul_error *err)
{
	gpul_status st;

	pthread_mutex_lock(&p->lock);
	st = p->ended ? copy_failure(p, err) : GPUL_OK;
	pthread_mutex_unlock(&p->lock);
	return st;
}

gpul_status gpul_proxy_drain(gpul_proxy *p, int timeout_ms, gpul_error *err)
{
	const uint64_t until_ns = gpul_clock_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;
	const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000) };
	gpul_status st = refuse_own_thread(p, "gpul_proxy_drain", err);
	uint64_t mine;
	int waited = 0;

	if (st)
		return st;
	mine = 1 + atomic_fetch_add_explicit(&p->drains_wanted, 1, memory_order_release);
	wake_thread(p);
	pthread_mutex_lock(&p->lock);
	while (!p->ended && p->drains_done < mine && !waited)
		waited = timeout_ms < 0 ? pthread_cond_wait(&p->changed, &p->lock) : pthread_cond_timedwait(&p->changed, &p->lock, &until);
	if (p->drains_done < mine)
		st = p->ended ? copy_failure(p, err)
			      : gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
					  "the FIFOs did not become empty within %d ms (%llu triggers were handled by then): kernels are "
					  "still pushing triggers, or a handler is slow",
					  timeout_ms, (unsigned long long)atomic_load_explicit(&p->counts.triggers, memory_order_relaxed));
	pthread_mutex_unlock(&p->lock);
	return st;
}

void gpul_proxy_get_stats(gpul_proxy *p, gpul_proxy_stats *out)
{
	struct gpul_proxy_counts *c = &p->counts;
	struct timespec used = { 0 };
	clockid_t clock;

	*out = (gpul_proxy_stats){
#define COPIED(what) .what = atomic_load_explicit(&c->what, memory_order_relaxed)
		COPIED(triggers), COPIED(batches),          COPIED(max_batch), COPIED(empty_polls), COPIED(sleeps),
		COPIED(slept_ns), COPIED(longest_sleep_ns), COPIED(late_ns),   COPIED(handler_ns),
#undef COPIED
		.cpu = p->cpu,
	};
	pthread_mutex_lock(&p->lock); /* keeps the thread from ending while its CPU clock is read */
	out->running = !p->ended;
	if (!p->ended && pthread_getcpuclockid(p->thread, &clock) == 0)
		clock_gettime(clock, &used);
	out->cpu_ns = p->ended ? p->cpu_ns : (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
	out->elapsed_ns = (p->ended ? p->ended_ns : gpul_clock_ns()) - p->started_ns;
	pthread_mutex_unlock(&p->lock);
}

gpul_status gpul_proxy_stop(gpul_proxy *p, gpul_error *err)
{
	gpul_status st;

	if (!p)
		return GPUL_OK;
	st = refuse_own_thread(p, "gpul_proxy_stop", err);
	if (st)
		return st;
	atomic_store_explicit(&p->stop, true, memory_order_release);
	wake_thread(p);
	pthread_join(p->thread, NULL);
	st = copy_failure(p, err);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	gpul_cpu_unreserve(p->cpu);
	close(p->wake_fd);
	free_all(p);
	return st;
}
