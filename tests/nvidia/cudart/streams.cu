// streams.cu — streams, events, callbacks, stream-ordered memory.
#include "tests/nvidia/cudart/check.h"

enum { N = 4096, STREAMS = 4, PART = N / STREAMS };

__global__ void twice_plus(int *x, int plus, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] = 2 * x[i] + plus;
}

static void CUDART_CB count(void *user)
{
	++*(int *)user;
}

static void CUDART_CB count_of_stream(cudaStream_t stream, cudaError_t status, void *user)
{
	CHECK(stream != NULL && status == cudaSuccess);
	++*(int *)user;
}

// Copy in, compute, copy out; each part of the data in its own stream.
static void streams_run_concurrently(void)
{
	cudaStream_t stream[STREAMS];
	cudaEvent_t start, stop;
	int *h, *d, called = 0, least, greatest;
	unsigned flags;
	float ms = -1;

	CUDA(cudaMallocHost(&h, N * sizeof *h));
	CUDA(cudaMalloc(&d, N * sizeof *d));
	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreateWithFlags(&stop, cudaEventBlockingSync));
	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	for (int i = 0; i < N; i++)
		h[i] = i;
	for (int s = 0; s < STREAMS; s++)
		CUDA(s % 2 ? cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking)
			   : cudaStreamCreateWithPriority(&stream[s], cudaStreamDefault, greatest));
	CUDA(cudaStreamGetFlags(stream[1], &flags));
	CHECK(flags == cudaStreamNonBlocking);
	CUDA(cudaEventRecord(start));
	for (int s = 0; s < STREAMS; s++) {
		int *part = d + s * PART;

		CUDA(cudaStreamWaitEvent(stream[s], start, 0));
		CUDA(cudaMemcpyAsync(part, h + s * PART, PART * sizeof *h, cudaMemcpyHostToDevice, stream[s]));
		twice_plus<<<PART / 128, 128, 0, stream[s]>>>(part, s, PART);
		CUDA(cudaMemcpyAsync(h + s * PART, part, PART * sizeof *h, cudaMemcpyDeviceToHost, stream[s]));
		CUDA(cudaLaunchHostFunc(stream[s], count, &called));
		CUDA(cudaStreamAddCallback(stream[s], count_of_stream, &called, 0));
		CUDA(cudaStreamSynchronize(stream[s]));
		CUDA(cudaStreamQuery(stream[s]));
	}
	CUDA(cudaEventRecord(stop));
	CUDA(cudaEventSynchronize(stop));
	CUDA(cudaEventQuery(stop));
	CUDA(cudaEventElapsedTime(&ms, start, stop));
	CHECK(ms >= 0);
	CHECK(called == 2 * STREAMS);
	for (int i = 0; i < N; i++)
		CHECK(h[i] == 2 * i + i / PART);
	for (int s = 0; s < STREAMS; s++)
		CUDA(cudaStreamDestroy(stream[s]));
	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(stop));
	CUDA(cudaFree(d));
	CUDA(cudaFreeHost(h));
}

// Wait for the flag, but not for ever, so that a failed test does not block the GPU.
__global__ void wait_for(volatile int *flag)
{
	for (long long start = clock64(); !*flag && clock64() - start < 20000000000ll;)
		;
}

// A kernel waits for the host, so later work in its stream is not ready.
static void a_busy_stream_is_not_ready(void)
{
	cudaStream_t stream;
	cudaEvent_t after;
	int *flag, *d_flag;

	CUDA(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped));
	CUDA(cudaHostGetDevicePointer(&d_flag, flag, 0));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
	*flag = 0;
	wait_for<<<1, 1, 0, stream>>>(d_flag);
	CUDA(cudaEventRecord(after, stream));
	FAILS(cudaErrorNotReady, cudaStreamQuery(stream));
	FAILS(cudaErrorNotReady, cudaEventQuery(after));
	CUDA(cudaGetLastError()); // cudaErrorNotReady is a result, not a failure
	*(volatile int *)flag = 1;
	CUDA(cudaEventSynchronize(after));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaEventDestroy(after));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFreeHost(flag));
}

static void allocates_memory_in_stream_order(void)
{
	cudaStream_t stream;
	int *d, h[100];

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocAsync(&d, sizeof h, stream));
	CUDA(cudaMemsetAsync(d, 0, sizeof h, stream));
	twice_plus<<<1, 128, 0, stream>>>(d, 7, 100);
	twice_plus<<<1, 128, 0, stream>>>(d, 7, 100);
	CUDA(cudaMemcpyAsync(h, d, sizeof h, cudaMemcpyDefault, stream));
	CUDA(cudaFreeAsync(d, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < 100; i++)
		CHECK(h[i] == 21);
	CUDA(cudaStreamDestroy(stream));
}

static void registers_ordinary_host_memory(void)
{
	static int h[1024];
	cudaPointerAttributes a;
	int *d;

	CUDA(cudaPointerGetAttributes(&a, h));
	CHECK(a.type == cudaMemoryTypeUnregistered);
	CUDA(cudaHostRegister(h, sizeof h, cudaHostRegisterMapped));
	CUDA(cudaPointerGetAttributes(&a, h));
	CHECK(a.type == cudaMemoryTypeHost && a.hostPointer == h);
	CUDA(cudaHostGetDevicePointer(&d, h, 0));
	twice_plus<<<8, 128>>>(d, 5, 1024);
	CUDA(cudaDeviceSynchronize());
	CHECK(h[0] == 5 && h[1023] == 5);
	CUDA(cudaHostUnregister(h));
	FAILS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(h));
	CHECK(cudaGetLastError() == cudaErrorHostMemoryNotRegistered);
	CUDA(cudaMalloc(&d, 64));
	CUDA(cudaPointerGetAttributes(&a, d + 3));
	CHECK(a.type == cudaMemoryTypeDevice && a.device == 0 && a.devicePointer == d + 3);
	CUDA(cudaFree(d));
}

int main(void)
{
	streams_run_concurrently();
	a_busy_stream_is_not_ready();
	allocates_memory_in_stream_order();
	registers_ordinary_host_memory();
	return 0;
}
