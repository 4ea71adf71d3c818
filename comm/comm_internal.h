/* comm_internal.h — the state of a communicator, and the functions that the files of comm/ share. */
#ifndef GPULOAD_COMM_COMM_INTERNAL_H
#define GPULOAD_COMM_COMM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/bootstrap/roster.h"
#include "comm/calls.h"
#include "comm/comm.h"
#include "comm/layout.h"
#include "comm/net/mesh.h"
#include "comm/net/net_proxy.h"
#include "comm/persistent.h"
#include "comm/plan.h"
#include "comm/table.h"
#include "driver/context.h"
#include "loader/loader.h"
#include "memalloc/mem.h"

/* The information about a rank that the ranks exchange before memory is allocated. */
struct rank_info {
	char driver[8];
	char device_name[64];
	char device_uuid[16];
	int pid;
	uint32_t transport, plan, n_blocks, ranks_per_host;
	uint64_t slot_bytes;
	int64_t timeout_ms;
	uint64_t table_hash; /* hash of the tuning table, which must be the same on all ranks */
};

/* Memory from gpul_comm_alloc(): this rank's memory, and the memory of the other ranks as this rank maps it. */
struct window {
	gpul_mem *mine; /* this rank's memory; NULL: a free entry */
	gpul_mem *theirs[GPUL_COMM_MAX_PEERS];
	bool mapped; /* all ranks have mapped the memory */
};

/* A choice of algorithm and protocol for calls of up to max_bytes; the last choice of a call also applies to all larger sizes. */
struct choice {
	uint64_t max_bytes;
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	unsigned n_blocks, n_threads;
};

/* The memory of one kind, device or host, through which pairs of ranks communicate. */
struct arena {
	gpul_mem *mine; /* this rank's memory; NULL: no pair needs this kind */
	gpul_mem *theirs[GPUL_COMM_MAX_PEERS];
};

/* Memory of another rank into which this rank's proxy writes, with one registration for each connection. */
struct network_target {
	struct network_memory {
		gpul_rdma_remote data, steps, heads, asks, grants;
		uint64_t free_bytes; /* bytes of slots that may be in flight without a grant (net/grants.h) */
	} conns[GPUL_COMM_MAX_NICS];
	uint32_t step_stride;
	bool direct; /* the slots are in device memory (GPU-direct) */
};

/* The state of the connections with ranks on other machines: network.c. */
struct network {
	gpul_comm_mesh *mesh;       /* connections to ranks on other machines; NULL: no pair of the job needs them */
	gpul_mem *counters, *slots; /* NULL: no pair of this rank uses the network */
	bool direct;                /* true: the slots are in device memory (GPU-direct) */
	char why_staged[80];        /* reason why the slots are in host memory, if they are */
	/* Registrations with each NIC: the counters and slots that one other rank may write, registered for that rank only, and the
	 * slots from which this rank sends. */
	struct network_regions {
		gpul_rdma_region *words, *data, *mirror;
	} regions[GPUL_COMM_MAX_PEERS][GPUL_COMM_MAX_NICS];
	gpul_comm_proxy *proxy;
	uint64_t window_bytes; /* limit of the bytes of slots in flight to each NIC of this rank; 0: no limit */
	/* offsets of each pair's memory in `counters` and in `slots` */
	uint64_t counters_at[GPUL_COMM_MAX_PEERS], slots_at[GPUL_COMM_MAX_PEERS];
	struct network_target theirs[GPUL_COMM_MAX_PEERS];
};

/* The kernels, KERNEL_ring_allreduce_ll ..., and the PTX files that contain them: kernels/kernels.def. */
enum kernel_id {
#define KERNEL(name, ...) KERNEL_##name,
#include "comm/kernels/kernels.def"
	N_KERNELS
};

enum kernel_file {
#define FILE_ROW(name, header) KERNEL_FILE_##name,
#include "comm/kernels/kernels.def"
	N_KERNEL_FILES
};

/* The hosts of the ranks, for the algorithms tree and two-level. */
struct comm_hosts {
	int n;                              /* number of hosts */
	unsigned ranks_per_host;            /* number of ranks on each host; 0: the hosts have different numbers */
	int32_t order[GPUL_COMM_MAX_PEERS]; /* the ranks, host by host; the ranks of a host are in ascending order */
	unsigned place;                     /* index of this rank in `order` */
};

