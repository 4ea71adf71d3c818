/* Communication between the lanes of a warp and between the warps of a block: votes, shuffles, matches, barriers. */
extern "C" __global__ void warpops(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = i < n ? in[i] : 0;

	unsigned ballot = __ballot_sync(~0u, v > 3);
	int any = __any_sync(~0u, v == 7), all = __all_sync(~0u, v >= 0);
	int count = __syncthreads_count(v > 3);
	int block_or = __syncthreads_or(v == 5), block_and = __syncthreads_and(v >= 0);
	unsigned active = __activemask();
	int up = __shfl_up_sync(~0u, v, 1), from = __shfl_sync(~0u, v, ballot & 31);
	int across = __shfl_xor_sync(~0u, v, 4);
	__syncwarp();
	int same = __match_any_sync(~0u, v);
	int all_same, same_mask = __match_all_sync(~0u, v, &all_same);
	unsigned lanes_below, sm, lane;

	asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_below));
	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
	int bits = __popc(ballot & lanes_below) + __ffs(ballot) + __clz(ballot) + __brev(ballot)
		 + __byte_perm(ballot, active, 0x3210);

	/* The multiprocessor's number varies, so only test that it is below 2^31. */
	if (i < n)
		out[i] = ballot + any + all + count + block_or + block_and + active + up + from
		       + across + same + same_mask + all_same + bits + (sm >> 31) + lane;
}

/* 96 threads: 64 wait at barrier 1; the last 32 arrive there and continue. */
extern "C" __global__ void namedbar(int *o)
{
	__shared__ int s[64];
	int odd;

	if (threadIdx.x < 64) {
		s[threadIdx.x] = threadIdx.x;
		asm volatile("bar.sync 1, 96;" ::: "memory");
	} else {
		asm volatile("bar.arrive 1, 96;" ::: "memory");
	}
	asm volatile("barrier.sync 0;" ::: "memory");
	o[threadIdx.x] = s[threadIdx.x & 63];
	asm volatile("{ .reg .pred q; setp.ne.s32 q, %1, 0; bar.red.popc.u32 %0, 2, 96, q; }"
		     : "=r"(odd) : "r"((int)threadIdx.x & 1));
	o[threadIdx.x] += odd;
}
