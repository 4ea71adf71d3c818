// clean.cu — kernels without a data race: usual ways in which threads of a warp, warps, and blocks synchronise.
//
// A line "// run: ARGUMENTS" before a kernel says how test_clean.py runs it.
#include <cooperative_groups.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

#define KERNEL extern "C" __global__ void

// ---- lanes and warps ------------------------------------------------------------------------------------------------

// run: --grid 1 --block 64 i32[64]=iota out:i32[1] --expect 1=2016
KERNEL volatile_tail_with_syncwarp(const int *in, int *out)
{
	__shared__ volatile int s[64];
	const int t = threadIdx.x;

	s[t] = in[t];
	__syncthreads();
	if (t < 32) {
		int v = s[t] + s[t + 32];

		for (int k = 16; k > 0; k /= 2) {
			__syncwarp();
			s[t] = v;
			__syncwarp();
			if (t < k)
				v += s[t + k];
		}
		if (t == 0)
			*out = v;
	}
}

// run: --grid 1 --block 256 i32[256]=iota out:i32[1] --expect 1=32640
KERNEL volatile_tree_with_barriers(const int *in, int *out)
{
	__shared__ volatile int s[256];
	const int t = threadIdx.x;

	s[t] = in[t];
	for (int k = 128; k > 0; k /= 2) {
		__syncthreads();
		if (t < k)
			s[t] += s[t + k];
	}
	if (t == 0)
		*out = s[0];
}

// run: --grid 2 --block 128 i32[256]=iota out:i32[2]
KERNEL shuffles_then_shared(const int *in, int *out)
{
	__shared__ int s[4];
	const int t = threadIdx.x;
	int v = in[blockIdx.x * 128 + t];

	for (int k = 16; k > 0; k /= 2)
		v += __shfl_down_sync(~0u, v, k);
	if (t % 32 == 0)
		s[t / 32] = v;
	__syncthreads();
	if (t == 0)
		out[blockIdx.x] = s[0] + s[1] + s[2] + s[3];
}

// run: --grid 1 --block 64 out:i32[64]
KERNEL groups_of_a_warp(int *out)
{
	__shared__ int s[64];
	const int t = threadIdx.x;
	auto tile = cg::tiled_partition<8>(cg::this_thread_block());

	s[t] = t;
	tile.sync();
	out[t] = s[(t & ~7) + (t + 1) % 8];
	tile.sync();
	s[(t & ~7) + (t + 3) % 8] = t;
	cg::this_thread_block().sync();
	out[t] += s[63 - t];
}

// run: --grid 1 --block 64 out:i32[64]
KERNEL lanes_of_a_mask(int *out)
{
	__shared__ int s[64];
	const int t = threadIdx.x;

	if (t % 2) {
		s[t] = t;
		__syncwarp(0xaaaaaaaa);
		out[t] = s[t ^ 2];
	} else {
		out[t] = 0;
	}
}

// run: --grid 1 --block 64 out:i32[64]
KERNEL first_stored_then_counted_by_a_warp(int *out)
{
	__shared__ int s[2];
	const int t = threadIdx.x;

	if (t % 32 == 0)
		s[t / 32] = 0;
	__syncwarp();
	atomicAdd(&s[t / 32], 1);
	__syncwarp();
	out[t] = s[t / 32];
}

// run: --grid 1 --block 128 out:i32[10]
KERNEL first_stored_then_counted_by_a_block(int *out)
{
	__shared__ int bins[10];
	const int t = threadIdx.x;

	if (t < 10)
		bins[t] = 0;
	__syncthreads();
	atomicAdd(&bins[t % 10], 1);
	atomicAdd(&bins[t % 10], 1);
	__syncthreads();
	if (t < 10)
		out[t] = bins[t];
}

// run: --grid 2 --block 64 out:i32[128]
KERNEL counters_of_one_thread(int *out)
{
	int *mine = &out[blockIdx.x * 64 + threadIdx.x];

	*mine = 0;
	atomicAdd(mine, 3);
	*mine += 1;
	*(volatile int *)mine += 1;
	atomicExch(mine, *mine + 1);
}