/* A recent call.  If it is repeated with the same arguments, its launch is kept as a CUDA graph. */
struct repeated {
	uint64_t used; /* value of the use counter at its last use; 0: free entry */
	enum kernel_id id;
	unsigned n_blocks, n_threads, n_calls;
	union {
		gpul_comm_work work;
		gpul_comm_few_transfers transfers;
	} argument;
	CUgraphExec exec; /* graph of the launch; NULL: launch with cuLaunchKernel() */
};

/* The state of blame.c, which reads the words in which each kernel publishes the rank for which it waits. */
struct wait_watch {
	uint64_t seen[GPUL_COMM_MAX_BLOCKS], seen_ns[GPUL_COMM_MAX_BLOCKS]; /* the last values of the words, and when they changed */
	uint64_t gap_ns[2], gaps_ns; /* the longest time between two changes of a word: before gaps_ns, and since gaps_ns */
	bool asked;                  /* a kernel of some rank has timed out, and that rank has asked which ranks each rank waits for */
	uint32_t ranks;              /* mask of the ranks for which this rank's kernels have waited since `asked` was set */
};

/* The most recent call (enqueue.c). */
struct last_call {
	CUevent ended; /* event recorded after the call, on the stream of the call */
	bool exists;
	bool has_id;                  /* stream_id is known */
	unsigned long long stream_id; /* from cuStreamGetId(): no other stream of the process ever has this id */
	cuuint64_t capture;           /* id of the stream capture to which the call belongs; 0: none */
};

enum { GPUL_COMM_REPLAYS = 16 };
struct replay {
	struct repeated entries[GPUL_COMM_REPLAYS];
	uint64_t clock;
	CUstream capture; /* stream on which launches are captured; NULL: not created yet */
	bool off;
};

struct gpul_comm {
	const gpul_driver *drv;
	gpul_context ctx;
	int device;
	gpul_boot *boot;
	int rank, n_ranks;
	gpul_comm_options options;
	bool interprets;
	struct rank_info infos[GPUL_COMM_MAX_PEERS];
	gpul_comm_path paths[GPUL_COMM_MAX_PEERS];
	bool direct;      /* all pairs of ranks use device memory */
	bool has_network; /* some pair of ranks uses the network */
	struct comm_hosts hosts;

	gpul_comm_sizes sizes;
	struct arena device_arena, host_arena;
	struct network network;
	gpul_mem *control_mem;
	gpul_comm_control *control;
	CUdeviceptr view;         /* the gpul_comm_view in device memory; the counters of the kernels follow it */
	gpul_comm_view view_copy; /* copy of the view in host memory */
	CUdeviceptr trace;        /* gpul_comm_trace in device memory; 0: no trace was ever started */
	struct window windows[GPUL_COMM_MAX_WINDOWS];

	gpul_module *modules[N_KERNEL_FILES];
	CUfunction kernels[N_KERNELS];
	/* the most recent call, and the most recent call in a stream capture; a call on another stream waits for them */
	struct last_call last, last_captured;
	CUevent pace; /* with an interpreting driver: event of an earlier call; waiting for it limits the number of queued calls */
	uint64_t n_calls;
	struct replay replay;
	struct gpul_comm_persistent *persistent; /* the persistent kernel; NULL: none has been started */
	bool persistent_runs;

	gpul_comm_table table; /* all entries of the tuning table in options.table */
	char table_path[256];  /* path of the table; "": no table */
	const struct choice *choices[GPUL_COMM_N_CALLS];
	struct choice *measured; /* the entries of the tuning table that apply to this communicator */
	bool is_measured[GPUL_COMM_N_CALLS];
	char measured_reason[256], built_in_reason[160];
	gpul_comm_plan forced; /* set by gpul_comm_plan_force(); valid if is_forced */
	bool is_forced;

	bool in_group;
	CUstream group_stream;
	gpul_comm_transfers group;

	pthread_t service; /* the service thread, which polls the reports of the kernels */
	bool has_service;
	struct wait_watch waits; /* used by the service thread only */
	atomic_bool stop;
	pthread_mutex_t lock; /* protects `failure` */
	gpul_comm_failure failure;
	atomic_bool failed;
};

/* ---- comm_view.c ---- */
gpul_status gpul_comm_view_create(gpul_comm *c, gpul_error *err);
void gpul_comm_view_destroy(gpul_comm *c);
/* Copy view_copy to device memory. */
gpul_status gpul_comm_view_upload(gpul_comm *c, gpul_error *err);

