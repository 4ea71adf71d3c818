// samples.cu — typical tutorial kernels: tiles in shared memory, templates, atomics.
#include "tests/nvidia/cudart/check.h"

enum { TILE = 16, N = 64, BINS = 64 };

// C = A * B, tile by tile.
template <int tile> __global__ void multiply(float *c, const float *a, const float *b, int n)
{
	__shared__ float part_a[tile][tile], part_b[tile][tile];
	int x = threadIdx.x, y = threadIdx.y;
	int column = blockIdx.x * tile + x, row = blockIdx.y * tile + y;
	float sum = 0;

	for (int t = 0; t < n; t += tile) {
		part_a[y][x] = a[row * n + t + x];
		part_b[y][x] = b[(t + y) * n + column];
		__syncthreads();
		for (int i = 0; i < tile; i++)
			sum += part_a[y][i] * part_b[i][x];
		__syncthreads();
	}
	c[row * n + column] = sum;
}

static void multiplies_matrices(void)
{
	static float a[N * N], b[N * N], c[N * N];
	float *d_a, *d_b, *d_c;
	dim3 block(TILE, TILE), grid(N / TILE, N / TILE);

	for (int i = 0; i < N * N; i++) {
		a[i] = (float)(i % 7);
		b[i] = (float)(i % 5);
	}
	CUDA(cudaMalloc(&d_a, sizeof a));
	CUDA(cudaMalloc(&d_b, sizeof b));
	CUDA(cudaMalloc(&d_c, sizeof c));
	CUDA(cudaMemcpy(d_a, a, sizeof a, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(d_b, b, sizeof b, cudaMemcpyHostToDevice));
	multiply<TILE><<<grid, block>>>(d_c, d_a, d_b, N);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(c, d_c, sizeof c, cudaMemcpyDefault));
	for (int row = 0; row < N; row++) {
		for (int column = 0; column < N; column++) {
			float sum = 0; // the sum is exact in any order, because all numbers are small integers

			for (int i = 0; i < N; i++)
				sum += a[row * N + i] * b[i * N + column];
			CHECK(c[row * N + column] == sum);
		}
	}
	CUDA(cudaFree(d_a));
	CUDA(cudaFree(d_b));
	CUDA(cudaFree(d_c));
}

// Uses pitched rows and dynamic shared memory.
template <class T> __global__ void transpose(T *to, size_t to_pitch, const T *from, size_t from_pitch)
{
	extern __shared__ char bytes[];
	T *tile = (T *)bytes;
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

	tile[threadIdx.y * (TILE + 1) + threadIdx.x] = ((const T *)((const char *)from + y * from_pitch))[x];
	__syncthreads();
	x = blockIdx.y * TILE + threadIdx.x;
	y = blockIdx.x * TILE + threadIdx.y;
	((T *)((char *)to + y * to_pitch))[x] = tile[threadIdx.x * (TILE + 1) + threadIdx.y];
}

template <class T> static void transposes(void)
{
	static T in[N][2 * N], out[2 * N][N];
	size_t in_pitch, out_pitch, row = 2 * N * sizeof(T), column = N * sizeof(T);
	T *d_in, *d_out;

	for (int i = 0; i < N * 2 * N; i++)
		in[i / (2 * N)][i % (2 * N)] = (T)i;
	CUDA(cudaMallocPitch(&d_in, &in_pitch, row, N));
	CUDA(cudaMallocPitch(&d_out, &out_pitch, column, 2 * N));
	CHECK(in_pitch >= row && out_pitch >= column);
	CUDA(cudaMemcpy2D(d_in, in_pitch, in, row, row, N, cudaMemcpyHostToDevice));
	CUDA(cudaMemset2D(d_out, out_pitch, 0x55, column, 2 * N));
	transpose<T><<<dim3(2 * N / TILE, N / TILE), dim3(TILE, TILE), TILE * (TILE + 1) * sizeof(T)>>>(
		d_out, out_pitch, d_in, in_pitch);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy2D(out, column, d_out, out_pitch, column, 2 * N, cudaMemcpyDeviceToHost));
	for (int y = 0; y < N; y++)
		for (int x = 0; x < 2 * N; x++)
			CHECK(out[x][y] == in[y][x]);
	FAILS(cudaErrorInvalidPitchValue,
	      cudaMemcpy2D(d_in, row - 1, in, row, row, N, cudaMemcpyHostToDevice));
	CHECK(cudaGetLastError() == cudaErrorInvalidPitchValue);
	CUDA(cudaFree(d_in));
	CUDA(cudaFree(d_out));
}

