/* residency.c — the maximum number of resident blocks, and the notice that the resident blocks may wait for others that cannot start. */
#include "core/clock.h"
#include "core/log.h"
#include "softcuda/exec/shown_name_internal.h"
#include "softcuda/exec/warp/warp_internal.h"

enum { LEAST_SMS = 132 };

unsigned gpul_exec_blocks_per_sm(uint64_t threads, uint64_t shared_bytes)
{
	unsigned by_threads, by_shared, n;

	if (!threads || threads > GPUL_EXEC_SM_THREADS || shared_bytes > GPUL_EXEC_SM_SHARED_BYTES)
		return 0;
	by_threads = GPUL_EXEC_SM_THREADS / (unsigned)((threads + LANES - 1) / LANES * LANES);
	by_shared = GPUL_EXEC_SM_SHARED_BYTES / (unsigned)(shared_bytes + GPUL_EXEC_RESERVED_SHARED_BYTES);
	n = by_threads < by_shared ? by_threads : by_shared;
	return n < GPUL_EXEC_SM_BLOCKS ? n : GPUL_EXEC_SM_BLOCKS;
}

unsigned gpul_exec_max_resident_blocks(const gpul_exec_machine *m, uint32_t threads, uint32_t shared_bytes)
{
	unsigned sms = m->options.n_workers > LEAST_SMS ? m->options.n_workers : LEAST_SMS;
	unsigned n = gpul_exec_blocks_per_sm(threads, shared_bytes);

	if (m->options.max_resident_blocks)
		return m->options.max_resident_blocks;
	return sms * (n ? n : 1);
}

static uint64_t count_resident(struct gpul_exec_launch *l)
{
	uint64_t ended = atomic_load(&l->n_ended), started = atomic_load(&l->next_block);

	if (started > l->n_blocks) /* next_block may be larger, because workers increment it even if no block is left */
		started = l->n_blocks;
	return started - ended;
}

bool gpul_launch_has_room(struct gpul_exec_launch *l)
{
	return atomic_load(&l->next_block) >= l->n_blocks || count_resident(l) < l->max_resident;
}

/* Log a notice for each launch that has its maximum of resident blocks; all resident blocks only wait.  The caller holds m->lock. */
static void report_stuck_launches(struct gpul_exec_machine *m)
{
	for (struct gpul_exec_launch *l = m->first; l; l = l->next) {
		uint64_t next = atomic_load(&l->next_block);

		if (gpul_launch_has_room(l) || next >= l->n_blocks || atomic_exchange(&l->stuck_reported, true))
			continue;
		gpul_log(GPUL_LOG_NOTICE, "softcuda",
			 "kernel %s: for %g s all %llu resident blocks have only waited, and %llu blocks have not started; if the resident "
			 "blocks wait for those, the kernel never ends, also on a GPU that holds no more blocks than these at once",
			 SHOWN_NAME(l->kernel->info.name), m->options.stuck_ms / 1e3, (unsigned long long)count_resident(l),
			 (unsigned long long)(l->n_blocks - next));
	}
}

/* Check whether any launch makes progress.  Workers count their rounds with progress in n_active_rounds; if the sum has not changed
 * for stuck_ms since seen_ns, all blocks only wait. */
void gpul_worker_check_stuck(struct worker *k)
{
	struct gpul_exec_machine *m = k->machine;
	uint64_t active = 0, now = gpul_clock_ns();

	for (unsigned n = 0; n < m->n_workers; n++)
		active += atomic_load_explicit(&m->workers[n].n_active_rounds, memory_order_relaxed);
	if (active != k->seen_active || !k->seen_ns) {
		k->seen_active = active;
		k->seen_ns = now;
	} else if (now - k->seen_ns >= m->options.stuck_ms * (uint64_t)1000000) {
		k->seen_ns = now;
		pthread_mutex_lock(&m->lock);
		report_stuck_launches(m);
		pthread_mutex_unlock(&m->lock);
	}
}