// run: --grid 1 --block 96 out:i32[96]
KERNEL volatile_words_of_one_thread(int *out)
{
	__shared__ volatile int s[96];
	const int t = threadIdx.x;

	s[t] = t;
	for (int k = 0; k < 8; k++)
		s[t] = s[t] * 3 + 1;
	out[t] = s[t];
}

// run: --grid 1 --block 64 out:i32[32]
KERNEL named_barriers(int *out)
{
	__shared__ int s[32];
	const int t = threadIdx.x;

	if (t < 32) {
		for (int k = 0; k < 4; k++) {
			s[t] = t + k;
			asm volatile("bar.arrive 1, 64;" ::: "memory");
			asm volatile("bar.sync 2, 64;" ::: "memory");
		}
	} else {
		int sum = 0;

		for (int k = 0; k < 4; k++) {
			asm volatile("bar.sync 1, 64;" ::: "memory");
			sum += s[63 - t];
			asm volatile("bar.arrive 2, 64;" ::: "memory");
		}
		out[t - 32] = sum;
	}
}

// run: --grid 1 --block 64 out:i32[8]
KERNEL mailbox_of_two_warps(int *out)
{
	__shared__ volatile int full, data;
	const int t = threadIdx.x;

	if (t == 0)
		full = 0;
	__syncthreads();
	if (t == 0) {
		for (int k = 0; k < 8; k++) {
			while (full)
				;
			__threadfence_block();
			data = k * k;
			__threadfence_block();
			full = 1;
		}
	} else if (t == 32) {
		for (int k = 0; k < 8; k++) {
			while (!full)
				;
			__threadfence_block();
			out[k] = data;
			__threadfence_block();
			full = 0;
		}
	}
}

// run: --grid 1 --block 64 out:i32[1]
KERNEL petersons_lock(int *out)
{
	__shared__ volatile int wants[2], turn;
	__shared__ int count;
	const int t = threadIdx.x, me = t / 32;

	if (t == 0) {
		wants[0] = wants[1] = turn = 0;
		count = 0;
	}
	__syncthreads();
	if (t % 32 == 0) {
		for (int k = 0; k < 5; k++) {
			wants[me] = 1;
			__threadfence_block();
			turn = 1 - me;
			__threadfence_block();
			while (wants[1 - me] && turn != me)
				;
			__threadfence_block();
			count++;
			__threadfence_block();
			wants[me] = 0;
		}
	}
	__syncthreads();
	if (t == 0)
		*out = count;
}

// ---- blocks: signals -----------------------------------------------------------------------------------------------------

// run: --grid 2 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros out:i32[1] --expect 2=42
KERNEL volatile_flag(int *data, volatile int *flag, int *out)
{
	if (threadIdx.x)
		return;
	if (blockIdx.x == 0) {
		*data = 42;
		__threadfence();
		*flag = 1;
	} else {
		while (*flag == 0)
			;
		__threadfence();
		*out = *data;
	}
}

// run: --grid 2 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros out:i32[1] --expect 2=42
KERNEL volatile_flag_and_data(volatile int *data, volatile int *flag, int *out)
{
	if (threadIdx.x)
		return;
	if (blockIdx.x == 0) {
		*data = 42;
		__threadfence();
		*flag = 1;
	} else {
		while (*flag == 0)
			__nanosleep(20);
		*out = *data;
	}
}

// run: --grid 2 --block 64 inout:i32[64]=zeros inout:i32[1]=zeros out:i32[64] --expect 2=7
KERNEL one_thread_polls_for_its_block(int *data, int *flag, int *out)
{
	const int t = threadIdx.x;

	if (blockIdx.x == 0) {
		data[t] = 7;
		__threadfence();
		__syncthreads();
		if (t == 0)
			atomicExch(flag, 1);
	} else {
		if (t == 0)
			while (*(volatile int *)flag != 1)
				;
		__syncthreads();
		out[t] = data[t];
	}
}

