/* parallel.c — starts and joins teams of threads. */
#include "core/thread/parallel.h"

#include <sched.h>
#include <stdlib.h>

#include "core/thread/thread.h"

enum { MAX_CPUS = 1 << 16 };

unsigned gpul_cpus(void)
{
	int n = 0;

	/* sched_getaffinity() fails with EINVAL if the set is smaller than the kernel's; cpu_set_t has 1,024 CPUs. */
	for (size_t size = CPU_SETSIZE; !n && size <= MAX_CPUS; size *= 2) {
		const size_t bytes = CPU_ALLOC_SIZE(size);
		cpu_set_t *cpus = CPU_ALLOC(size);

		if (cpus && sched_getaffinity(0, bytes, cpus) == 0)
			n = CPU_COUNT_S(bytes, cpus);
		CPU_FREE(cpus);
	}
	return n > 0 ? (unsigned)n : 1;
}

static void *team_main(void *argument)
{
	const gpul_team *team = argument;

	team->work(team->context);
	return NULL;
}

void gpul_team_start(gpul_team *team, unsigned n_threads, void (*work)(void *context), void *context)
{
	team->work = work;
	team->context = context;
	team->n_threads = 0;
	while (team->n_threads < n_threads && team->n_threads < GPUL_TEAM_MAX &&
	       gpul_thread_start(&team->threads[team->n_threads], NULL, "gpul-team", team_main, team) == 0)
		team->n_threads++;
}

void gpul_team_join(gpul_team *team)
{
	while (team->n_threads)
		pthread_join(team->threads[--team->n_threads], NULL);
}

void gpul_parallel(unsigned n_threads, void (*work)(void *context), void *context)
{
	gpul_team team;

	gpul_team_start(&team, n_threads > 1 ? n_threads - 1 : 0, work, context);
	work(context);
	gpul_team_join(&team);
}
