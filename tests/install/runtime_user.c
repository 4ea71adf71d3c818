/* runtime_user.c — a program that uses only the CUDA runtime API; test_install.py builds it against the installed mini runtime. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
	unsigned out = 0;
	void *p = NULL;
	cudaError_t e = cudaMalloc(&p, sizeof out);

	if (!e)
		e = cudaMemset(p, 42, 1);
	if (!e)
		e = cudaMemcpy(&out, p, 1, cudaMemcpyDeviceToHost);
	if (!e)
		e = cudaFree(p);
	if (e)
		fprintf(stderr, "runtime_user: %s: %s\n", cudaGetErrorName(e), cudaGetErrorString(e));
	else
		printf("%u\n", out);
	return e != cudaSuccess;
}
