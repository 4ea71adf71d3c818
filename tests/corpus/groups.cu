/* Cooperative groups: tiles, coalesced threads, and the whole grid. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(int *out, int n)
{
	auto block = cg::this_thread_block();
	auto warp = cg::tiled_partition<32>(block);
	auto eight = cg::tiled_partition<8>(block);
	int i = block.thread_rank();

	out[i] = cg::reduce(warp, i, cg::plus<int>());
	out[n + i] = cg::reduce(eight, i * 3 % 17, cg::greater<int>());
	out[2 * n + i] = cg::inclusive_scan(warp, i);
	out[3 * n + i] = eight.shfl_down(i, 3);
	out[4 * n + i] = eight.match_any(i % 3);
	if (i % 3 == 1) {
		auto few = cg::coalesced_threads();
		out[5 * n + i] = few.thread_rank() + 100 * few.size() + 10000 * cg::reduce(few, 1, cg::plus<int>());
	}
}

/* In each round, every thread computes the sum of its two neighbours; the grid synchronises between rounds. */
extern "C" __global__ void gridsync(int *a, int *b, int n, int rounds)
{
	auto grid = cg::this_grid();
	int i = grid.thread_rank();

	for (int r = 0; r < rounds; r++) {
		const int *from = r % 2 ? b : a;
		int *to = r % 2 ? a : b;
		if (i < n)
			to[i] = from[(i + 1) % n] + from[(i + n - 1) % n];
		grid.sync();
	}
}

/* Blocks of 7 x 5 x 3 threads: the last warp has 9. */
extern "C" __global__ void shapes(int *out, int *lanes)
{
	__shared__ int s[105];
	int threads = blockDim.x * blockDim.y * blockDim.z;
	int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);

	s[t] = t * b;
	__syncthreads();
	out[b * threads + t] = s[threads - 1 - t] + 1000000 * __syncthreads_count(t % 3 == 0);
	lanes[b * threads + t] = __popc(__ballot_sync(__activemask(), 1));
}