/* ---- plan.c ---- */
/* Read the tuning table given by the options or by $GPULOAD_COMM_TABLE, if any.  Called before the ranks exchange rank_info. */
gpul_status gpul_comm_choices_load(gpul_comm *c, gpul_error *err);
/* Find the choices that fit the device of rank 0, the number of ranks and the transport.  Called after the arenas are created. */
gpul_status gpul_comm_choices_select(gpul_comm *c, gpul_error *err);
void gpul_comm_choices_free(gpul_comm *c);
/* Return the hash of the tuning table; 0: no table. */
uint64_t gpul_comm_table_hash(const gpul_comm *c);

/* ---- paths.c: which memory a pair of ranks uses ---- */
gpul_status gpul_comm_choose_paths(gpul_comm *c, int timeout_ms, gpul_error *err);
/* Exchange rank_info, and check that all ranks have equal options. */
gpul_status gpul_comm_introduce(gpul_comm *c, int timeout_ms, gpul_error *err);

/* ---- create.c: the order of the ranks by host ---- */
/* Find the host of each rank: from the option ranks_per_host, else from the bootstrap. */
void gpul_comm_hosts_find(gpul_comm *c);
/* Order the ranks by host: host[rank] is an arbitrary number, equal for the ranks of a host. */
void gpul_comm_hosts_order(struct comm_hosts *out, const int *host, int n_ranks, int rank);

/* ---- arena.c ---- */
void gpul_comm_arena_sizes(gpul_comm_sizes *s);
gpul_status gpul_comm_arenas_create(gpul_comm *c, int timeout_ms, gpul_error *err);
void gpul_comm_arenas_destroy(gpul_comm *c);
void gpul_comm_arenas_describe(const gpul_comm *c, gpul_comm_view *view);
/* Allocate device or host memory on every rank, and map the memory of the other ranks. wanted: the ranks whose memory this rank maps. */
gpul_status gpul_comm_map_all(gpul_comm *c, const gpul_mem_desc *desc, const bool *wanted, gpul_mem **mine, gpul_mem **theirs,
			      int timeout_ms, gpul_error *err);

/* ---- network.c ---- */
/* Connect the pairs that use the network; then allocate their memory and send its addresses to the other ranks; then start the proxy. */
gpul_status gpul_comm_network_open(gpul_comm *c, int timeout_ms, gpul_error *err);
gpul_status gpul_comm_network_create(gpul_comm *c, int timeout_ms, gpul_error *err);
gpul_status gpul_comm_network_start(gpul_comm *c, gpul_error *err);
/* If puts to a rank have been unacknowledged for least_ms although its process runs, fail the communicator, with a message that
 * names both ranks. why: how this was detected, for the message.  Returns false if there is no such rank. */
bool gpul_comm_network_undelivered(gpul_comm *c, unsigned least_ms, enum gpul_comm_cause cause, const char *why);
/* Log the state of the proxy after a kernel has waited too long. */
void gpul_comm_network_report(gpul_comm *c);
/* Record that this rank's kernels have ended: from now on, the end of a connection is not a failure. */
void gpul_comm_network_leave(gpul_comm *c);
void gpul_comm_network_destroy(gpul_comm *c);
void gpul_comm_network_describe(const gpul_comm *c, gpul_comm_view *view);

/* ---- window.c ---- */
void gpul_comm_windows_destroy(gpul_comm *c);
/* Find the window (memory of gpul_comm_alloc()) that contains n_bytes at an address, and their offset in it; 0: there is none. */
uint32_t gpul_comm_window_of(const gpul_comm *c, CUdeviceptr at, size_t n_bytes, uint64_t *offset);

/* ---- comm_kernels.c ---- */
gpul_status gpul_comm_kernel(gpul_comm *c, enum kernel_id id, CUfunction *out, gpul_error *err);
/* Find the kernel of a collective with an algorithm and a protocol.  Returns N_KERNELS if there is none. */
enum kernel_id gpul_comm_kernel_of(gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto);
/* If other ranks are threads of this process, load all kernels now: when NVIDIA's driver loads a kernel later, it may wait for
 * running kernels, and those kernels may wait for the rank that loads it. */
gpul_status gpul_comm_kernels_load(gpul_comm *c, gpul_error *err);
void gpul_comm_kernels_unload(gpul_comm *c);

