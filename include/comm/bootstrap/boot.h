/* boot.h — the bootstrap of a job: how its ranks find each other, and exchange data before they have channels.
 *
 *     rank 0                                        ranks 1 ... N-1
 *     creates the roster, listens on JOB.sock       connect as soon as rank 0 listens
 *            │ <──────────────── HELLO ──────────────────── │   version, rank, size, job name
 *            │ ───────────────── WELCOME ─────────────────> │   the roster's descriptor (or REFUSED + reason)
 *            │ <──────────────── READY ──────────────────── │   the rank is in the roster and watches the others
 *     all ready: removes JOB.sock
 *            │ ───────────────── GO ──────────────────────> │
 *            ┊                                              ┊
 *            │ <───────── blocks and descriptors ─────────> │   gpul_boot_allgather(), _barrier(), _exchange_fds() ...
 *
 * Over several hosts (hosts/), the lowest rank of each host is its leader, and acts for its host as rank 0 does above;
 * the leaders are connected to rank 0 over TCP.
 *
 * The sockets are meant for set-up: each call takes tens of microseconds.  Every wait has a deadline; the message of a time-out
 * names the ranks that have not arrived.  A failed call fails the job: every rank reports the same cause (roster.h). */
#ifndef GPULOAD_COMM_BOOTSTRAP_BOOT_H
#define GPULOAD_COMM_BOOTSTRAP_BOOT_H

#include <stddef.h>
#include <stdint.h>

#include "comm/bootstrap/job.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_boot gpul_boot; /* opaque; the struct is defined in boot_internal.h */

/* maximum number of descriptors that a rank may offer in one call */
enum { GPUL_BOOT_MAX_FDS = 64 };

/** Connect to the other ranks of the job.  Returns when all ranks have arrived.
 *
 * Several ranks may be threads of one process.  Once all ranks have connected, another job may be opened under the same name.
 *
 * @job         copied
 * @timeout_ms  how long this rank waits for the others; -1: without limit
 * @out         owned by the caller: gpul_boot_close(); untouched on failure
 * Errors  GPUL_EINVAL the job is not valid; GPUL_EUNSUPPORTED the folder of the sockets is not safe, two processes have the same rank, or
 *         different sizes, versions or secrets, or a rank ended or failed; GPUL_ENOMEM; GPUL_ESYS native = ETIMEDOUT: time-out (the message
 *         names the ranks that did not arrive)
 * Source  Linux unix(7), memfd_create(2), tcp(7) */
gpul_status gpul_boot_open(const gpul_comm_job *job, int timeout_ms, gpul_boot **out, gpul_error *err);

/* Leave the job; the other ranks do not treat this as the death of a process.  Over several hosts, it may wait up to a second if
 * the network does not accept the goodbye message.  NULL is fine; cannot fail.  No other thread may use the boot, and the callback
 * of gpul_boot_watch() must not call this. */
void gpul_boot_close(gpul_boot *b);

/* Return this rank, and the number of ranks. */
int gpul_boot_rank(const gpul_boot *b);
int gpul_boot_size(const gpul_boot *b);

/* Return the number of the job's hosts, and the index of a rank's host, from 0.  Hosts are in the order of their lowest ranks.  Ranks
 * of one host can share memory.  Valid for all ranks, 0 to size - 1. */
int gpul_boot_n_hosts(const gpul_boot *b);
int gpul_boot_host(const gpul_boot *b, int rank);
/* Return the name of a rank's host; valid as long as b. */
const char *gpul_boot_host_name(const gpul_boot *b, int rank);

/** Send a block of bytes to all ranks, and receive the block of each rank.  All ranks call it, with the same size.
 *
 * @b           the same call in all ranks, in the same order
 * @mine        borrowed: this rank's block
 * @bytes       size of a block, the same in all ranks; may be 0.  Meant for up to some MiB
 * @all         size * bytes bytes, filled in the order of the ranks; undefined on failure
 * @timeout_ms  -1: without limit
 * Errors  GPUL_EINVAL two threads call at the same time; GPUL_EUNSUPPORTED the ranks make different calls, or a rank ended, left or
 *         failed; GPUL_ESYS native = ETIMEDOUT: time-out (the message names the ranks).  After a failure, all further calls fail
 * Threads any thread, but one call at a time */
gpul_status gpul_boot_allgather(gpul_boot *b, const void *mine, size_t bytes, void *all, int timeout_ms, gpul_error *err);

/* One measurement: a message from rank 0 to the first rank of another host, and the reply, with times of gpul_clock_ns() of both hosts. */
typedef struct gpul_boot_stamp {
	uint64_t before_ns, after_ns; /* rank 0's clock, before it sent the message and after the reply came */
	uint64_t there_ns;            /* the other host's clock, between these two times */
} gpul_boot_stamp;

/** Compare the clocks of the hosts: rank 0 asks the lowest rank of each other host n_rounds times for its time.  All ranks call
 * this; ranks that take no part return immediately.
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

/* Limit all further calls of this rank, in addition to their own time-outs.  deadline_ns: they fail at this time of
 * gpul_clock_ns(), which is the end of limit_ms; UINT64_MAX: no deadline.  silent_ms: if a rank that this one waits for does not
 * run for this time (SIGSTOP), the job fails; 0: no limit.  Must not be called during a call. */
void gpul_boot_limit(gpul_boot *b, uint64_t deadline_ns, int limit_ms, int silent_ms);

/** Wait until all ranks have called this.
 *
 * @b           the same call in all ranks, in the same order
 * @timeout_ms  -1: without limit
 * Errors  as gpul_boot_allgather()
 * Threads any thread, but one call at a time */
gpul_status gpul_boot_barrier(gpul_boot *b, int timeout_ms, gpul_error *err);

/** Wait until all ranks have called this, without a time-out for ranks whose processes run.
 *
 * @b          the same call in all ranks, in the same order
 * @silent_ms  if the process of a rank does not run for this time (SIGSTOP), the job fails; -1: without limit
 * Errors  as gpul_boot_allgather()
 * Threads any thread, but one call at a time */
gpul_status gpul_boot_last_barrier(gpul_boot *b, int silent_ms, gpul_error *err);

/** Send descriptors to all ranks of this host, and receive theirs.  All ranks of the job call it, with the same number of
 * descriptors; the entries of ranks of other hosts are -1.
 *
 * @b           the same call in all ranks, in the same order
 * @mine        borrowed: n_fds descriptors of this rank; -1: no descriptor in this entry
 * @n_fds       number of descriptors of each rank, at most GPUL_BOOT_MAX_FDS
 * @all         size * n_fds entries: all[rank * n_fds + i] is descriptor i of a rank, or -1; owned by the caller,
 *              close-on-exec; this rank's own are duplicates.  All -1 on failure
 * @timeout_ms  -1: without limit
 * Errors  as gpul_boot_allgather(); GPUL_ESYS also: the limit of open files (ulimit -n)
 * Threads any thread, but one call at a time
 * Source  Linux unix(7): SCM_RIGHTS */
gpul_status gpul_boot_exchange_fds(gpul_boot *b, const int *mine, unsigned n_fds, int *all, int timeout_ms, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
