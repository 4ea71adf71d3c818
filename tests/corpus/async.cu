/* Asynchronous copies to shared memory (in hardware since sm_80, bulk copies since sm_90), and barriers in
 * shared memory.  For older GPUs the toolkit's headers use ordinary loads and stores. */
#include <cuda/barrier>
#include <cuda_pipeline_primitives.h>

/* Copies tiles of 64 float4, one tile ahead of the tile in use, and writes each tile in reverse order. */
extern "C" __global__ void pipeline(const float4 *in, float4 *out, int tiles)
{
	__shared__ float4 s[2][64];
	int t = threadIdx.x;

	__pipeline_memcpy_async(&s[0][t], in + t, sizeof *in);
	__pipeline_commit();
	for (int k = 0; k < tiles; k++) {
		if (k + 1 < tiles)
			__pipeline_memcpy_async(&s[(k + 1) & 1][t], in + 64 * (k + 1) + t, sizeof *in);
		__pipeline_commit();
		__pipeline_wait_prior(1);
		__syncthreads();
		out[64 * k + t] = s[k & 1][63 - t];
		__syncthreads();
	}
}

/* Warp 0 fills two buffers alternately, and warp 1 reads them; each warp waits for the other's barriers. */
extern "C" __global__ void hand(const int *in, int *out, int rounds)
{
	using barrier = cuda::barrier<cuda::thread_scope_block>;
	__shared__ alignas(8) char words[4][sizeof(barrier)];
	__shared__ int s[2][32];
	barrier *full = (barrier *)words[0], *empty = (barrier *)words[2];
	int lane = threadIdx.x % 32, sum = 0;

	if (threadIdx.x == 0)
		for (int k = 0; k < 2; k++) {
			init(&full[k], 64);
			init(&empty[k], 64);
		}
	__syncthreads();
	if (threadIdx.x < 32) {
		for (int k = 0; k < rounds; k++) {
			empty[k & 1].arrive_and_wait();
			s[k & 1][lane] = 3 * in[32 * k + lane];
			(void)full[k & 1].arrive();
		}
		return;
	}
	(void)empty[0].arrive();
	(void)empty[1].arrive();
	for (int k = 0; k < rounds; k++) {
		full[k & 1].arrive_and_wait();
		sum += (k + 1) * s[k & 1][31 - lane];
		(void)empty[k & 1].arrive();
	}
	out[lane] = sum;
}
