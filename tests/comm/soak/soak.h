/* soak.h — random calls of comm.h: the description of a case, and the functions with which a rank runs it. */
#ifndef GPULOAD_TESTS_COMM_SOAK_SOAK_H
#define GPULOAD_TESTS_COMM_SOAK_SOAK_H

#include "comm/comm.h"

enum { BATCH_CASES = 50, MAX_SOAK_RANKS = 8, MAX_MESSAGES = 12, GUARD_BYTES = 256, MAX_SHIFT = 17 };

/* The limits of the random choices, from the command line. */
struct limits {
	uint64_t seed;
	int min_ranks, max_ranks;
	size_t max_bytes;                 /* maximum size of the larger buffer of a call */
	int call, algo, proto, transport; /* -1: any */
	int gpu_direct;                   /* slots in device memory: 1 on all ranks, 0 on no rank, -1 at random */
	int host;                         /* 0 or 1: this program starts the even or the odd ranks only; -1: all */
	const char *netns, *address;      /* the options --netns and --address; NULL: all ranks are on one host */
	const char *nics;                 /* NICs of all ranks, over libfabric's tcp; NULL: chosen by the library */
	bool threads;                     /* the ranks are threads of this process */
};

/* The communicator that BATCH_CASES consecutive cases share. */
struct batch {
	int n_ranks;
	gpul_comm_options options;
	uint32_t direct; /* a bit for each rank: over the network, its slots are in device memory */
};

/* A message of a group, or of a sequence of single sends and receives. */
struct message {
	int from, to;
	size_t count;
	size_t send_at, recv_at; /* offsets in the buffers, in elements */
};

struct random_case {
	uint64_t seed; /* seed of the data */
	unsigned long number;
	gpul_comm_call call;
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	size_t count;
	int root;
	bool in_place;
	bool again;                                                    /* make the same call twice, and compare the bits */
	unsigned n_queued;                                             /* number of calls that are queued before the wait */
	uint32_t send_in_window, recv_in_window;                       /* a bit for each rank: the buffer is memory of gpul_comm_alloc() */
	size_t send_shift[MAX_SOAK_RANKS], recv_shift[MAX_SOAK_RANKS]; /* shifts of the buffers, in elements */
	bool grouped;
	unsigned n_messages;
	struct message messages[MAX_MESSAGES];
};

void make_batch(const struct limits *limits, unsigned long number, struct batch *out);
void make_case(const struct limits *limits, const struct batch *b, unsigned long number, struct random_case *out);
/* Return the number of elements in a rank's whole send or recv buffer. */
size_t send_count(const struct random_case *k, int n_ranks);
size_t recv_count(const struct random_case *k, int n_ranks);
/* Describe a case in one line. */
void describe_case(const struct random_case *k, const struct batch *b, char *out, size_t out_bytes);

/* Run cases first ... first + n - 1 of a batch on one rank, then compare the bits of the results that all ranks must share.  Returns the
 * exit status. */
int play_batch(const struct limits *limits, const struct batch *b, const gpul_comm_job *job, unsigned long first, unsigned n);

#endif