__global__ void sum_blocks(const int *in, int *sums, int n)
{
	extern __shared__ int part[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = i < n ? in[i] : 0;
	__syncthreads();
	for (int half = blockDim.x / 2; half; half /= 2) {
		if ((int)threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		sums[blockIdx.x] = part[0];
}

__global__ void histogram(const unsigned char *data, int n, unsigned *bins)
{
	__shared__ unsigned mine[BINS];

	if (threadIdx.x < BINS)
		mine[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&mine[data[i] % BINS], 1u);
	__syncthreads();
	if (threadIdx.x < BINS)
		atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

static void reduces_and_counts(void)
{
	enum { COUNT = 5000, BLOCK = 128, BLOCKS = (COUNT + BLOCK - 1) / BLOCK };
	static int in[COUNT], sums[BLOCKS];
	static unsigned char data[COUNT];
	unsigned bins[BINS], expected[BINS] = { 0 };
	int *d_in, *d_sums, sum = 0, wanted = 0;
	unsigned char *d_data;
	unsigned *d_bins;

	for (int i = 0; i < COUNT; i++) {
		in[i] = i % 13 - 4;
		wanted += in[i];
		data[i] = (unsigned char)(i * i);
		expected[data[i] % BINS]++;
	}
	CUDA(cudaMalloc(&d_in, sizeof in));
	CUDA(cudaMalloc(&d_sums, sizeof sums));
	CUDA(cudaMalloc(&d_data, sizeof data));
	CUDA(cudaMalloc(&d_bins, sizeof bins));
	CUDA(cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(d_data, data, sizeof data, cudaMemcpyHostToDevice));
	CUDA(cudaMemset(d_bins, 0, sizeof bins));
	sum_blocks<<<BLOCKS, BLOCK, BLOCK * sizeof(int)>>>(d_in, d_sums, COUNT);
	histogram<<<7, BLOCK>>>(d_data, COUNT, d_bins);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(bins, d_bins, sizeof bins, cudaMemcpyDeviceToHost));
	for (int i = 0; i < BLOCKS; i++)
		sum += sums[i];
	CHECK(sum == wanted);
	for (int i = 0; i < BINS; i++)
		CHECK(bins[i] == expected[i]);
	CUDA(cudaFree(d_in));
	CUDA(cudaFree(d_sums));
	CUDA(cudaFree(d_data));
	CUDA(cudaFree(d_bins));
}

__global__ void vote(int *out)
{
	int even = threadIdx.x % 2 == 0;

	out[threadIdx.x] = (int)__ballot_sync(~0u, even) ^ __any_sync(~0u, threadIdx.x == 31) ^
			   __shfl_xor_sync(~0u, (int)threadIdx.x, 1);
}

__global__ void clocks(long long *out)
{
	long long start = clock64();

	printf("thread %d of block %d\n", threadIdx.x, blockIdx.x);
	out[blockIdx.x] = clock64() - start;
}

static void votes_prints_and_reads_the_clock(void)
{
	int out[32], *d_out;
	long long ticks[3], *d_ticks;

	CUDA(cudaMalloc(&d_out, sizeof out));
	CUDA(cudaMalloc(&d_ticks, sizeof ticks));
	vote<<<1, 32>>>(d_out);
	clocks<<<3, 1>>>(d_ticks);
	CUDA(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(ticks, d_ticks, sizeof ticks, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		CHECK(out[i] == (0x55555555 ^ 1 ^ (i ^ 1)));
	for (int i = 0; i < 3; i++)
		CHECK(ticks[i] >= 0);
	CUDA(cudaFree(d_out));
	CUDA(cudaFree(d_ticks));
}

int main(void)
{
	multiplies_matrices();
	transposes<float>();
	transposes<double>();
	transposes<unsigned char>();
	reduces_and_counts();
	votes_prints_and_reads_the_clock();
	return 0;
}
