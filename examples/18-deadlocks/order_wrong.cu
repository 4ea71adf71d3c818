// Two warps exchange values through two barriers, which they use in opposite order.
//
// gpuload run: i32[64]=iota out:i32[64] --grid 1 --block 64 --expect 1=iota:32
#define BARRIER(number) asm volatile("bar.sync %0, 64;" ::"n"(number) : "memory")

extern "C" __global__ void exchange(const int *in, int *out)
{
	__shared__ int part[64];
	const int t = threadIdx.x, lane = t % 32;

	part[t] = in[t];
	if (t < 32) {
		BARRIER(1);   // warp 0 has written its values
		BARRIER(2);   // warp 1 has written its values
		out[lane] = part[lane + 32];
	} else {
		BARRIER(2);
		BARRIER(1);
		out[lane + 32] = part[lane] + 64;
	}
}
