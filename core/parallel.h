/* parallel.h — one function on several threads: the threads share the work out among themselves, for example by an
 * atomic counter in their context. */
#ifndef GPULOAD_CORE_PARALLEL_H
#define GPULOAD_CORE_PARALLEL_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_TEAM_MAX = 64 };

typedef struct gpul_team {
	pthread_t threads[GPUL_TEAM_MAX];
	unsigned n_threads; /* that were started */
	void (*work)(void *context);
	void *context;
} gpul_team;

/** The number of CPUs that this process may run on (its affinity mask), at least 1. */
unsigned gpul_cpus(void);

/** Start up to n_threads threads (at most GPUL_TEAM_MAX) that call work(context) once each.  A system that refuses
 * threads gives fewer, or none: the work must not depend on their number.  End with gpul_team_join(). */
void gpul_team_start(gpul_team *team, unsigned n_threads, void (*work)(void *context), void *context);
/** Wait until all of them have returned. */
void gpul_team_join(gpul_team *team);

/** Call work(context) on n_threads threads in all, of which the caller is one; returns when all have returned. */
void gpul_parallel(unsigned n_threads, void (*work)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif
