/* comm.h — collectives and send/recv between the ranks of a job: processes, each with a GPU.
 *
 *     gpul_comm_create ──> communicator                       every rank of the job calls it
 *       gpul_comm_alloc: memory that all ranks map            (optional; makes large transfers faster)
 *       gpul_comm_allreduce(comm, send, recv, ..., stream)    launches a kernel on the stream
 *       gpul_comm_wait(comm, stream)                          the stream's work has ended, or a rank has failed
 *     gpul_comm_destroy
 *
 * All ranks call the same collectives in the same order, with the same counts and types.  Each call launches one kernel; the ranks'
 * kernels transfer the data themselves, through memory that the ranks map from each other, and wait for each other by counters in
 * that memory.  A call can be captured into a CUDA graph; the graph can be launched any number of times.
 *
 * Every wait of a kernel ends: when the data arrives, at an abort, at the end of another rank's process, or at the time-out.  After the
 * first failure the communicator is unusable: all later calls return that failure, which names the rank that caused it.
 *
 * A rank is a process.  Processes that share a GPU are time-sliced, and each message waits for a time slice.  Ranks can also be
 * threads of one process, whose kernels run concurrently on one GPU.  But some calls of NVIDIA's driver wait for all kernels of the
 * process, and these kernels may wait for the calling thread, until the time-out.  Loading a kernel is such a call, and so are
 * cuMemFree() and the instantiation of a graph.  A communicator whose ranks share a process therefore loads all its kernels when it
 * is created, and creates no graphs; the program must set CUDA_MODULE_LOADING=EAGER before it opens the driver.  None of this
 * applies to the software driver.
 *
 * Calls of one communicator may use several streams.  They run one after another, in the order of the calls.  A stream may be
 * destroyed as soon as a call has returned.  Captured calls keep their order within one capture, but are not ordered with calls
 * outside of it: the program must order the launches of its graphs and its other calls.  While a stream is being captured, in any
 * mode, calls on other streams are possible, and are not captured.
 *
 * When the communicator has not been used for a second, the library's threads sleep most of the time: together they wake about 20 times
 * per second.  A call wakes them, and so does gpul_comm_wait(); the launch of a graph with captured calls does not.  So after such a
 * pause, over the network, the calls of a graph may begin up to 150 ms late, unless gpul_comm_wait() is called for the stream. */
#ifndef GPULOAD_COMM_COMM_H
#define GPULOAD_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "comm/bootstrap/job.h"
#include "comm/types.h"
#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm gpul_comm; /* opaque; the struct is defined in comm_internal.h */
struct gpul_rdma_desc;

#define GPUL_COMM_NO_WINDOW SIZE_MAX

/* 0 or NULL is the default of every field except device, whose default is -1. */
typedef struct gpul_comm_options {
	const gpul_comm_job *job;         /* the job of this rank; NULL: as gpul_comm_job_find() finds it */
	int device;                       /* ordinal of this rank's GPU; -1: rank modulo the number of devices */
	gpul_comm_transport transport;    /* AUTO: the network between machines; otherwise device memory if both GPUs can access it,
					   * else host memory */
	const struct gpul_rdma_desc *net; /* options for opening the network (rdma/rdma.h); used during create only.  NULL: defaults */
	size_t net_window;                /* most bytes in flight over the network to this rank, from all ranks together
					   * (net/grants.h); GPUL_COMM_NO_WINDOW: no limit; 0: $GPULOAD_COMM_NET_WINDOW, else 8
					   * slots, or 4 with the software driver */
	gpul_comm_algo algo;              /* AUTO: chosen from the table (plan.h) */
	gpul_comm_proto proto;            /* AUTO: chosen from the table (plan.h) */
	unsigned n_blocks;                /* maximum number of blocks of a kernel; 0: chosen for the device */
	size_t slot_bytes;                /* bytes of data in one slot of a channel (layout.h); 0: chosen for the device */
	int timeout_ms;                   /* time-out of each wait in a kernel; 0 means 60 s; < 0: no time-out */
	int create_timeout_ms;            /* time-out of the whole gpul_comm_create(); the error names
					  * the ranks that have not arrived; 0 means 60 s */
	unsigned ranks_per_host;          /* for algorithms that use several hosts: 0: use the real hosts of the ranks; N: treat
					   * ranks 0 to N - 1 as the first host, N to 2 N - 1 as the second, and so on, for example
					   * groups of GPUs with faster links */
	const char *table;                /* file of gpuload comm tune; NULL: $GPULOAD_COMM_TABLE, else the built-in table */
} gpul_comm_options;

