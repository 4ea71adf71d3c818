/* nccl_first.c — a first program of NCCL: an all-reduce of two GPUs (docs/nccl-on-a-laptop.md). */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>

#define CHECK(call) \
	do { \
		int r_ = (int)(call); \
		if (r_) { \
			fprintf(stderr, "%s: error %d\n", #call, r_); \
			return 1; \
		} \
	} while (0)
enum { RANKS = 2, N = 1024 };

int main(void)
{
	ncclComm_t comm[RANKS];
	cudaStream_t stream[RANKS];
	float *data[RANKS], host[N];

	CHECK(ncclCommInitAll(comm, RANKS, NULL));
	for (int r = 0; r < RANKS; r++) {
		for (int i = 0; i < N; i++)
			host[i] = (float)((r + 1) * i);
		CHECK(cudaSetDevice(r));
		CHECK(cudaStreamCreate(&stream[r]));
		CHECK(cudaMalloc((void **)&data[r], sizeof host));
		CHECK(cudaMemcpy(data[r], host, sizeof host, cudaMemcpyHostToDevice));
	}
	CHECK(ncclGroupStart());
	for (int r = 0; r < RANKS; r++)
		CHECK(ncclAllReduce(data[r], data[r], N, ncclFloat, ncclSum, comm[r], stream[r]));
	CHECK(ncclGroupEnd());
	for (int r = 0; r < RANKS; r++) {
		CHECK(cudaSetDevice(r));
		CHECK(cudaStreamSynchronize(stream[r]));
		CHECK(cudaMemcpy(host, data[r], sizeof host, cudaMemcpyDeviceToHost));
		printf("rank %d: %g %g %g\n", r, host[1], host[2], host[N - 1]);
		CHECK(cudaFree(data[r]));
		CHECK(ncclCommDestroy(comm[r]));
	}
	return 0;
}
