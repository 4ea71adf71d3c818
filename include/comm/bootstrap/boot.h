/* boot.h — the meeting of the ranks of a job, and what they exchange before they have channels.
 *
 *     rank 0                                        ranks 1 ... N-1
 *     creates the roster, listens on JOB.sock       connect, as soon as rank 0 listens
 *            │ <──────────────── HELLO ──────────────────── │   version, rank, size, job name
 *            │ ───────────────── WELCOME ─────────────────> │   the roster's descriptor (or REFUSED + reason)
 *            │ <──────────────── READY ──────────────────── │   the rank is in the roster and watches the others
 *     all ready: removes JOB.sock
 *            │ ───────────────── GO ──────────────────────> │
 *            ┊                                              ┊
 *            │ <───────── blocks and descriptors ─────────> │   gpul_boot_allgather(), _barrier(), _exchange_fds() ...
 *
 * Over several hosts (hosts/), the leader of each host, its lowest rank, plays rank 0 for its host, and the leaders are
 * connected to rank 0 over TCP.
 *
 * The star of sockets is for set-up: its calls take tens of microseconds.  Every wait has a deadline, and its message names
 * the ranks that have not arrived.  A failed call fails the job: every rank reports the same cause (roster.h). */
#ifndef GPULOAD_COMM_BOOTSTRAP_BOOT_H
#define GPULOAD_COMM_BOOTSTRAP_BOOT_H

#include <stddef.h>
#include <stdint.h>

#include "comm/bootstrap/job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_boot gpul_boot;  /* opaque: boot_internal.h */

enum { GPUL_BOOT_MAX_FDS = 64 };  /* descriptors that a rank may offer in one call */

/** Meet the other ranks of the job.  Returns when all ranks have arrived.
 *
 * Several ranks may be threads of one process.  A job may meet again, after all its ranks have met, under the same name.
 *
 * @job         copied
 * @timeout_ms  the time that this rank waits for the others; -1: without limit
 * @out         owned by the caller: gpul_boot_close(); untouched on failure
 * Errors  GPUL_EINVAL the job is not valid; GPUL_EUNSUPPORTED the folder of the sockets is not safe, two processes have one
 *         rank, another size, version or secret, or a rank ended or failed; GPUL_ENOMEM; GPUL_ESYS native = ETIMEDOUT: the time is over (the
 *         message names the ranks that did not arrive)
 * Source  Linux unix(7), memfd_create(2), tcp(7) */
gpul_status gpul_boot_open(const gpul_comm_job *job, int timeout_ms, gpul_boot **out, gpul_error *err);

/* Leave the job; the other ranks do not report this as a death.  Over several hosts, it may wait up to a second if the network does
 * not accept the goodbye message.  NULL is fine; cannot fail.  No other thread may use the boot, and the callback of
 * gpul_boot_watch() must not call this. */
void gpul_boot_close(gpul_boot *b);

/* This process' rank, and the number of ranks. */
int gpul_boot_rank(const gpul_boot *b);
int gpul_boot_size(const gpul_boot *b);

/* The hosts of the job: their number, and the index of a rank's host, from 0, in the order of the first rank of each.  Ranks of
 * one host can share memory.  Valid for all ranks, 0 to size - 1. */
int gpul_boot_n_hosts(const gpul_boot *b);
int gpul_boot_host(const gpul_boot *b, int rank);
/* The name of a rank's host; valid as long as b. */
const char *gpul_boot_host_name(const gpul_boot *b, int rank);

/** Give a block of bytes to all ranks, and get the block of each rank.  All ranks call it, with the same size.
 *
 * @b           the same call in all ranks, in the same order
 * @mine        borrowed: this rank's block
 * @bytes       size of a block, the same in all ranks; may be 0.  Meant for up to some MiB
 * @all         size * bytes bytes, filled in the order of the ranks; undefined on failure
 * @timeout_ms  -1: without limit
 * Errors  GPUL_EINVAL a call by two threads at once; GPUL_EUNSUPPORTED the ranks make different calls, or a rank ended, left or
 *         failed; GPUL_ESYS native = ETIMEDOUT: the time is over (the message names the ranks).  After a failure, all further
 *         calls fail
 * Threads any thread, but one call at a time */
