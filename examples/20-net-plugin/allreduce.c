/* allreduce.c — an all-reduce of two processes by NCCL: allreduce N, the number of elements.  Process r is rank r, on GPU r. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2 };

#define CHECK(call) \
	do { \
		const int status_ = (int)(call); \
		if (status_) { \
			fprintf(stderr, "%s: error %d\n", #call, status_); \
			exit(1); \
		} \
	} while (0)

/* All-reduce n elements; element i of rank r is (r + 1) * i. */
static void reduce(ncclComm_t comm, int rank, size_t n)
{
	float *host = malloc(n * sizeof *host), *data;
	cudaStream_t stream;
	size_t wrong = 0;

	CHECK(host ? 0 : 1);
	for (size_t i = 0; i < n; i++)
		host[i] = (float)(rank + 1) * (float)i;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc((void **)&data, n * sizeof *host));
	CHECK(cudaMemcpy(data, host, n * sizeof *host, cudaMemcpyHostToDevice));
	CHECK(ncclAllReduce(data, data, n, ncclFloat, ncclSum, comm, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(host, data, n * sizeof *host, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++)
		wrong += host[i] != 3 * (float)i;
	printf("rank %d: %zu of %zu elements are wrong\n", rank, wrong, n);
	free(host);
	CHECK(wrong ? 1 : 0);
}

static void run_rank(int rank, const int *id_pipe, size_t n)
{
	char log_name[40];
	ncclUniqueId id;
	ncclComm_t comm;

	snprintf(log_name, sizeof log_name, "net%d.log", rank);
	setenv("NET_LOG", log_name, 0);
	if (!rank) {
		CHECK(ncclGetUniqueId(&id));
		CHECK(write(id_pipe[1], &id, sizeof id) != sizeof id);
	} else {
		CHECK(read(id_pipe[0], &id, sizeof id) != sizeof id);
	}
	CHECK(cudaSetDevice(rank));
	CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
	reduce(comm, rank, n);
	CHECK(ncclCommDestroy(comm));
}

int main(int argc, char **argv)
{
	const size_t n = argc == 2 ? strtoul(argv[1], NULL, 0) : 0;
	int id_pipe[2], status, failed = 0;

	if (!n) {
		fprintf(stderr, "usage: allreduce N\n");
		return 2;
	}
	CHECK(pipe(id_pipe));
	for (int rank = 0; rank < RANKS; rank++)
		if (!fork()) {
			run_rank(rank, id_pipe, n);
			return 0;
		}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