/* ---- arguments.c ---- */
/* A collective: its arguments, and the sizes in bytes that follow from them. */
struct comm_request {
	gpul_comm_work work;           /* n_blocks is set later */
	size_t send_bytes, recv_bytes; /* size of the whole buffer; 0: this rank has no such buffer */
	CUdeviceptr in_place;          /* the only address at which the send buffer may overlap the recv buffer; 0: none */
};
/* Check the arguments of a collective. */
gpul_status gpul_comm_request(const gpul_comm *c, const gpul_comm_posting *p, struct comm_request *out, gpul_error *err);
/* Check that a buffer exists, is aligned, and does not exceed the address space. name: "send" or "recv". */
gpul_status gpul_comm_check_buffer(const char *name, CUdeviceptr at, size_t n_bytes, size_t element_bytes, gpul_error *err);

/* ---- enqueue.c ---- */
/* Launch a kernel with two arguments: the view, and a gpul_comm_transfers for KERNEL_sendrecv and KERNEL_sendrecv_few, else a
 * gpul_comm_work. */
gpul_status gpul_comm_enqueue(gpul_comm *c, enum kernel_id id, void *argument, unsigned n_blocks, unsigned n_threads, CUstream stream,
			      gpul_error *err);
/* Launch a kernel for at least one send, receive or copy; the blocks and protocols of the transfers are set here. */
gpul_status gpul_comm_launch_transfers(gpul_comm *c, gpul_comm_transfers *t, CUstream stream, gpul_error *err);
/* Return GPUL_OK if the communicator can be used, else its failure. */
gpul_status gpul_comm_usable(const gpul_comm *c, gpul_error *err);
/* Like gpul_comm_usable(), but also fails while a persistent kernel runs. */
gpul_status gpul_comm_idle(const gpul_comm *c, gpul_error *err);

/* ---- persistent.c ---- */
void gpul_comm_persistent_destroy(gpul_comm *c);

/* ---- replay.c ---- */
/* A launch that enqueue.c is about to make. */
struct launch {
	enum kernel_id id;
	CUfunction kernel;
	void *argument; /* the second argument of the kernel: a gpul_comm_work, or another type, which depends on id */
	unsigned n_blocks, n_threads;
};
/* Get the graph of a repeated launch; NULL: use cuLaunchKernel().  The stream of the launch must not be capturing. */
CUgraphExec gpul_comm_replay(gpul_comm *c, const struct launch *l);
void gpul_comm_replay_destroy(gpul_comm *c);
/* Make this thread's driver calls possible during a stream capture, and return the previous mode.  While a stream of the program is
 * captured in the global or thread-local mode, the driver refuses calls such as loading a kernel, and invalidates the capture.  The
 * library's own calls are not part of the capture, so they are made in the relaxed mode. */
CUstreamCaptureMode gpul_comm_relax(const gpul_comm *c);
void gpul_comm_unrelax(const gpul_comm *c, CUstreamCaptureMode mode);

/* ---- report.c ---- */
/* Start the service thread, and begin to watch for failures of other ranks. */
gpul_status gpul_comm_service_start(gpul_comm *c, gpul_error *err);
void gpul_comm_service_stop(gpul_comm *c);

/* ---- failure.c ---- */
/* Watch for failures that other ranks detect. */
gpul_status gpul_comm_watch(gpul_comm *c, gpul_error *err);
/* Record the first failure, publish it to the other ranks, and set the abort word, which ends the kernels. */
void gpul_comm_fail(gpul_comm *c, enum gpul_comm_cause cause, int rank, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Return the result st, with the error *why, of a call in which other ranks take part.  If the job has failed, return the failure
 * of the communicator instead. */
gpul_status gpul_comm_explain(gpul_comm *c, gpul_status st, const gpul_error *why, gpul_error *err);
/* Handle a failed call of this rank only, while the other ranks continue: fail the communicator, unless the cause is a wrong use of
 * a stream by the caller. */
gpul_status gpul_comm_rank_failed(gpul_comm *c, const gpul_error *why, gpul_error *err);
/* Return the result of a driver call that has waited for kernels; the kernels may have ended early because of a failure. */
gpul_status gpul_comm_awaited(gpul_comm *c, CUresult r, const char *call, gpul_error *err);

/* ---- blame.c ---- */
/* Read which ranks this rank's kernels wait for, and publish them once a kernel of any rank has timed out.  Only the service thread
 * calls gpul_comm_watch_waits() and gpul_comm_timed_out(). */
void gpul_comm_watch_waits(gpul_comm *c);
/* Handle a time-out that a kernel has reported: find the cause, and fail the communicator. */
void gpul_comm_timed_out(gpul_comm *c);

#endif
