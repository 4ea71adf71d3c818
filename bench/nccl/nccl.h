/* nccl.h — declarations for the files of bench_nccl: NCCL's types and functions, a rank, an operation, a measurement.
 *
 * NCCL's declarations are repeated here from its manual, so that the program builds without NCCL; it opens libnccl.so.2
 * when it runs. */
#ifndef GPULOAD_BENCH_NCCL_H
#define GPULOAD_BENCH_NCCL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "comm/calls.h"
#include "driver/context.h"

/* NCCL User Guide, "NCCL API": types.  The values are part of its ABI. */
typedef struct nccl_comm *nccl_comm;
typedef struct {
	char bytes[128];
} nccl_id;
enum { NCCL_SUM = 0, NCCL_FLOAT32 = 7 };

#define NCCL_CALLS(X) \
	X(GetVersion, (int *)) \
	X(GetUniqueId, (nccl_id *)) \
	X(CommInitRank, (nccl_comm *, int, nccl_id, int)) \
	X(CommDestroy, (nccl_comm)) \
	X(AllReduce, (const void *, void *, size_t, int, int, nccl_comm, CUstream)) \
	X(AllGather, (const void *, void *, size_t, int, nccl_comm, CUstream)) \
	X(ReduceScatter, (const void *, void *, size_t, int, int, nccl_comm, CUstream)) \
	X(Broadcast, (const void *, void *, size_t, int, int, nccl_comm, CUstream)) \
	X(Send, (const void *, size_t, int, int, nccl_comm, CUstream)) \
	X(Recv, (void *, size_t, int, int, nccl_comm, CUstream)) \
	X(GroupStart, (void)) \
	X(GroupEnd, (void))

struct nccl {
#define X(name, args) int(*name) args;
	NCCL_CALLS(X)
#undef X
	const char *(*GetErrorString)(int);
};

/* The driver's functions for CUDA graphs, which the driver table lacks. */
#define GRAPH_CALLS(X) \
	X(cuStreamBeginCapture) \
	X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy)

struct graph_calls {
#define X(fn) __typeof__(fn) *fn;
	GRAPH_CALLS(X)
#undef X
};

enum { NCCL_MAX_RANKS = 8 };

/* What the ranks exchange, in memory that the processes of all ranks share. */
struct nccl_meeting {
	_Atomic int arrived, generation;
	nccl_id id;
	double us[NCCL_MAX_RANKS];
	size_t n_wrong[NCCL_MAX_RANKS];
};

struct nccl_request {
	const char *library, *ops;
	int ranks;
	size_t min_bytes, max_bytes, factor;
	bool plain, graph, json;
	struct nccl_meeting *meeting;
};

struct nccl_rank {
	const struct nccl_request *request;
	int rank, ranks;
	const gpul_driver *drv;
	gpul_context context;
	struct nccl nccl;
	struct graph_calls graphs;
	nccl_comm comm;
	CUstream stream;
	CUdeviceptr send, recv;
	float *host; /* page-locked memory for the largest size */
};

/* One call of an operation; `count` is NCCL's argument of this name. */
struct nccl_call {
	const struct nccl_op *op;
	size_t bytes, count; /* bytes: size of the call as nccl-tests counts it */
	CUdeviceptr send, recv;
	bool in_place;
};

struct nccl_op {
	gpul_comm_call call; /* the call of comm/calls.h with the name and the properties of NCCL's operation */
	int (*queue)(const struct nccl_rank *b, const struct nccl_call *c);
	float (*expected)(const struct nccl_rank *b, const struct nccl_call *c, size_t i);
};

/* Open libnccl.so.2, the rank's GPU and its buffers, and join the communicator. */
gpul_status nccl_open_rank(struct nccl_rank *b, gpul_error *err);
void nccl_close_rank(struct nccl_rank *b);
gpul_status nccl_check(const struct nccl_rank *b, int result, const char *what, gpul_error *err);

/* Wait until all ranks have called this.  If a rank fails, the parent kills the others, so the wait
 * needs no time limit. */
void nccl_meet(const struct nccl_rank *b);

extern const struct nccl_op nccl_ops[];
extern const size_t nccl_n_ops;
/* Returns element i of the buffer that a rank sends: a small integer, so that sums of 8 ranks are exact. */
float nccl_value(int rank, size_t i);

/* Make the warm-up calls, equally many on all ranks.  50,000 small calls take a third of a second
 * or more; so many are needed because calls are slower when a process has just started. */
gpul_status nccl_warm_up(const struct nccl_rank *b, gpul_error *err);

/* Check one call, then time many: *us is the time of a call on the slowest rank, *n_wrong counts the elements of all ranks
 * that differ from the expected result. */
gpul_status nccl_measure(const struct nccl_rank *b, const struct nccl_call *c, bool graph, double *us, size_t *n_wrong, gpul_error *err);

#endif
