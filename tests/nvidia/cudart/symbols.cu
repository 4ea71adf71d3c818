// symbols.cu — device variables by their host symbols; kernels by their addresses.
#include <cstring>

#include <cuda.h>

#include "tests/nvidia/cudart/check.h"

__constant__ float weights[8];
__device__ int counter = 40;
static __device__ int hidden[3] = { 1, 2, 3 };
__device__ int on_device_only;
namespace inside {
__device__ double value;
}

__global__ void use_them(float *out)
{
	out[threadIdx.x] = weights[threadIdx.x] * (float)hidden[1];
	if (threadIdx.x == 0) {
		atomicAdd(&counter, 2);
		inside::value = 0.5 * counter;
		on_device_only = 1;
	}
}

__global__ void __launch_bounds__(64) store(int *to, int what, char small, double wide)
{
	__shared__ int shared[32];

	shared[threadIdx.x] = what + small;
	__syncthreads();
	*to = shared[0] + (int)wide;
}

static void writes_and_reads_device_variables(void)
{
	float in[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, out[8], *d_out;
	int n, all[3];
	size_t bytes;
	double value;
	void *address;
	cudaStream_t stream;

	CUDA(cudaMalloc(&d_out, sizeof out));
	CUDA(cudaMemcpyToSymbol(weights, in, sizeof in));
	CUDA(cudaMemcpyToSymbol(weights, &in[7], sizeof in[7], 2 * sizeof in[0])); // sets weights[2] to 8
	use_them<<<1, 8>>>(d_out);
	CUDA(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 8; i++)
		CHECK(out[i] == 2 * (i == 2 ? 8 : in[i]));
	CUDA(cudaMemcpyFromSymbol(&n, counter, sizeof n));
	CHECK(n == 42);
	CUDA(cudaMemcpyFromSymbol(&value, inside::value, sizeof value));
	CHECK(value == 21);
	CUDA(cudaGetSymbolAddress(&address, hidden));
	CUDA(cudaMemcpy(all, address, sizeof all, cudaMemcpyDeviceToHost));
	CHECK(all[0] == 1 && all[1] == 2 && all[2] == 3);
	CUDA(cudaGetSymbolSize(&bytes, weights));
	CHECK(bytes == sizeof in);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMemcpyToSymbolAsync(counter, &all[2], sizeof n, 0, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyFromSymbolAsync(&n, counter, sizeof n, 0, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK(n == 3);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(d_out));
}

static void refuses_an_unknown_variable(void)
{
	int x = 0;
	void *address;

	FAILS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, (const void *)&x));
	FAILS(cudaErrorInvalidValue, cudaMemcpyToSymbol(weights, &x, sizeof x, 8 * sizeof(float)));
	FAILS(cudaErrorInvalidMemcpyDirection,
	      cudaMemcpyToSymbol(weights, &x, sizeof x, 0, cudaMemcpyDeviceToHost));
	CHECK(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
}

static void a_kernel_has_attributes(void)
{
	cudaFuncAttributes a;
	const char *name;
	size_t offset, bytes;
	int blocks = 0, min_grid = 0, block = 0;

	CUDA(cudaFuncGetAttributes(&a, store));
	CHECK(a.sharedSizeBytes == 128 && a.maxThreadsPerBlock == 64);
	CHECK(a.ptxVersion >= 70 && a.binaryVersion >= 70);
	CUDA(cudaFuncGetName(&name, (const void *)store));
	CHECK(strcmp(name, "_Z5storePiicd") == 0);
	CUDA(cudaFuncGetParamInfo((const void *)store, 3, &offset, &bytes));
	CHECK(offset == 16 && bytes == 8);
	CUDA(cudaFuncSetAttribute(use_them, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
	CUDA(cudaFuncGetAttributes(&a, use_them));
	CHECK(a.maxDynamicSharedSizeBytes == 64 << 10);
	CUDA(cudaFuncSetCacheConfig(use_them, cudaFuncCachePreferShared));
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 64, 0));
	CHECK(blocks >= 1);
	CUDA(cudaOccupancyMaxPotentialBlockSize(&min_grid, &block, use_them, 0, 256));
	CHECK(min_grid >= 1 && block >= 32 && block <= 256);
}

// Launch a kernel in six ways.
static void launches_a_kernel_in_every_way(void)
{
	CUresult(CUDAAPI * launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
				   unsigned, CUstream, void **, void **);
	cudaLaunchConfig_t config = {};
	cudaDriverEntryPointQueryResult found;
	int *d, h, what = 5, *parameter;
	char small = 2;
	double wide = 100;
	void *args[] = { &parameter, &what, &small, &wide }, *entry;
	cudaFunction_t function;
	cudaKernel_t kernel;

	CUDA(cudaMalloc(&d, 6 * sizeof *d));
	store<<<1, 32>>>(d, what, small, wide);
	parameter = d + 1;
	CUDA(cudaLaunchKernel((const void *)store, dim3(1), dim3(32), args, 0, 0));
	parameter = d + 2;
	CUDA(cudaLaunchCooperativeKernel((const void *)store, dim3(1), dim3(32), args, 0, 0));
	config.gridDim = 1;
	config.blockDim = 32;
	CUDA(cudaLaunchKernelEx(&config, store, d + 3, what, small, wide));
	CUDA(cudaGetFuncBySymbol(&function, (const void *)store));
	CUDA(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &entry, 12000, cudaEnableDefault, &found));
	CHECK(found == cudaDriverEntryPointSuccess);
	launch = (__typeof__(launch))entry;
	parameter = d + 4;
	CHECK(launch((CUfunction)function, 1, 1, 1, 32, 1, 1, 0, 0, args, NULL) == CUDA_SUCCESS);
	CUDA(cudaGetKernel(&kernel, store));
	parameter = d + 5;
	CUDA(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), args, 0, 0));
	for (int i = 0; i < 6; i++) {
		CUDA(cudaMemcpy(&h, d + i, sizeof h, cudaMemcpyDeviceToHost));
		CHECK(h == 107);
	}
	CUDA(cudaFree(d));
}

int main(void)
{
	writes_and_reads_device_variables();
	refuses_an_unknown_variable();
	a_kernel_has_attributes();
	launches_a_kernel_in_every_way();
	return 0;
}
