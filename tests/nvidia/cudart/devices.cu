// devices.cu — device properties, threads, resets, limits.
#include <cstring>
#include <thread>
#include <vector>

#include "tests/nvidia/cudart/check.h"

__device__ int kept = 1;

__global__ void add_one(int *p)
{
	*p += kept;
	kept = 5;
}

static void a_device_has_properties(void)
{
	cudaDeviceProp p;
	int n = 0, value = 0, version = 0, can = -1;
	size_t free_bytes = 0, total = 0, heap = 0;
	char bus[32];
	unsigned flags;

	CUDA(cudaGetDeviceCount(&n));
	CHECK(n >= 1);
	CUDA(cudaGetDeviceProperties(&p, 0));
	CHECK(p.name[0] && p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.maxThreadsDim[2] == 64);
	CHECK(p.maxGridSize[0] == 0x7fffffff && p.maxGridSize[1] == 65535 && p.sharedMemPerBlock == 49152);
	CHECK(p.multiProcessorCount >= 1 && p.totalGlobalMem > 1 << 20 && p.totalConstMem == 65536);
	CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
	CHECK(value == p.major);
	CUDA(cudaMemGetInfo(&free_bytes, &total));
	CHECK(total && free_bytes <= total);
	CUDA(cudaDriverGetVersion(&version));
	CHECK(version >= 12000);
	CUDA(cudaRuntimeGetVersion(&version));
	CHECK(version == CUDART_VERSION);
	CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
	CHECK(strlen(bus) == 12);
	CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
	CHECK(can == 0);
	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
	CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
	CHECK(heap >= 16 << 20);
	CUDA(cudaGetDeviceFlags(&flags));
}

static void work_on(int *d)
{
	int device = -1, h = 0;

	CUDA(cudaGetDevice(&device));
	CHECK(device == 0);
	CUDA(cudaMemset(d, 0, sizeof *d));
	add_one<<<1, 1>>>(d);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost));
	CHECK(h == 1 || h == 5);
	FAILS(cudaErrorInvalidDevice, cudaSetDevice(-1));
	CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
}

// A new thread uses device 0; each thread has its own last error.
static void threads_share_a_device(void)
{
	std::vector<std::thread> threads;
	int *d;

	CUDA(cudaMalloc(&d, 16 * sizeof *d));
	for (int i = 0; i < 4; i++)
		threads.emplace_back(work_on, d + i);
	for (auto &t : threads)
		t.join();
	CUDA(cudaGetLastError());
	CUDA(cudaFree(d));
}

// A reset releases all resources; the next call creates a new context, in which variables have their initial values.
static void a_reset_restores_initial_values(void)
{
	int *d, h, device = -1;

	for (int i = 0; i < 3; i++) {
		CUDA(cudaSetDevice(0));
		CUDA(cudaMalloc(&d, sizeof *d));
		CUDA(cudaMemset(d, 0, sizeof *d));
		add_one<<<1, 1>>>(d);
		CUDA(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost));
		CHECK(h == (i ? 1 : 5));
		CUDA(cudaDeviceReset());
		CUDA(cudaGetDevice(&device));
		CHECK(device == 0);
	}
}

int main(void)
{
	a_device_has_properties();
	threads_share_a_device();
	a_reset_restores_initial_values();
	return 0;
}