/** Join the job: connect to the other ranks, map their memory, and choose a transport to each of them.
 *
 * Every rank of the job calls it, with the same options except device.  Opens the primary context of the device.
 *
 * @drv      borrowed; must outlive *out
 * @options  copied; NULL: all defaults
 * @out      owned by the caller: gpul_comm_destroy(); untouched on failure
 * Errors  GPUL_EINVAL invalid options, or options that differ between ranks (the text names both ranks); GPUL_EUNSUPPORTED a forced
 *         transport that two ranks cannot use, or net->gpu_direct forces GPU-direct, which is not possible (the text gives the
 *         reason), or a table without rows for this device, number of ranks and transport; GPUL_EFORMAT a malformed table (the text
 *         gives the line); GPUL_ESYS native = ETIMEDOUT: some ranks did not arrive (the text lists them); GPUL_ECOMM: native =
 *         GPUL_COMM_RANK_DIED: a rank died; native = another cause: a rank that joined earlier has failed; GPUL_ENOMEM; GPUL_ECUDA
 * Threads any thread may call.  Later calls on *out come from one thread at a time, except where stated
 * Source  CUDA Driver API, Virtual Memory Management; the interface follows NCCL's ncclCommInitRank */
gpul_status gpul_comm_create(const gpul_driver *drv, const gpul_comm_options *options, gpul_comm **out, gpul_error *err);
/** Leave the job.  Waits until all ranks call it, because kernels of other ranks may still access this rank's memory; after a
 * failure it waits only for this rank's own kernels.  Over several hosts, rank 0 forwards failures: if a process dies after rank 0
 * has left, the other hosts do not learn of it, but by then all ranks have called this function.  NULL is fine; cannot fail. */
void gpul_comm_destroy(gpul_comm *c);

/* Properties of the communicator; valid as long as c.  Any thread may call. */
int gpul_comm_rank(const gpul_comm *c);
int gpul_comm_size(const gpul_comm *c);
int gpul_comm_device(const gpul_comm *c);
CUcontext gpul_comm_context(const gpul_comm *c); /* the context of the device; current on the thread that created c */

/* The path from this rank to another one. */
typedef struct gpul_comm_path {
	gpul_comm_transport transport; /* DEVICE, HOST or NET; never AUTO */
	pid_t pid;
	int device;       /* ordinal of the other rank's GPU in this process; -1: this process cannot access that GPU */
	char reason[256]; /* why this transport was chosen, in one sentence */
} gpul_comm_path;

/* Get the path to a rank, 0 to size - 1; for the calling rank, the reason is "itself".  Any thread may call. */
void gpul_comm_path_to(const gpul_comm *c, int rank, gpul_comm_path *out);

/* ---- memory ---------------------------------------------------------------------------------------------- */

/** Allocate device memory that all ranks map, if all pairs of ranks can.
 *
 * Every rank calls it, in the same order among the other calls.  A collective whose buffers are all in such memory reads and
 * writes the other ranks' buffers directly; with other memory it copies through channels.
 *
 * @c      communicator
 * @bytes  at least 1; may differ between ranks
 * @out    set; freed by gpul_comm_free() or with c
 * Errors  GPUL_EINVAL 0 bytes, or a persistent kernel runs; GPUL_EUNSUPPORTED 63 allocations are in use; GPUL_ENOMEM; GPUL_ECUDA;
 *         a failure of the communicator
 * Threads one at a time
 * Source  CUDA Driver API: cuMemCreate, cuMemImportFromShareableHandle */
