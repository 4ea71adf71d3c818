/* sparse_internal.h — the state of a sparse all-reduce, and the functions that its files share.
 *
 *     sparse.c   create, destroy; memory.c: buffers and their registration, shared with all ranks; packed.c: packed blocks
 *     call.c     a call: check, bitmap, hellos, dense or sparse, the loop
 *     blocks.c   bitmap ──> the streams' lists of blocks, and the jobs of the pack kernel
 *     worker_end.c, aggregator_end.c: messages between the state machines of protocol.h and the connections
 *     gpu.c      kernels and copies        link.c  puts and their completions, failures
 *
 * Words of 32 blocks are assigned to the streams in turn: word w belongs to stream w % n_streams, which is aggregated by rank w %
 * n_ranks in its slot (w % n_streams) / n_ranks.  So each rank aggregates about the same number of non-zero blocks, even if these are
 * adjacent. */
#ifndef GPULOAD_LAB_SPARSE_SPARSE_INTERNAL_H
#define GPULOAD_LAB_SPARSE_SPARSE_INTERNAL_H

#include <stdatomic.h>

#include "lab/sparse/protocol.h"
#include "lab/sparse/sparse.h"
#include "lab/sparse/sparse_layout.h"
#include "lab/sparse/sum.h"
#include "loader/loader.h"

enum {
	WORD_BLOCKS = 32, /* number of blocks that a word of the bitmap describes */
	MOST_SLOTS = 8,   /* maximum number of streams that a rank aggregates */
	MOST_STREAMS = MOST_SLOTS * GPUL_COMM_MAX_RANKS,
	MOST_BLOCKS = 64,  /* maximum number of blocks in a contribution */
	MOST_RESULT = 512, /* maximum number of blocks in a result: n_ranks * blocks of a contribution */
	MOST_PUTS = 1024,  /* maximum number of puts in flight on a connection */
	HEAD_BYTES = 16,
};

/* ---- messages --------------------------------------------------------------------------------------------------- */

/* A contribution or a result: the head and the list of blocks end where the data begins, so that one put writes all of them.
 *
 *      ┌──────┬──────┬──────┬───────┬──────────┬─────────────────────────┐   a contribution's data comes from the packed blocks,
 *      │ next │ reach│limit │ unused│ index[n] │ n blocks of data        │   in a put of its own, before head and list
 *      └──────┴──────┴──────┴───────┴──────────┴─────────────────────────┘
 *                                              ↑ a multiple of 256
 * The step word that announces the message contains call, round and n. */
struct head {
	uint32_t next, reach; /* in a contribution: the fields next and reach of the worker (protocol.h) */
	uint32_t limit;       /* in a result: the limit of the next round */
	uint32_t unused;
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "as drawn");

#define STEP(call, round, n) ((uint64_t)(call) << 40 | (uint64_t)(round) << 12 | (n))
#define STEP_N(step)         ((uint32_t)(step) & 0xfff)
_Static_assert(MOST_RESULT <= 0xfff, "fits into a step");

/* The first message of a call, which each rank sends to each other rank. */
struct hello {
	uint64_t call, count, n_non_zero;
	uint32_t dtype, op, block, unused;
	/* fields next and reach (protocol.h) of the streams that the receiver aggregates */
	struct {
		uint32_t next, reach;
	} slots[MOST_SLOTS];
};

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* Memory that the GPU and the NICs access. gpu - cpu is the same for all addresses in the memory. */
struct memory {
	gpul_mem *mem;
	gpul_rdma_region *region; /* registration of the memory; NULL: not registered */
	unsigned char *cpu;       /* address on the CPU; NULL: device memory */
	CUdeviceptr gpu;
	uint64_t at; /* registered address: that of cpu if it is not NULL, else that of gpu */
	size_t n_bytes;
};

/* Packed blocks are either sent, or summed by this rank's CPU.  With staging, both kinds are in the same memory; with GPU-direct,
 * the blocks to be sent are in device memory. */
enum { PACKED_SENT, PACKED_OWN, N_PACKED };

/* Offsets in struct memory `area`; they are the same on all ranks. */
struct layout {
	/* size of head and list, which precede the data; size of the whole contribution */
	size_t contribution_head, contribution_bytes;
	size_t result_head, result_bytes;
	size_t inbox_at; /* contributions that arrive, indexed by [slot][rank] */
	/* results that arrive, indexed by [stream][2]; for streams that this rank aggregates, the sums that it computes */
	size_t results_at;
	size_t heads_at;      /* heads and lists of contributions, indexed by [stream][2] */
	size_t hellos_at;     /* hellos that arrive, indexed by [2][rank] */
	size_t own_hellos_at; /* hellos to be sent, indexed by [2][rank] */
	size_t area_bytes;
};

