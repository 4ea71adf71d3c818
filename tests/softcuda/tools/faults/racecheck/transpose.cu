// A tile is read by columns before its rows are complete.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: f32[1024]=iota out:f32[1024] --grid 1 --block 32,32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void transpose_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void transpose
#define FIX(...)
#endif

__shared__ float tile[32][33];
ENTRY(const float *in, float *out)
{
	tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
	FIX(__syncthreads();)
	out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