gpul_status gpul_comm_alloc(gpul_comm *c, size_t bytes, CUdeviceptr *out, gpul_error *err);
/** Free memory from gpul_comm_alloc().  Every rank must call this; it waits for all ranks and for the device's work.
 *
 * @c   communicator
 * @at  the address that gpul_comm_alloc() gave; 0 is fine
 * Errors  GPUL_EINVAL another address, or a persistent kernel runs; GPUL_ECUDA; a failure of the communicator
 * Threads one at a time */
gpul_status gpul_comm_free(gpul_comm *c, CUdeviceptr at, gpul_error *err);

/* ---- collectives: each launches a kernel on a stream ----------------------------------------------------- */

/** Reduce the ranks' send buffers element by element; every rank gets the whole result, bit-identical on all ranks.
 *
 * The order of the operations depends on count, type and algorithm, not on timing.  Integers wrap around.  AVG divides the sum by the
 * number of ranks (integers are rounded towards zero). f16 and bf16 are rounded after each operation.
 *
 * @c       communicator
 * @send    device memory of count elements; any alignment that the type allows
 * @recv    device memory of count elements; equal to send, or not overlapping it
 * @count   elements; 0 is fine
 * @dtype   type of an element
 * @op      operation
 * @stream  the kernel is launched on it
 * Errors  GPUL_EINVAL an invalid type, operation or alignment, NULL, overlapping buffers, a count that exceeds the address space,
 *         or a persistent kernel runs; GPUL_ECUDA the launch failed; a failure of the communicator.  Failures while the kernel runs
 *         are reported by gpul_comm_wait() and gpul_comm_failed()
 * Threads one at a time
 * Source  NCCL User Guide, Collective Operations */
gpul_status gpul_comm_allreduce(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, gpul_comm_op op,
				CUstream stream, gpul_error *err);
/** Reduce like gpul_comm_allreduce(); rank r gets part r of the result.
 *
 * @c           communicator
 * @send        recv_count * size elements
 * @recv        recv_count elements; in place: send + rank * recv_count elements
 * @recv_count  elements of one part
 * @dtype       type of an element
 * @op          operation
 * @stream      the kernel is launched on it
 * Errors  as gpul_comm_allreduce()
 * Threads one at a time
 * Source  NCCL User Guide, Collective Operations */
gpul_status gpul_comm_reducescatter(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t recv_count, gpul_comm_dtype dtype,
				    gpul_comm_op op, CUstream stream, gpul_error *err);
/** Concatenate the ranks' send buffers, in the order of the ranks, on every rank.
 *
 * @c           communicator
 * @send        send_count elements; in place: recv + rank * send_count elements
 * @recv        send_count * size elements
 * @send_count  elements of one rank
 * @dtype       type of an element
 * @stream      the kernel is launched on it
 * Errors  as gpul_comm_allreduce()
 * Threads one at a time
 * Source  NCCL User Guide, Collective Operations */
gpul_status gpul_comm_allgather(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t send_count, gpul_comm_dtype dtype, CUstream stream,
				gpul_error *err);
/** Copy the root's send buffer to every rank's recv buffer.
 *
 * @c       communicator
 * @send    count elements; read on the root only
 * @recv    count elements; equal to send, or not overlapping it
 * @count   elements; 0 is fine
 * @dtype   type of an element
 * @root    rank
 * @stream  the kernel is launched on it
 * Errors  as gpul_comm_allreduce(); GPUL_EINVAL no such root
 * Threads one at a time
 * Source  NCCL User Guide, Collective Operations */
gpul_status gpul_comm_broadcast(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, int root,
				CUstream stream, gpul_error *err);
/** Send part p of the send buffer to rank p, and receive part p of the recv buffer from rank p, for every rank p.
 *
 * @c       communicator
 * @send    count * size elements
 * @recv    count * size elements; must not overlap send
 * @count   elements of one part
 * @dtype   type of an element
 * @stream  the kernel is launched on it
 * Errors  as gpul_comm_allreduce()
 * Threads one at a time
 * Source  MPI-4.1, MPI_Alltoall; NCCL User Guide, Point-to-point communication */
gpul_status gpul_comm_alltoall(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, CUstream stream,
			       gpul_error *err);