/* The step words, by which other ranks signal their progress: they write them into this rank's memory. */
struct steps {
	_Atomic uint64_t contributions[MOST_SLOTS][GPUL_COMM_MAX_RANKS];
	_Atomic uint64_t results[MOST_STREAMS];
	_Atomic uint64_t hellos[GPUL_COMM_MAX_RANKS];
};

/* What a rank sends to the other ranks about its memory. */
struct addresses {
	gpul_rdma_remote area, steps;
	uint32_t block, percent;
	gpul_error why; /* the failure that the rank has had, if any */
};

/* ---- streams -------------------------------------------------------------------------------------------------------- */

/* One of the two buffers of a stream's results. */
struct arrival {
	uint64_t batch; /* batch of the scatter kernel that copies the blocks out of this buffer; 0: none */
	bool full;      /* the blocks in this buffer wait for a scatter kernel */
};

struct stream {
	uint32_t aggregator, slot;
	uint32_t end;      /* number of blocks of the stream, zero or not */
	uint32_t first, n; /* the stream's non-zero blocks in the lists of all streams: first index, and number */
	/* the memory in which these blocks are packed (PACKED_...), and the number of blocks that precede them there */
	uint32_t packed, place;
	uint32_t first_flag; /* index of the flag of the first pack job of this stream */
	gpul_sparse_worker worker;
	gpul_sparse_contribution contribution;
	bool waits; /* the contribution has not been sent yet */
	struct arrival arrivals[2];
	uint32_t n_puts[2]; /* number of puts in flight of contributions: in even rounds, and in odd rounds */
};

struct slot {
	gpul_sparse_aggregator aggregator;
	uint32_t n_puts[2]; /* number of puts in flight of results: in even rounds, and in odd rounds */
};

struct link {
	gpul_rdma_conn *conn; /* NULL for this rank itself */
	struct addresses theirs;
	/* `counter` is decremented when the put has ended */
	struct {
		gpul_rdma_request request;
		uint32_t *counter;
	} puts[MOST_PUTS];
	uint32_t head, tail; /* a ring: puts[head % MOST_PUTS] is the oldest put in flight */
	bool greeted;        /* the hello of this rank has arrived in the current call */
};

struct gpul_comm_sparse {
	const gpul_driver *drv;
	int device;
	gpul_boot *boot;
	gpul_rdma *rdma;
	gpul_comm_sparse_options options;
	uint32_t rank, n_ranks, n_slots, n_streams, most;
	gpul_error failure;

	struct layout layout;
	struct memory area, packed[N_PACKED], tables;
	bool direct;     /* true: packed[PACKED_SENT] is device memory */
	char where[120]; /* the text that gpul_comm_sparse_memory() returns */
	struct steps *steps;
	gpul_rdma_region *steps_region;
	struct link links[GPUL_COMM_MAX_RANKS];

	gpul_module *modules[3];
	CUfunction bitmap_kernel, pack_kernel, scatter_kernel;
	CUstream stream; /* the stream on which scatter kernels run */
	CUevent begun, scattered;

	/* Tables in host memory, also read by the kernels: */
	uint32_t *bitmap, *lists;
	gpul_sparse_job *jobs;
	_Atomic uint64_t *flags;
	gpul_sparse_item *items;
	uint32_t *index;       /* the non-zero blocks of each stream, numbered within the stream; only the CPU reads this */
	uint32_t table_blocks; /* number of blocks for which these tables have room */

	/* The parameters and state of the current call: */
	uint64_t call;
	CUdeviceptr send, recv;
	size_t count, n_bytes;
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	uint32_t block_bytes, n_blocks, n_non_zero, n_jobs;
	CUstream user;
	bool packs; /* the pack kernel of this call has been launched */
	struct stream streams[MOST_STREAMS];
	struct slot slots[MOST_SLOTS];
	uint32_t n_items, n_launched; /* number of items to scatter, and how many of these a launched kernel handles */
	uint64_t batch, batches_done; /* number of scatter kernels launched and completed in all calls */
	uint64_t n_events;            /* incremented whenever the call makes progress, which restarts the time-out */
	struct {
		uint64_t n_events, since_ns;
		uint32_t turns;
	} idle;
	gpul_comm_sparse_report report;
};

