/* program.c — a C program that launches vecadd by its host stub, through NVIDIA's runtime.
 *
 * Prints "ok" and exits with status 0 if the sums are correct. */
#include <cuda_runtime_api.h>
#include <stdio.h>

enum { N = 1024 };

void vecadd(const float *a, const float *b, float *c, int n); /* the host stub that nvcc generates */

static cudaError_t launch(float *a, float *b, float *c)
{
	int n = N;
	void *args[] = { &a, &b, &c, &n };

	return cudaLaunchKernel((const void *)vecadd, (dim3){ N / 256, 1, 1 }, (dim3){ 256, 1, 1 }, args, 0, 0);
}

int main(void)
{
	static float a[N], b[N], c[N];
	float *on_device = NULL; /* a, b and c, consecutively */
	int wrong = 0;

	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	cudaError_t r = cudaMalloc((void **)&on_device, sizeof(a) + sizeof(b) + sizeof(c));
	if (!r)
		r = cudaMemcpy(on_device, a, sizeof(a), cudaMemcpyHostToDevice);
	if (!r)
		r = cudaMemcpy(on_device + N, b, sizeof(b), cudaMemcpyHostToDevice);
	if (!r)
		r = launch(on_device, on_device + N, on_device + 2 * N);
	if (!r)
		r = cudaMemcpy(c, on_device + 2 * N, sizeof(c), cudaMemcpyDeviceToHost);
	for (int i = 0; i < N && !r; i++)
		wrong += c[i] != (float)(3 * i);
	printf("%s\n", r ? cudaGetErrorString(r) : wrong ? "wrong sums" : "ok");
	cudaFree(on_device);
	return r || wrong;
}
