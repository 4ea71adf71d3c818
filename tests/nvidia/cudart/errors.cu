// errors.cu — refused calls, the last error, and sticky errors.
#include <cstring>

#include "tests/nvidia/cudart/check.h"

__global__ void nothing(void)
{
}

__global__ void write_to(int *p)
{
	*p = 1;
}

static int not_a_kernel;

static void the_last_error_is_kept_until_it_is_read(void)
{
	void *p;

	FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 60));
	CUDA(cudaDeviceSynchronize()); // a successful call does not clear the last error
	CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaSuccess);
	CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
	CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
	CHECK(strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code") == 0);
	CHECK(strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
}

static void refuses_an_invalid_launch(void)
{
	nothing<<<1, 1025>>>();
	CHECK(cudaGetLastError() == cudaErrorInvalidValue);
	nothing<<<0, 32>>>();
	CHECK(cudaGetLastError() == cudaErrorInvalidValue);
	nothing<<<dim3(1, 65536), 32>>>();
	CHECK(cudaGetLastError() == cudaErrorInvalidValue);
	nothing<<<1, 32, 1 << 20>>>();
	CHECK(cudaGetLastError() == cudaErrorInvalidValue);
	FAILS(cudaErrorInvalidResourceHandle,
	      cudaLaunchKernel((const void *)&not_a_kernel, dim3(1), dim3(1), NULL, 0, 0));
	FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(&not_a_kernel, &not_a_kernel, 4, (cudaMemcpyKind)9));
	CHECK(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
	nothing<<<1, 32>>>();
	CUDA(cudaGetLastError());
}

static void refuses_unknown_devices_and_symbols(void)
{
	void *p = &p;
	int n = -1;

	FAILS(cudaErrorInvalidDevice, cudaSetDevice(1000));
	FAILS(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, -1));
	CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
	FAILS(cudaErrorInvalidValue, cudaMalloc((void **)NULL, 4));
	CUDA(cudaMalloc(&p, 0));
	CHECK(p == NULL);
	CUDA(cudaFree(NULL));
	CUDA(cudaFreeHost(NULL));
	(void)cudaGetLastError();
}

// main() calls this test last, because after a fault every call of the context returns the error.
static void a_fault_is_sticky(void)
{
	int *d;

	CUDA(cudaMalloc(&d, 4));
	write_to<<<1, 1>>>((int *)16);
	FAILS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	FAILS(cudaErrorIllegalAddress, cudaFree(d));
	CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress);
	CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
	CUDA(cudaGetLastError()); // reading the error cleared it, until the next call
	FAILS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

int main(void)
{
	the_last_error_is_kept_until_it_is_read();
	refuses_an_invalid_launch();
	refuses_unknown_devices_and_symbols();
	a_fault_is_sticky();
	return 0;
}