// run: --grid 2 --block 64 inout:i32[64]=zeros inout:i32[1]=zeros out:i32[64] --expect 2=7
KERNEL all_threads_poll_together(int *data, volatile int *flag, int *out)
{
	const int t = threadIdx.x;

	if (blockIdx.x == 0) {
		data[t] = 7;
		__threadfence();
		__syncthreads();
		if (t == 0)
			*flag = 1;
	} else {
		while (!__syncthreads_or(*flag))
			;
		__threadfence();
		out[t] = data[t];
	}
}

// run: --grid 2 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros out:i32[1] --expect 2=42
KERNEL release_and_acquire(int *data, int *flag, int *out)
{
	cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);

	if (threadIdx.x)
		return;
	if (blockIdx.x == 0) {
		*data = 42;
		ready.store(1, cuda::memory_order_release);
	} else {
		while (ready.load(cuda::memory_order_acquire) == 0)
			;
		*out = *data;
	}
}

// run: --grid 6 --block 32 inout:i32[6]=zeros out:i32[6] --expect 1=iota
KERNEL a_chain_of_blocks(volatile int *ready, volatile int *sums)
{
	const int b = blockIdx.x;

	if (threadIdx.x)
		return;
	if (b > 0) {
		int n_polls = 0;

		while (ready[b - 1] == 0) {
			n_polls++;
			if (n_polls % 4 == 0)
				__nanosleep(50);
		}
		__threadfence();
	}
	sums[b] = b > 0 ? sums[b - 1] + 1 : 0;
	__threadfence();
	ready[b] = 1;
}

// run: --grid 2 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros out:i32[8]
KERNEL mailbox_of_two_blocks(volatile int *full, volatile int *data, int *out)
{
	if (threadIdx.x)
		return;
	for (int k = 0; k < 8; k++) {
		while (*full != (blockIdx.x ? 1 : 0))
			;
		__threadfence();
		if (blockIdx.x == 0)
			*data = k;
		else
			out[k] = *data;
		__threadfence();
		*full = 1 - blockIdx.x;
	}
}

// Like NVIDIA's sample threadFenceReduction, the last block adds the sums of all blocks; here the sums are volatile.
// run: --grid 16 --block 64 i32[1024]=ones inout:i32[16]=zeros inout:u32[1]=zeros out:i32[1] --expect 3=1024
KERNEL sum_of_the_last_block(const int *in, volatile int *sums, unsigned *n_done, int *out)
{
	__shared__ int s[64];
	__shared__ bool last;
	const int t = threadIdx.x;

	s[t] = in[blockIdx.x * 64 + t];
	for (int k = 32; k > 0; k /= 2) {
		__syncthreads();
		if (t < k)
			s[t] += s[t + k];
	}
	if (t == 0) {
		sums[blockIdx.x] = s[0];
		__threadfence();
		last = atomicInc(n_done, gridDim.x) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && t == 0) {
		int all = 0;

		for (int k = 0; k < gridDim.x; k++)
			all += sums[k];
		*out = all;
	}
}

// A prefix sum in one pass: each block looks back at earlier blocks, until it finds one that knows the sum of all blocks before it.
// run: --grid 12 --block 32 i32[12]=iota inout:i32[12]=zeros inout:i32[12]=zeros inout:i32[12]=zeros inout:i32[1]=zeros out:i32[12]
KERNEL look_back(const int *in, volatile int *state, volatile int *own, volatile int *all, int *ticket, int *out)
{
	__shared__ int index;
	enum { OWN = 1, ALL = 2 };

	if (threadIdx.x == 0)
		index = atomicAdd(ticket, 1);
	__syncthreads();
	if (threadIdx.x)
		return;
	const int b = index;
	int before = 0;

	own[b] = in[b];
	__threadfence();
	state[b] = OWN;
	for (int k = b - 1; k >= 0; k--) {
		int s;

		while ((s = state[k]) == 0)
			;
		__threadfence();
		if (s == ALL) {
			before += all[k];
			break;
		}
		before += own[k];
	}
	all[b] = before + in[b];
	__threadfence();
	state[b] = ALL;
	out[b] = before;
}

