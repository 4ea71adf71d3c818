/* parallel.h — runs one function on several threads, which divide the work, for example by an atomic counter in its context. */
#ifndef GPULOAD_CORE_THREAD_PARALLEL_H
#define GPULOAD_CORE_THREAD_PARALLEL_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_TEAM_MAX = 64 };

typedef struct gpul_team {
	pthread_t threads[GPUL_TEAM_MAX];
	unsigned n_threads; /* number of started threads */
	void (*work)(void *context);
	void *context;
} gpul_team;

/** Return the number of CPUs that this process may run on (its affinity mask), at least 1. */
unsigned gpul_cpus(void);

/** Start up to n_threads threads (at most GPUL_TEAM_MAX) that each call work(context) once.  If the system refuses
 * threads, there are fewer or none, so the work must not depend on their number.  End with gpul_team_join(). */
void gpul_team_start(gpul_team *team, unsigned n_threads, void (*work)(void *context), void *context);
/** Wait until all threads of the team have returned. */
void gpul_team_join(gpul_team *team);

/** Call work(context) on the calling thread and on n_threads - 1 others; returns when all calls have returned. */
void gpul_parallel(unsigned n_threads, void (*work)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif
