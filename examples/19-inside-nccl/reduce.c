/* reduce.c — all-reduces by NCCL: each GPU is a rank of this process, and each argument is a number of elements.  Element i of rank r
 * is (r + 1) * i; the program prints elements 1 and n - 1 of each rank's result. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 16 };

#define CHECK(call) \
	do { \
		const int status_ = (int)(call); \
		if (status_) { \
			fprintf(stderr, "%s: error %d\n", #call, status_); \
			exit(1); \
		} \
	} while (0)

struct rank {
	ncclComm_t comm;
	cudaStream_t stream;
	float *data; /* memory of the rank's GPU */
};

static void fill(struct rank *r, int rank, size_t n)
{
	float *host = malloc(n * sizeof *host);

	CHECK(host ? 0 : 1);
	for (size_t i = 0; i < n; i++)
		host[i] = (float)(rank + 1) * (float)i;
	CHECK(cudaSetDevice(rank));
	CHECK(cudaMalloc((void **)&r->data, n * sizeof *host));
	CHECK(cudaMemcpy(r->data, host, n * sizeof *host, cudaMemcpyHostToDevice));
	free(host);
}

static void print_result(struct rank *r, int rank, size_t n)
{
	float first, last;

	CHECK(cudaSetDevice(rank));
	CHECK(cudaStreamSynchronize(r->stream));
	CHECK(cudaMemcpy(&first, r->data + 1, sizeof first, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&last, r->data + n - 1, sizeof last, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(r->data));
	printf("%zu elements, rank %d: element 1 is %g, element %zu is %g\n", n, rank, first, n - 1, last);
}

static void all_reduce(struct rank *ranks, int n_ranks, size_t n)
{
	for (int r = 0; r < n_ranks; r++)
		fill(&ranks[r], r, n);
	CHECK(ncclGroupStart()); /* without a group, rank 0 would wait for rank 1, which this thread has not started */
	for (int r = 0; r < n_ranks; r++)
		CHECK(ncclAllReduce(ranks[r].data, ranks[r].data, n, ncclFloat, ncclSum, ranks[r].comm, ranks[r].stream));
	CHECK(ncclGroupEnd());
	for (int r = 0; r < n_ranks; r++)
		print_result(&ranks[r], r, n);
}

int main(int argc, char **argv)
{
	struct rank ranks[MAX_RANKS];
	ncclComm_t comms[MAX_RANKS];
	int n_ranks;

	CHECK(cudaGetDeviceCount(&n_ranks));
	if (argc < 2 || n_ranks > MAX_RANKS) {
		fprintf(stderr, "usage: reduce N...  (at most %d GPUs)\n", MAX_RANKS);
		return 2;
	}
	CHECK(ncclCommInitAll(comms, n_ranks, NULL));
	for (int r = 0; r < n_ranks; r++) {
		ranks[r].comm = comms[r];
		CHECK(cudaSetDevice(r));
		CHECK(cudaStreamCreate(&ranks[r].stream));
	}
	for (int a = 1; a < argc; a++) {
		const size_t n = strtoul(argv[a], NULL, 0);

		if (n > 1)
			all_reduce(ranks, n_ranks, n);
	}
	for (int r = 0; r < n_ranks; r++) {
		CHECK(cudaStreamDestroy(ranks[r].stream));
		CHECK(ncclCommDestroy(comms[r]));
	}
	return 0;
}