/* ---- memory.c ---- */
void gpul_sparse_layout(gpul_comm_sparse *s);
/* Allocate n_bytes of host memory. */
gpul_status gpul_sparse_memory(gpul_comm_sparse *s, size_t n_bytes, bool registered, struct memory *out, gpul_error *err);
void gpul_sparse_memory_free(struct memory *m);
/* Allocate the memory that all calls use, and exchange the addresses; report the failure in `before`, if any, to the other ranks. */
gpul_status gpul_sparse_share(gpul_comm_sparse *s, const gpul_error *before, gpul_error *err);
/* Allocate tables that are large enough for a call. */
gpul_status gpul_sparse_room_for_tables(gpul_comm_sparse *s, gpul_error *err);
/* Return offsets in `area`: of a rank's contribution in a slot, and of a stream's result in a round. */
size_t gpul_sparse_inbox_at(const gpul_comm_sparse *s, uint32_t slot, uint32_t rank);
size_t gpul_sparse_result_at(const gpul_comm_sparse *s, uint32_t stream, uint32_t round);

/* ---- packed.c ---- */
/* Choose the memory of packed blocks, before the first call. */
gpul_status gpul_sparse_choose_packed(gpul_comm_sparse *s, gpul_error *err);
/* Allocate memory that is large enough for the packed blocks of this call, and choose where the blocks of each stream begin. */
gpul_status gpul_sparse_room_for_packed(gpul_comm_sparse *s, gpul_error *err);
/* Return the offset of the n-th packed block of a stream in its memory (PACKED_SENT or PACKED_OWN). */
size_t gpul_sparse_packed_at(const gpul_comm_sparse *s, const struct stream *t, uint32_t n);

/* ---- blocks.c ---- */
/* Divide the non-zero blocks among the streams. */
void gpul_sparse_divide(gpul_comm_sparse *s);
/* Make the jobs of the pack kernel; jobs with the first blocks of all streams come first. */
void gpul_sparse_plan_jobs(gpul_comm_sparse *s);
/* True if blocks first ... first + n of a stream have been packed. */
bool gpul_sparse_packed(const gpul_comm_sparse *s, const struct stream *t, uint32_t first, uint32_t n);
/* Convert the number of a block in a stream to its number in the buffer. */
uint32_t gpul_sparse_block_of(const gpul_comm_sparse *s, uint32_t stream, uint32_t block);

/* ---- gpu.c ---- */
gpul_status gpul_sparse_gpu_open(gpul_comm_sparse *s, gpul_error *err);
void gpul_sparse_gpu_close(gpul_comm_sparse *s);
gpul_status gpul_sparse_find_blocks(gpul_comm_sparse *s, gpul_error *err);
gpul_status gpul_sparse_pack(gpul_comm_sparse *s, gpul_error *err);
/* Zero the output, before the first scatter kernel. */
gpul_status gpul_sparse_clear(gpul_comm_sparse *s, gpul_error *err);
/* Launch the next scatter kernel, if the previous one has ended. */
gpul_status gpul_sparse_scatter(gpul_comm_sparse *s, gpul_error *err);
gpul_status gpul_sparse_finish(gpul_comm_sparse *s, gpul_error *err);

/* ---- link.c ---- */
/* Put n_bytes of registered memory to an offset in a rank's area, and then set a step word of the rank (signal: its offset in
 * struct steps; value 0: no step word). *counter is incremented now, and decremented when the put has ended. */
gpul_status gpul_sparse_put(gpul_comm_sparse *s, uint32_t rank, const struct memory *m, size_t from, size_t n_bytes, size_t to,
			    size_t signal, uint64_t value, uint32_t *counter, gpul_error *err);
/* Make progress on all connections. */
gpul_status gpul_sparse_progress(gpul_comm_sparse *s, gpul_error *err);
/* True while puts are in flight. */
bool gpul_sparse_busy(const gpul_comm_sparse *s);
/* Report a failure that this rank has had or detected to the other ranks.  Returns the first failure of the job. */
gpul_status gpul_sparse_fail(gpul_comm_sparse *s, const gpul_error *why, int culprit, gpul_error *err);

/* ---- worker_end.c ---- */
/* Poll for results of a stream, and send its contributions. */
gpul_status gpul_sparse_work(gpul_comm_sparse *s, uint32_t stream, gpul_error *err);
/* Handle a result of n blocks that has arrived in its buffer. */
gpul_status gpul_sparse_result_taken(gpul_comm_sparse *s, uint32_t stream, uint32_t n, gpul_error *err);
/* ---- aggregator_end.c ---- */
/* Poll for contributions to the stream of this slot, and send its results to the ranks. */
gpul_status gpul_sparse_aggregate(gpul_comm_sparse *s, uint32_t slot, gpul_error *err);

#endif
