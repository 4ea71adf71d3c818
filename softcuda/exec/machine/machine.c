/* machine.c — starts and stops the worker threads of a machine, and pauses them. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/thread/thread.h"
#include "softcuda/exec/machine/nest_internal.h"

enum { SCRATCH_BYTES = 4 * 512 };

/* Start the worker threads.  Fails only if no thread can be started; fewer threads than requested are enough.  The caller holds m->lock. */
static gpul_status start_workers(gpul_exec_machine *m, gpul_error *err)
{
	unsigned n = 0;

	m->workers = calloc(m->n_workers, sizeof *m->workers);
	for (; m->workers && n < m->n_workers; n++) {
		struct worker *k = &m->workers[n];
		char name[32];

		k->machine = m;
		k->index = n;
		k->scratch = aligned_alloc(64, SCRATCH_BYTES);
		for (unsigned d = 0; d < GPUL_EXEC_MAX_DEVICES; d++)
			gpul_range_cache_init(&k->cache[d], m->memory, d);
		snprintf(name, sizeof name, "gpul-worker-%u", n);
		if (!k->scratch || gpul_thread_start(&k->thread, NULL, name, gpul_worker_main, k)) {
			free(k->scratch);
			break;
		}
	}
	if (!n) {
		free(m->workers);
		m->workers = NULL;
		return gpul_fail(err, GPUL_ENOMEM, 0, "could not start a worker thread");
	}
	m->n_workers = n;
	m->started = true;
	return GPUL_OK;
}

gpul_status gpul_machine_list(gpul_exec_machine *m, gpul_exec_launch *l, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	pthread_mutex_lock(&m->lock);
	if (!m->started)
		st = start_workers(m, err);
	if (!st) {
		gpul_launch_list(l);
		if (m->n_sleeping && l->n_blocks == 1)
			pthread_cond_signal(&m->work);
		else if (m->n_sleeping)
			pthread_cond_broadcast(&m->work);
	}
	pthread_mutex_unlock(&m->lock);
	return st;
}

void gpul_machine_stop(gpul_exec_machine *m)
{
	atomic_store(&m->stops, true);
	pthread_mutex_lock(&m->lock);
	pthread_cond_broadcast(&m->work);
	pthread_mutex_unlock(&m->lock);
}

/* A worker increments worker.turns when a turn of a block begins and when it ends, so the counter is odd while the worker executes
 * instructions.  At the start of a turn, it increments the counter, then reads the generation of the memory table.  Whoever removed a
 * range has incremented the generation before the counter is read here.  All these accesses are sequentially consistent, so if the
 * counter is even here, the worker's next turn reads the new generation, and discards its cached ranges. */
void gpul_exec_machine_settle(gpul_exec_machine *m)
{
	unsigned n_workers;

	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	n_workers = m->started ? m->n_workers : 0;
	pthread_mutex_unlock(&m->lock);
	for (unsigned n = 0; n < n_workers; n++) {
		uint64_t then = atomic_load(&m->workers[n].turns);

		while (then % 2 && atomic_load(&m->workers[n].turns) == then)
			sched_yield();
	}
}

void gpul_exec_machine_pause(gpul_exec_machine *m)
{
	if (!m)
		return;
	atomic_store(&m->paused, true); /* set before worker.turns is read below, so that no worker begins another turn afterwards */
	gpul_exec_machine_settle(m);
}

void gpul_exec_machine_resume(gpul_exec_machine *m)
{
	if (m)
		atomic_store(&m->paused, false);
}

void gpul_exec_machine_destroy(gpul_exec_machine *m)
{
	if (!m)
		return;
	atomic_store(&m->quits, true);
	gpul_machine_stop(m);
	for (unsigned n = 0; m->started && n < m->n_workers; n++) {
		pthread_join(m->workers[n].thread, NULL);
		gpul_worker_free_memory(&m->workers[n]);
	}
	gpul_nesting_destroy(m);
	gpul_heap_destroy(m->heap);
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->work);
	free(m->workers);
	free(m);
}