// Like look_back, but the state and the sum are in one word, and one loop looks back.
// run: --grid 12 --block 32 i32[12]=iota inout:u64[12]=zeros out:i32[12]
KERNEL look_back_in_words(const int *in, volatile unsigned long long *word, int *out)
{
	const unsigned long long OWN = 1ull << 62, ALL = 2ull << 62;
	const int b = blockIdx.x;
	int before = 0, k = b - 1;

	if (threadIdx.x)
		return;
	word[b] = (b ? OWN : ALL) | in[b];
	while (k >= 0) {
		unsigned long long w = word[k];

		if (!w)
			continue;
		before += (int)w;
		if (w & ALL)
			break;
		k--;
	}
	if (b)
		word[b] = ALL | (before + in[b]);
	out[b] = before;
}

__device__ void wait_for_grid(unsigned *count, unsigned n)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		atomicAdd(count, 1);
		while (*(volatile unsigned *)count < n * gridDim.x)
			;
		__threadfence();
	}
	__syncthreads();
}

// run: --grid 4 --block 64 inout:i32[256]=zeros inout:u32[1]=zeros out:i32[256]
KERNEL barrier_of_the_grid(int *data, unsigned *count, int *out)
{
	const int i = blockIdx.x * 64 + threadIdx.x;

	for (unsigned k = 0; k < 3; k++) {
		data[i] += i;
		wait_for_grid(count, 2 * k + 1);
		out[i] = data[(i + 64) % 256];
		wait_for_grid(count, 2 * k + 2);
	}
}

// run: --grid 8 --block 64 inout:i32[1]=zeros inout:i32[8]=zeros
KERNEL early_exit(volatile int *found, int *rounds)
{
	for (int k = 0; k < 20; k++) {
		if (*found)
			return;
		if (threadIdx.x == 0)
			rounds[blockIdx.x]++;
		if (k == 5 + (int)blockIdx.x)
			*found = 1;
	}
}

// run: --grid 8 --block 64 i32[512]=iota inout:i32[1]=1000 inout:i32[1]=zeros
KERNEL best_so_far(const int *in, int *best, int *n_tried)
{
	const int v = in[blockIdx.x * 64 + threadIdx.x];

	if (v >= *(volatile int *)best)
		return;
	atomicAdd(n_tried, 1);
	atomicMin(best, v);
}

// ---- blocks: locks -------------------------------------------------------------------------------------------------------

// run: --grid 8 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros --expect 1=8
KERNEL lock_by_cas(int *lock, int *count)
{
	if (threadIdx.x)
		return;
	while (atomicCAS(lock, 0, 1) != 0)
		;
	__threadfence();
	*count += 1;
	__threadfence();
	atomicExch(lock, 0);
}

// run: --grid 8 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros --expect 1=8
KERNEL lock_freed_by_volatile(int *lock, int *count)
{
	if (threadIdx.x)
		return;
	while (atomicExch(lock, 1) != 0)
		__nanosleep(20);
	__threadfence();
	*count += 1;
	__threadfence();
	*(volatile int *)lock = 0;
}

// run: --grid 8 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros --expect 1=8
KERNEL lock_tested_before_taken(volatile int *lock, int *count)
{
	if (threadIdx.x)
		return;
	do {
		while (*lock)
			;
	} while (atomicCAS((int *)lock, 0, 1) != 0);
	__threadfence();
	*count += 1;
	__threadfence();
	*lock = 0;
}

// run: --grid 2 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros --expect 1=64
KERNEL lock_of_lanes(int *lock, int *count)
{
	bool done = false;

	while (!done) {
		if (atomicCAS(lock, 0, 1) == 0) {
			__threadfence();
			*count += 1;
			__threadfence();
			atomicExch(lock, 0);
			done = true;
		}
	}
}

