// Exercise: warp 0 fetches data, the other warps add.  They pass a buffer back and forth, and some warp waits forever.  Fix the kernel, until
//
//     gpuload run --synccheck --racecheck exercise.cu
//
// reports no error and says that the sums are as expected.
//
// gpuload run: i32[1024]=iota out:i32[96] --grid 1 --block 128 --expect 1=iota:2688:8
#define FULL(threads) asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory")
#define EMPTY(threads) asm volatile("bar.sync 2, %0;" ::"n"(threads) : "memory")

extern "C" __global__ void sums(const int *in, int *out)
{
	__shared__ int buffer[96];
	const int t = threadIdx.x;
	int sum = 0;

	for (int round = 0; round < 8; round++) {
		if (t < 32) {
			EMPTY(128);
			for (int i = t; i < 96; i += 32)
				buffer[i] = in[round * 96 + i];
			FULL(128);
		} else {
			FULL(128);
			sum += buffer[t - 32];
			EMPTY(128);
		}
	}
	if (t >= 32)
		out[t - 32] = sum;
}