/** Send to a rank, which must call gpul_comm_recv() with the same number of bytes.
 *
 * Outside of a group, the kernel ends only when it has written the data into the channel.  A message that does not fit waits
 * for the receiver, and so does each message of protocol Simple in device memory, because it is written into the receiver's
 * buffer.  Two ranks that both send first, and receive afterwards, on the same stream, can therefore wait for each other
 * forever: put both calls into one group.
 *
 * @c       communicator
 * @send    count elements
 * @count   elements; 0 is fine: nothing is sent
 * @dtype   type of an element
 * @peer    a rank; the calling rank only within a group that also receives from it
 * @stream  the kernel is launched on it
 * Errors  as gpul_comm_allreduce(); GPUL_EINVAL no such rank, more than 64 calls in a group, or calls with different streams
 * Threads one at a time
 * Source  NCCL User Guide, Point-to-point communication */
gpul_status gpul_comm_send(gpul_comm *c, CUdeviceptr send, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream, gpul_error *err);
/** Receive from a rank, which must call gpul_comm_send().
 *
 * @c       communicator
 * @recv    count elements
 * @count   elements; 0 is fine: nothing is received
 * @dtype   type of an element
 * @peer    a rank; the calling rank only within a group that also sends to it
 * @stream  the kernel is launched on it
 * Errors  as gpul_comm_send().  If the number of bytes differs from the sender's, the communicator fails
 * Threads one at a time
 * Source  NCCL User Guide, Point-to-point communication */
gpul_status gpul_comm_recv(gpul_comm *c, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, int peer, CUstream stream, gpul_error *err);

/** Begin a group: gpul_comm_send() and gpul_comm_recv() are collected, and gpul_comm_group_end() launches them together, so
 * that they progress at the same time.  A collective within a group is launched by its own call.
 *
 * @c  communicator
 * Errors  GPUL_EINVAL a group has begun already
 * Threads one at a time
 * Source  NCCL User Guide, Group Calls */
gpul_status gpul_comm_group_begin(gpul_comm *c, gpul_error *err);
/** End a group and launch its sends and receives, all of which must have used the same stream.
 *
 * @c  communicator
 * Errors  GPUL_EINVAL no group has begun, or its calls used different streams; as gpul_comm_send()
 * Threads one at a time
 * Source  NCCL User Guide, Group Calls */
gpul_status gpul_comm_group_end(gpul_comm *c, gpul_error *err);

/* ---- failures -------------------------------------------------------------------------------------------- */

/* The cause of a communicator's failure. */
typedef struct gpul_comm_failure {
	enum gpul_comm_cause {
		GPUL_COMM_NO_FAILURE,
		GPUL_COMM_RANK_DIED,    /* the process of `rank` ended without gpul_comm_destroy() */
		GPUL_COMM_RANK_STALLED, /* a wait timed out, and the process of `rank` does not run (SIGSTOP) */
		GPUL_COMM_TIMED_OUT,    /* a wait for `rank`, whose process runs, timed out */
		GPUL_COMM_MISMATCH,     /* `rank` has made another call, or the same call with another size */
		GPUL_COMM_ABORTED,      /* `rank` called gpul_comm_abort() */
		GPUL_COMM_RANK_FAILED,  /* a driver call or a kernel of `rank` failed */
	} cause;
	int rank; /* the rank that caused it */
	char text[200];
} gpul_comm_failure;

/** Wait until all work of a stream has ended, or the communicator has failed.
 *
 * @c       communicator
 * @stream  stream
 * Errors  GPUL_ECOMM the communicator has failed; native = the gpul_comm_cause, the text names the rank; GPUL_ECUDA
 * Source  cuStreamQuery */
gpul_status gpul_comm_wait(gpul_comm *c, CUstream stream, gpul_error *err);
/** Returns true if the communicator has failed, and then fills in *out unless out is NULL.  Any thread may call. */
bool gpul_comm_failed(const gpul_comm *c, gpul_comm_failure *out);
/** Abort the communicator: on all ranks, its running kernels end within a few milliseconds, and later calls fail.  Any
 * thread may call; cannot fail. */
void gpul_comm_abort(gpul_comm *c);

#ifdef __cplusplus
}
#endif

#endif