// run: --grid 8 --block 32 inout:u32[1]=zeros inout:u32[1]=zeros inout:i32[1]=zeros --expect 2=8
KERNEL ticket_lock(unsigned *next, volatile unsigned *serves, int *count)
{
	if (threadIdx.x)
		return;
	const unsigned mine = atomicAdd(next, 1);

	while (*serves != mine)
		;
	__threadfence();
	*count += 1;
	__threadfence();
	*serves = *serves + 1;
}

// run: --grid 8 --block 32 inout:i32[1]=zeros inout:i32[1]=zeros --expect 1=8
KERNEL lock_with_orders(int *lock, int *count)
{
	cuda::atomic_ref<int, cuda::thread_scope_device> l(*lock);

	if (threadIdx.x)
		return;
	while (l.exchange(1, cuda::memory_order_acquire))
		;
	*count += 1;
	l.store(0, cuda::memory_order_release);
}

// run: --grid 1 --block 64 out:i32[1] --expect 0=2
KERNEL lock_of_a_block(int *out)
{
	__shared__ int lock, count;
	const int t = threadIdx.x;

	if (t == 0)
		lock = count = 0;
	__syncthreads();
	if (t % 32 == 0) {
		while (atomicCAS_block(&lock, 0, 1) != 0)
			;
		__threadfence_block();
		count++;
		__threadfence_block();
		atomicExch_block(&lock, 0);
	}
	__syncthreads();
	if (t == 0)
		*out = count;
}

// ---- blocks: without locks -------------------------------------------------------------------------------------------------

// run: --grid 4 --block 64 inout:i32[1]=zeros out:i32[256]
KERNEL work_queue(int *next, int *out)
{
	__shared__ int first;

	for (;;) {
		if (threadIdx.x == 0)
			first = atomicAdd(next, 64);
		__syncthreads();
		const int i = first + threadIdx.x;

		__syncthreads();
		if (i >= 256)
			return;
		out[i] = i;
	}
}

// A stack: all threads push their nodes, then the last block pops all of them.
// run: --grid 4 --block 32 inout:i32[1]=-1 out:i32[128] out:i32[128] inout:u32[1]=zeros out:i32[1] --expect 4=8128
KERNEL stack_by_cas(int *head, int *next, int *value, unsigned *n_done, int *sum)
{
	__shared__ bool last;
	const int i = blockIdx.x * 32 + threadIdx.x;
	int old = *(volatile int *)head;

	value[i] = i;
	for (;;) {
		next[i] = old;
		__threadfence();
		const int seen = atomicCAS(head, old, i);

		if (seen == old)
			break;
		old = seen;
	}
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
		last = atomicAdd(n_done, 1) == gridDim.x - 1;
	__syncthreads();
	if (!last || threadIdx.x)
		return;
	__threadfence();
	*sum = 0;
	for (int k = atomicExch(head, -1); k >= 0; k = next[k])
		*sum += value[k];
}

// run: --grid 1 --block 128 inout:i32[256]=zeros out:i32[256] out:i32[128]
KERNEL hash_table(int *keys, int *values, int *out)
{
	const int key = threadIdx.x * 7 % 128 + 1;
	int slot = key * 31 % 256, old;

	while ((old = atomicCAS(&keys[slot], 0, key)) != 0 && old != key)
		slot = (slot + 1) % 256;
	values[slot] = key * 2;
	__syncthreads();
	for (slot = (threadIdx.x + 1) * 31 % 256; keys[slot] != threadIdx.x + 1; slot = (slot + 1) % 256)
		;
	out[threadIdx.x] = values[slot];
}

// run: --grid 4 --block 64 f32[256]=iota inout:f32[1]=zeros
KERNEL maximum_by_cas(const float *in, float *most)
{
	int *word = (int *)most, old = *word, seen;
	const float v = in[blockIdx.x * 64 + threadIdx.x];

	while (v > __int_as_float(old)) {
		seen = atomicCAS(word, old, __float_as_int(v));
		if (seen == old)
			break;
		old = seen;
	}
}
