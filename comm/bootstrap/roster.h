/* roster.h — the state of all ranks: one entry for each rank in memory that all ranks of the job share.
 *
 *     a sealed memfd that rank 0 creates
 *     ┌────────┬─────────────────────────────────────────────────────────────┐
 *     │ head   │ winner: the rank whose record is the failure of the job     │
 *     ├────────┼──────────┬───────┬─────┬───────────┬────────────────────────┤
 *     │ rank 0 │ lifeline │ state │ pid │ heartbeat │ record of a failure    │
 *     │ rank 1 │ ...      │       │     │           │                        │
 *     └────────┴──────────┴───────┴─────┴───────────┴────────────────────────┘
 *
 * A thread in each rank increments the rank's heartbeat and reads all entries every 5 ms; every 200 ms if the rank makes no calls and
 * its bell has not rung for a while (gpul_boot_bell()).  The death of a rank is detected by its lifeline (core/thread/lifeline.h) or by
 * the end of its socket.  The rank that detects it, or a rank that fails, writes a record; all ranks report the same, first record of
 * the job. */
#ifndef GPULOAD_COMM_BOOTSTRAP_ROSTER_H
#define GPULOAD_COMM_BOOTSTRAP_ROSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "comm/bootstrap/boot.h"
#include "core/thread/bell.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_roster_kind {
	GPUL_RANK_DIED = 1, /* the process of the rank ended without gpul_boot_close() */
	GPUL_RANK_FAILED,   /* the rank called gpul_boot_fail(), or one of its calls of boot.h failed */
	GPUL_RANK_STALLED,  /* a call of boot.h timed out, because the process of the rank is stopped (SIGSTOP) */
} gpul_roster_kind;

typedef struct gpul_roster_event {
	gpul_roster_kind kind;
	int rank;           /* the rank that died, failed or is stopped */
	pid_t pid;          /* process id of this rank, in its own pid namespace */
	int culprit;        /* the rank that caused the failure, which may be `rank` itself; -1: unknown */
	gpul_status status; /* GPUL_RANK_FAILED, GPUL_RANK_STALLED: status and code of the failure */
	int native;
	char text[200]; /* such as "rank 3 (pid 4711) died", or the text of the failure */
} gpul_roster_event;

typedef void gpul_roster_callback(void *arg, const gpul_roster_event *e);

/** Set a function to be called when the job fails: at the first death or failure of any rank, including this one.
 *
 * @b         the job
 * @on_event  called once, by the watch thread, normally within 10 ms, in an idle rank within 250 ms; immediately if the job has
 *            already failed. It must not call gpul_boot_close()
 * @arg       passed to on_event
 * Errors  GPUL_EINVAL a function has been set before */
gpul_status gpul_boot_watch(gpul_boot *b, gpul_roster_callback *on_event, void *arg, gpul_error *err);

/* Report a failure of this rank to all ranks. culprit: the rank that caused it; -1: unknown.
 * Only the first failure of the job counts.  Any thread may call. */
void gpul_boot_fail(gpul_boot *b, const gpul_error *why, int culprit);

/* True if the job has failed. *out is the first failure, which is the same in all ranks; out may be NULL.  Any thread may call. */
bool gpul_boot_failure(const gpul_boot *b, gpul_roster_event *out);

/** Return the failure of the job as this rank's error: `return gpul_boot_failed(b, err)`.  GPUL_OK if it has not failed.
 *
 * @b      the job
 * Errors  the status of the failure; GPUL_EUNSUPPORTED a rank died */
gpul_status gpul_boot_failed(const gpul_boot *b, gpul_error *err);

/* Find the rank, among those of a mask, whose heartbeat has not changed for the longest time and for at least for_ms: its process
 * is stopped (SIGSTOP), or gets no CPU time.  Returns -1 if there is no such rank.  Any thread may call. */
int gpul_boot_stalled(const gpul_boot *b, uint32_t ranks, unsigned for_ms);

/* Return the time in ms since this rank's watch thread last saw the heartbeat of a rank change.  Any thread may call. */
unsigned gpul_boot_silent_ms(const gpul_boot *b, int rank);

/* Publish a word with the ranks for which this rank waits outside of the calls of boot.h; comm/blame.c defines its bits.  Any
 * thread may call. */
void gpul_boot_set_waits(gpul_boot *b, uint64_t waits);
/* Return the word that a rank has published with gpul_boot_set_waits(); 0: none.  Any thread may call. */
uint64_t gpul_boot_waits(const gpul_boot *b, int rank);

/* Return the bell of this rank.  Code that uses the job outside of the calls of boot.h rings the bell, so that the watch thread
 * polls at its short period.  Threads of this process may also sleep until the bell rings.  Valid as long as b. */
gpul_bell *gpul_boot_bell(gpul_boot *b);

/* Return the process id of a rank, in its own pid namespace.  Any thread may call. */
pid_t gpul_boot_pid(const gpul_boot *b, int rank);

#ifdef __cplusplus
}
#endif

#endif
