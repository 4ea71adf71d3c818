// per_thread.cu — a program with a default stream for each thread.
// nvcc: -gencode arch=compute_75,code=compute_75 --default-stream per-thread
#include <thread>

#include "tests/nvidia/cudart/check.h"

__constant__ int plus;

// Wait for the flag, but not for ever, so that a failed test does not block the GPU.
__global__ void wait_for(volatile int *flag)
{
	for (long long start = clock64(); !*flag && clock64() - start < 20000000000ll;)
		;
}

__global__ void add(int *x)
{
	x[threadIdx.x] += plus;
}

// The default stream of one thread does not wait for the default stream of another thread.
static void default_streams_of_threads_are_independent(void)
{
	int h[32] = { 0 }, *d, three = 3, back = 0;
	float ms = -1;
	cudaEvent_t start, stop;

	CUDA(cudaMallocAsync(&d, sizeof h, 0));
	CUDA(cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpyToSymbol(plus, &three, sizeof three));
	CUDA(cudaMemcpyFromSymbol(&back, plus, sizeof back));
	CHECK(back == 3);
	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&stop));
	CUDA(cudaEventRecord(start));
	add<<<1, 32>>>(d);
	CUDA(cudaEventRecord(stop));
	CUDA(cudaMemcpy2D(h, 16, d, 16, 16, 8, cudaMemcpyDeviceToHost));
	CUDA(cudaStreamSynchronize(0));
	CUDA(cudaEventElapsedTime(&ms, start, stop));
	CHECK(ms >= 0);
	for (int i = 0; i < 32; i++)
		CHECK(h[i] == 3);
	CUDA(cudaFreeAsync(d, 0));
	CUDA(cudaStreamSynchronize(0));
	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(stop));
}

int main(void)
{
	int *flag, *d_flag;

	CUDA(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped));
	CUDA(cudaHostGetDevicePointer(&d_flag, flag, 0));
	*flag = 0;
	add<<<1, 1>>>(d_flag); // loads the code before a kernel keeps the device busy
	CUDA(cudaStreamSynchronize(0));
	wait_for<<<1, 1>>>(d_flag);
	FAILS(cudaErrorNotReady, cudaStreamQuery(0));
	CUDA(cudaGetLastError()); // cudaErrorNotReady is a result, not a failure
	std::thread(default_streams_of_threads_are_independent).join();
	*(volatile int *)flag = 1;
	CUDA(cudaStreamSynchronize(0));
	CUDA(cudaFreeHost(flag));
	return 0;
}
