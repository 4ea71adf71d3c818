/* comm_run.h — a rank of gpuload comm: the objects that it opens, and the functions that measure.
 *
 *     comm_rank_open ─ comm_rank_measure (a thread measures; Ctrl-C aborts the communicator) ─ comm_rank_close */
#ifndef GPULOAD_CLI_COMM_COMM_RUN_H
#define GPULOAD_CLI_COMM_COMM_RUN_H

#include <pthread.h>

#include "cli/comm/comm_bench.h"
#include "cli/lib/progress.h"

/* Limit of the time that ranks wait for each other between calls.  It is long, because a rank may have to check much data. */
enum { COMM_MEET_MS = 300 * 1000 };

struct comm_rank {
	gpul_comm_job job;
	gpul_boot *boot; /* for the data that the command itself exchanges; NULL: not open */
	const gpul_driver *drv;
	gpul_comm *comm;
	CUstream stream;
	CUdeviceptr send, recv; /* two buffers of buffer_bytes each */
	size_t buffer_bytes;
	bool registered;            /* the buffers are windows, allocated by gpul_comm_alloc() */
	unsigned char *staging;     /* STAGING_BYTES of page-locked memory */
	struct comm_tracer *tracer; /* see comm_trace.h; NULL without --trace */

	atomic_bool stop;     /* set to request that the rank ends soon */
	atomic_uint permille; /* completed part of the measurement, in thousandths */
	struct progress progress;
	pthread_mutex_t output; /* held while the progress line or rows are printed */
};

/** Open the driver and join the job.
 *
 * Returns the same status on all ranks, unless a rank has died: then each rank's error names it.
 *
 * @place    devices, transport, time-out
 * @options  further options of the communicator; job, device, transport and timeout_ms are set here
 * @job      copied
 * @out      released by comm_rank_close(), even after a failure
 * Errors  as gpul_driver_open(), gpul_boot_open(), gpul_comm_create()
 * Threads the main thread */
gpul_status comm_rank_open(const struct comm_place *place, const gpul_comm_options *options, const gpul_comm_job *job,
			   struct comm_rank *out, gpul_error *err);
void comm_rank_close(struct comm_rank *r);

/** Print text that the progress line does not interrupt.
 *
 * @r  an open rank
 * @o  freed, even on failure
 * Errors  GPUL_ESYS the output could not be written; GPUL_ENOMEM
 * Threads any thread of the command */
gpul_status comm_rank_print(struct comm_rank *r, struct out *o, gpul_error *err);

/** Allocate the buffers; all ranks call it.
 *
 * @r           an open rank
 * @n_bytes     size of each of the two buffers
 * @registered  true: allocate memory that the other ranks map
 * Errors  GPUL_ENOMEM, GPUL_ECUDA, GPUL_ECOMM
 * Threads one at a time */
gpul_status comm_rank_allocate(struct comm_rank *r, size_t n_bytes, bool registered, gpul_error *err);

/** Describe this rank to the others, and get the descriptions of all ranks.
 *
 * @r    an open rank
 * @all  array of one element for each rank
 * Errors  as gpul_boot_allgather()
 * Threads one at a time */
gpul_status comm_rank_introduce(struct comm_rank *r, struct comm_about *all, gpul_error *err);

/** Run a function in a thread, and wait for it; the main thread shows the progress and handles signals.
 *
 * @r         an open rank
 * @what      name of the work, for the progress line of rank 0
 * @function  measures; its context is current on the thread
 * @argument  for the function
 * Errors  those of the function; GPUL_ESYS native = ECANCELED after a signal
 * Threads the main thread */
gpul_status comm_rank_run(struct comm_rank *r, const char *what,
			  gpul_status (*function)(struct comm_rank *r, void *argument, gpul_error *err), void *argument, gpul_error *err);

/** Wait for a start time on which all ranks of this host agree.  All hosts start after the last rank has called this function, with
 * differences of up to the latency of the network.
 *
 * @r       an open rank; all ranks call it
 * Errors  as gpul_boot_allgather()
 * Threads one at a time */
gpul_status comm_start_together(struct comm_rank *r, gpul_error *err);

/** Exchange the times that the ranks have measured.
 *
 * @r       an open rank; all ranks call it
 * @us      the time of this rank
 * @out     us, least_us and mean_us are set, the same on all ranks
 * Errors  as gpul_boot_allgather()
 * Threads one at a time */
gpul_status comm_exchange_times(struct comm_rank *r, double us, struct comm_figures *out, gpul_error *err);

/** Time calls: warm-up calls, then calls back to back, and one wait; the ranks start together.
 *
 * @r       an open rank
 * @s       sizes and offsets of the buffers
 * @q       iterations, warmups, graph
 * @in      true: in place
 * @out     us, least_us and mean_us are set, the same on all ranks
 * Errors  GPUL_ECOMM, GPUL_ECUDA
 * Threads one at a time
 * Source  nccl-tests, src/common.cu: BenchTime */
gpul_status comm_time_calls(struct comm_rank *r, const struct comm_shape *s, const struct comm_request *q, bool in,
			    struct comm_figures *out, gpul_error *err);

/** Make one call with new data, and compare the result.
 *
 * @r       an open rank
 * @s       sizes and offsets of the buffers
 * @q       dtype, op, root, graph
 * @in      true: in place
 * @seed    the same on all ranks, and different for each call
 * @out     wrong and differs are set, the same on all ranks
 * Errors  GPUL_ECOMM, GPUL_ECUDA, GPUL_ENOMEM
 * Threads one at a time */
gpul_status comm_check_call(struct comm_rank *r, const struct comm_shape *s, const struct comm_request *q, bool in, uint64_t seed,
			    struct comm_figures *out, gpul_error *err);

/** Measure all sizes, or find the plans of all sizes with --explain; on rank 0, print rows as they are measured.
 *
 * @r         an open rank
 * @argument  the struct comm_result; its q is complete
 * Errors  as comm_time_calls()
 * Threads one at a time */
gpul_status comm_measure(struct comm_rank *r, void *argument, gpul_error *err);

#endif