gpul_status gpul_boot_allgather(gpul_boot *b, const void *mine, size_t bytes, void *all, int timeout_ms, gpul_error *err);

/* One round trip between rank 0 and the first rank of another host: times of gpul_clock_ns() of both hosts. */
typedef struct gpul_boot_stamp {
	uint64_t before_ns, after_ns;  /* rank 0's clock: before the question, after the
					* answer */
	uint64_t there_ns;             /* the other host's clock, at an unknown moment in
					* between */
} gpul_boot_stamp;

/** Compare the clocks of the hosts: rank 0 asks the first rank of each other host for its time, again and again.  All ranks call
 * it; those that are not asked return at once.
 *
 * @b           the same call in all ranks, in the same order
 * @n_rounds    round trips with each host, the same in all ranks
 * @out         rank 0: gpul_boot_n_hosts() * n_rounds stamps, in the order of the hosts; those of its own host are 0.  Not used by
 *              the other ranks
 * @timeout_ms  -1: without limit
 * Errors  as gpul_boot_allgather()
 * Threads any thread, but one call at a time
 * Source  F. Cristian, Probabilistic clock synchronization, 1989 */
gpul_status gpul_boot_clocks(gpul_boot *b, unsigned n_rounds, gpul_boot_stamp *out, int timeout_ms, gpul_error *err);

/* Limit all further calls of this rank, in addition to their own time-outs.  deadline_ns: all of them together end at that point of
 * gpul_clock_ns(), which is the end of limit_ms; UINT64_MAX: none.  silent_ms: a rank that this one waits for, and whose process
 * does not run for that long (SIGSTOP), fails the job; 0: no limit.  Not during a call. */
void gpul_boot_limit(gpul_boot *b, uint64_t deadline_ns, int limit_ms, int silent_ms);

/** Wait until all ranks have called this.
 *
 * @b           the same call in all ranks, in the same order
 * @timeout_ms  -1: without limit
 * Errors  as gpul_boot_allgather()
 * Threads any thread, but one call at a time */
gpul_status gpul_boot_barrier(gpul_boot *b, int timeout_ms, gpul_error *err);

/** Wait until all ranks have called this, however long they work before they do.
 *
 * @b          the same call in all ranks, in the same order
 * @silent_ms  a rank whose process does not run for that long (SIGSTOP) fails the job; -1: without limit
 * Errors  as gpul_boot_allgather()
 * Threads any thread, but one call at a time */
gpul_status gpul_boot_last_barrier(gpul_boot *b, int silent_ms, gpul_error *err);

/** Give descriptors to all ranks of this host, and get those of each of them.  All ranks of the job call it, with the same
 * number; the places of ranks of other hosts are -1.
 *
 * @b           the same call in all ranks, in the same order
 * @mine        borrowed: n_fds descriptors of this rank; -1: no descriptor in this place
 * @n_fds       number of descriptors of each rank, at most GPUL_BOOT_MAX_FDS
 * @all         size * n_fds entries: all[rank * n_fds + i] is the i-th of a rank, or -1; owned by the caller, close-on-exec;
 *              this rank's own are duplicates.  All -1 on failure
 * @timeout_ms  -1: without limit
 * Errors  as gpul_boot_allgather(); GPUL_ESYS also: the limit of open files (ulimit -n)
 * Threads any thread, but one call at a time
 * Source  Linux unix(7): SCM_RIGHTS */
gpul_status gpul_boot_exchange_fds(gpul_boot *b, const int *mine, unsigned n_fds, int *all, int timeout_ms, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
