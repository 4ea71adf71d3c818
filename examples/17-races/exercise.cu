// Exercise: count how often each digit occurs.  The kernel has races in four places.  Fix them, until
//
//     gpuload run --racecheck exercise.cu
//
// reports no error and says that the counts are as expected: each digit occurs 1000 times.
//
// gpuload run: i32[10000]=iota inout:i32[10]=zeros --grid 10 --block 250 --expect 1=1000
extern "C" __global__ void count_digits(const int *numbers, int *counts)
{
	__shared__ int bins[10];
	const unsigned t = threadIdx.x;

	if (t < 10)
		bins[t] = 0;
	for (unsigned i = blockIdx.x * 1000 + t; i < (blockIdx.x + 1) * 1000; i += 250)
		bins[numbers[i] % 10]++;
	if (t < 10)
		counts[t] += bins[t];
}
