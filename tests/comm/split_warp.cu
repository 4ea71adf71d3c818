/* split_warp.cu — a kernel for soak/test_ll128.sh: block 0 sends messages of one pair of lines to block 1 by LL128, from a warp that has
 * diverged: threads 2 apart and 2 apart + 1, and the other threads, execute the store at two places of the code.  A reader cannot be
 * tested in this way, because the result of a vote at two places is undefined. */
#include "comm/device/prims.cuh"

static __device__ gpul_comm_view views[2];
static __device__ uint64_t n_read; /* number of messages that block 1 has read */
static __device__ __align__(GPUL_COMM_LINE_BYTES) unsigned char lines[GPUL_PAIR_BYTES];

static __device__ void write_messages(gpul_prims *p, unsigned char *at, uint32_t n, uint32_t apart)
{
	const bool has_flag = threadIdx.x == 7;

	for (p->to.step = 0; p->to.step < n; p->to.step++) {
		const uint32_t x = (uint32_t)p->to.step * 32 + threadIdx.x;
		const gpul_ll128_packs packs = { make_uint4(x, x, x, x), make_uint4(x, x, x, x) };

		while (gpul_load_acquire(&n_read) < p->to.step)
			;
		if (threadIdx.x / 2 == apart)
			gpul_ll128_store(p, at, has_flag, packs);
		else
			gpul_ll128_store(p, at, has_flag, packs);
	}
}

static __device__ uint32_t read_messages(gpul_prims *p, const unsigned char *at, uint32_t n)
{
	uint32_t n_wrong = 0;

	for (p->from.step = 0; p->from.step < n; p->from.step++) {
		const uint32_t x = (uint32_t)p->from.step * 32 + threadIdx.x;
		const gpul_ll128_packs packs = gpul_ll128_wait(p, at, threadIdx.x == 7);

		n_wrong += at && packs.a.x != x;
		gpul_fence_sys();
		__syncwarp();
		if (threadIdx.x == 0)
			gpul_store_release(&n_read, p->from.step + 1);
	}
	return n_wrong;
}

/* wrong: for each thread, the number of messages of which it has received wrong data. */
extern "C" __global__ void split_warp(uint32_t *wrong, uint32_t n_messages, uint32_t apart)
{
	unsigned char *at = threadIdx.x < 8 ? lines + threadIdx.x * 16 : NULL;
	gpul_prims p = {};

	views[blockIdx.x].polls_per_check = ~0u; /* never look for an abort */
	p.comm = &views[blockIdx.x];
	if (blockIdx.x == 0)
		write_messages(&p, at, n_messages, apart);
	else
		wrong[threadIdx.x] = read_messages(&p, at, n_messages);
}
