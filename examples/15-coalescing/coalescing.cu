/* coalescing.cu — the sum of each row of a matrix of 256 x 256: first with one thread for each row, then with one warp. */
// gpuload run: --kernel wrong --grid 8 --block 32 f32[64K]=ones out:f32[256] --expect 1=256
// gpuload run: --kernel right --grid 32 --block 256 f32[64K]=ones out:f32[256] --expect 1=256

enum { COLUMNS = 256 };

/* Lane l reads in[l * 256 + k]: the addresses of a load are 1024 bytes apart. */
extern "C" __global__ void wrong(const float *in, float *out)
{
	int row = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;

	for (int k = 0; k < COLUMNS; k++)
		sum += in[row * COLUMNS + k];
	out[row] = sum;
}

/* Lane l reads in[row * 256 + k + l]: the lanes of a load read neighbouring elements.  Then the lanes add up their partial sums. */
extern "C" __global__ void right(const float *in, float *out)
{
	int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
	float sum = 0;

	for (int k = lane; k < COLUMNS; k += 32)
		sum += in[row * COLUMNS + k];
	for (int step = 16; step > 0; step /= 2)
		sum += __shfl_down_sync(0xffffffff, sum, step);
	if (lane == 0)
		out[row] = sum;
}
