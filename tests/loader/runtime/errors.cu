// errors.cu — what is refused, how it is told, and what stays told.
#include <cstring>

#include "tests/loader/runtime/check.h"

__global__ void nothing(void)
{
}

__global__ void write_to(int *p)
{
	*p = 1;
}

static int not_a_kernel;

static void an_error_is_kept_until_it_is_asked_for(void)
{
	void *p;

	FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 60));
	CUDA(cudaDeviceSynchronize()); // a call that works does not clear it
	CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaSuccess);
	CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
	CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
	CHECK(strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code") == 0);
	CHECK(strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
}

static void a_wrong_launch_is_refused(void)
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

static void what_is_not_there_is_refused(void)
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

// Last: after it, the context is of no use, and every call says why.
static void a_fault_stays(void)
{
	int *d;

	CUDA(cudaMalloc(&d, 4));
	write_to<<<1, 1>>>((int *)16);
	FAILS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	FAILS(cudaErrorIllegalAddress, cudaFree(d));
	CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress);
	CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
	CUDA(cudaGetLastError()); // asked for, so told: until the next call
	FAILS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

int main(void)
{
	an_error_is_kept_until_it_is_asked_for();
	a_wrong_launch_is_refused();
	what_is_not_there_is_refused();
	a_fault_stays();
	return 0;
}
