/* conflicts.cu — the transpose of a matrix of 256 x 256 by tiles of 32 x 32 in shared memory. */
// gpuload run: --kernel wrong --grid 8,8 --block 32,32 f32[64K]=iota out:f32[64K]
// gpuload run: --kernel right --grid 8,8 --block 32,32 f32[64K]=iota out:f32[64K]

enum { N = 256, TILE = 32 };

/* tile[x][y] with a different x in each lane: the words of a column are 32 words apart, so all of them are in one bank. */
extern "C" __global__ void wrong(const float *in, float *out)
{
	__shared__ float tile[TILE][TILE];
	int x = blockIdx.x * TILE, y = blockIdx.y * TILE;

	tile[threadIdx.y][threadIdx.x] = in[(y + threadIdx.y) * N + x + threadIdx.x];
	__syncthreads();
	out[(x + threadIdx.y) * N + y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

/* Rows of 33 words: the words of a column are 33 words apart, each in the next bank. */
extern "C" __global__ void right(const float *in, float *out)
{
	__shared__ float tile[TILE][TILE + 1];
	int x = blockIdx.x * TILE, y = blockIdx.y * TILE;

	tile[threadIdx.y][threadIdx.x] = in[(y + threadIdx.y) * N + x + threadIdx.x];
	__syncthreads();
	out[(x + threadIdx.y) * N + y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
