/* comm_clock.h — the clocks of several hosts: converts times of each host to the clock of rank 0's host.
 *
 *     rank 0   ││││ burst        │ check        │ check       ││││ burst      a burst: many round trips with each host
 *              └── timed calls ──┴──────────────┴── ... ──────┘               a check: a few, after the calls of each size
 *
 * Times are converted by a line through the shortest round trip of each burst.  Between the bursts, the error is at most half the
 * longer of the two round trips, plus the deviation of the two clocks from a line: the rate of a quartz depends on its temperature, and
 * NTP adjusts it.  The bound assumes that the relative rate changes by at most COMM_CLOCK_WANDER; a check that contradicts the line
 * enlarges the bound. */
#ifndef GPULOAD_CLI_COMM_TRACE_COMM_CLOCK_H
#define GPULOAD_CLI_COMM_TRACE_COMM_CLOCK_H

#include "cli/fifo/clock/fifo_clock.h"
#include "comm/bootstrap/boot.h"

enum { COMM_CLOCK_BURST = 200, COMM_CLOCK_CHECK = 8 };

/* The assumed change of the relative rate of two clocks during a run: 1 ppm. */
#define COMM_CLOCK_WANDER 1e-6

struct comm_host_clock {
	/* converts times of the host's clock (in place of a GPU's clock) to the clock of rank 0's host */
	struct fifo_clock_relation relation;
	int64_t offset_ns;  /* rank 0's clock minus the host's, at the first burst */
	double drift_bound; /* largest error of relation.drift */
};

/** Compute the relation of a host's clock to rank 0's.
 *
 * @stamps  time stamps of the host, in the order in which they were taken
 * @n       their number: at least 2 n_burst
 * @n_burst stamps in each of the two bursts, which determine the conversion; those in between check it
 * @out     filled in
 * Errors  GPUL_EINVAL fewer than 2 n_burst, or n_burst 0, or a stamp that ends before it begins
 * Source  F. Cristian, Probabilistic clock synchronization, 1989 */
gpul_status comm_clock_relate(const gpul_boot_stamp *stamps, size_t n, size_t n_burst, struct comm_host_clock *out, gpul_error *err);

/* The time stamps of all hosts, which the functions below take and evaluate. */
struct comm_clocks;

/** Allocate memory for time stamps, and take the first burst of them.  All ranks of the job call this and the next two functions.
 *
 * @boot  borrowed; must outlive *out
 * @out   owned by the caller: comm_clocks_destroy(); untouched on failure
 * Errors  as gpul_boot_clocks(); GPUL_ENOMEM
 * Threads one at a time */
gpul_status comm_clocks_create(gpul_boot *boot, struct comm_clocks **out, gpul_error *err);
void comm_clocks_destroy(struct comm_clocks *c); /* accepts NULL */

/** Take a few time stamps between the bursts, to check the line that converts the times.
 *
 * @c  borrowed
 * Errors  as gpul_boot_clocks(); GPUL_ENOMEM
 * Threads one at a time */
gpul_status comm_clocks_check(struct comm_clocks *c, gpul_error *err);

/** Take the last burst of time stamps, and compute how the clock of each host relates to that of rank 0's host.
 *
 * @c    borrowed
 * @out  rank 0: GPUL_COMM_MAX_RANKS entries, by the number of the host; not used by the other ranks
 * Errors  as gpul_boot_clocks() and comm_clock_relate(); GPUL_ENOMEM
 * Threads one at a time */
gpul_status comm_clocks_finish(struct comm_clocks *c, struct comm_host_clock *out, gpul_error *err);

#endif
