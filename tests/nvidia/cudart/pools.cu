// pools.cu — memory pools, stream-ordered allocation, managed memory and variables.
#include "tests/nvidia/cudart/check.h"

enum { N = 1000 };

__managed__ int managed[N];
__managed__ int start = 40;

__global__ void count_up(int *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] += i + start;
}

static void allocates_from_a_pool(void)
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool, current;
	cudaStream_t s;
	unsigned long long used = 0, keep = ~0ull, back = 0;
	int *p, h[N];

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CUDA(cudaStreamCreate(&s));
	CUDA(cudaMemPoolCreate(&pool, &props));
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back));
	CHECK(back == keep);
	CUDA(cudaMallocFromPoolAsync((void **)&p, sizeof h, pool, s));
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	CHECK(used >= sizeof h);
	CUDA(cudaMemsetAsync(p, 0, sizeof h, s));
	count_up<<<(N + 127) / 128, 128, 0, s>>>(p, N);
	CUDA(cudaMemcpyAsync(h, p, sizeof h, cudaMemcpyDeviceToHost, s));
	CUDA(cudaFreeAsync(p, s));
	CUDA(cudaStreamSynchronize(s));
	CHECK(h[0] == 40 && h[N - 1] == N - 1 + 40);
	CUDA(cudaDeviceSetMemPool(0, pool));
	CUDA(cudaDeviceGetMemPool(&current, 0));
	CHECK(current == pool);
	CUDA(cudaDeviceGetDefaultMemPool(&current, 0));
	CHECK(current != pool);
	CUDA(cudaDeviceSetMemPool(0, current));
	CUDA(cudaMemPoolTrimTo(pool, 0));
	CUDA(cudaMemPoolDestroy(pool));
	CUDA(cudaStreamDestroy(s));
}

static void host_and_device_use_the_same_managed_memory(void)
{
	int *p;
	cudaPointerAttributes a;

	CUDA(cudaMallocManaged(&p, N * sizeof *p));
	for (int i = 0; i < N; i++)
		p[i] = 1000 * i;
	count_up<<<(N + 127) / 128, 128>>>(p, N);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		CHECK(p[i] == 1001 * i + start);
	CUDA(cudaPointerGetAttributes(&a, p));
	CHECK(a.type == cudaMemoryTypeManaged && a.devicePointer == p && a.hostPointer == p);
#if CUDART_VERSION >= 13000
	cudaMemLocation device = { cudaMemLocationTypeDevice, 0 };

	CUDA(cudaMemAdvise(p, N * sizeof *p, cudaMemAdviseSetPreferredLocation, device));
	CUDA(cudaMemPrefetchAsync(p, N * sizeof *p, device, 0, 0));
#else
	CUDA(cudaMemAdvise(p, N * sizeof *p, cudaMemAdviseSetPreferredLocation, 0));
	CUDA(cudaMemPrefetchAsync(p, N * sizeof *p, 0, 0));
#endif
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(p));
}

static void host_and_device_use_the_same_managed_variable(void)
{
	int back[N];

	for (int i = 0; i < N; i++)
		managed[i] = i;
	start = 7;
	count_up<<<(N + 127) / 128, 128>>>(managed, N);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		CHECK(managed[i] == 2 * i + 7);
	CUDA(cudaMemcpyFromSymbol(back, managed, sizeof back));
	CHECK(back[N - 1] == 2 * (N - 1) + 7);
	start = 40;
}

int main(void)
{
	allocates_from_a_pool();
	host_and_device_use_the_same_managed_memory();
	host_and_device_use_the_same_managed_variable();
	puts("pools: passed");
	return 0;
}
