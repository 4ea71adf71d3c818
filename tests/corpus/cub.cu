/* CUB's block-wide algorithms: reduce, scan, radix sort. */
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

enum { THREADS = 128, EACH = 4 };

extern "C" __global__ void cubsum(const int *in, int *out)
{
	using reduce = cub::BlockReduce<int, THREADS>;
	using scan = cub::BlockScan<int, THREADS>;
	__shared__ union {
		reduce::TempStorage r;
		scan::TempStorage s;
	} room;
	int v[EACH];

	for (int k = 0; k < EACH; k++)
		v[k] = in[EACH * threadIdx.x + k];
	int sum = reduce(room.r).Sum(v);
	if (threadIdx.x == 0)
		out[THREADS * EACH] = sum;
	__syncthreads();
	scan(room.s).ExclusiveSum(v, v);
	for (int k = 0; k < EACH; k++)
		out[EACH * threadIdx.x + k] = v[k];
}

extern "C" __global__ void cubsort(const int *in, int *out)
{
	using sort = cub::BlockRadixSort<int, THREADS, EACH>;
	__shared__ sort::TempStorage room;
	int v[EACH];

	for (int k = 0; k < EACH; k++)
		v[k] = in[EACH * threadIdx.x + k];
	sort(room).Sort(v);
	for (int k = 0; k < EACH; k++)
		out[EACH * threadIdx.x + k] = v[k];
}
