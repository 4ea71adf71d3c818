/* prims_ll128.cuh — the protocol LL128: 120 bytes of data and a flag of 8 bytes in each line of 128 bytes.
 *
 *     8 threads take a pair of lines, which has 15 packs of 16 bytes.  The last pack is split between the two lines:
 *
 *     thread    0        1        2        3        4        5        6        7
 *     line A │ pack 0 │ pack 1 │ pack 2 │ pack 3 │ pack 4 │ pack 5 │ pack 6 │ low half of pack 14  │ s+1 │
 *     line B │ pack 7 │ pack 8 │ pack 9 │ pack 10│ pack 11│ pack 12│ pack 13│ high half of pack 14 │ s+1 │
 *
 * The 8 threads write a line with one instruction, and read it with one instruction.  A GPU sends such a store over NVLink as one
 * packet and performs it as a whole, so thread 7's flag shows that the line is complete.  This is observed behaviour of the
 * hardware, on which NCCL relies, too, not a guarantee of PTX.  It does not hold over PCIe or in host memory, so the plan does not
 * choose LL128 there.
 *
 * Threads of a warp that has diverged execute an instruction in groups, and __syncwarp() lets them wait for each other but does not
 * join the groups.  Then a line is written, or read, in several parts.  So a writer whose warp has diverged writes the flags after the
 * data, and a reader whose warp has diverged reads the data again after the flags.
 *
 * Credits, freeing slots and giving up work as in prims_ll.cuh, but all threads of a warp give up together. */
#ifndef GPULOAD_COMM_DEVICE_PRIMS_LL128_CUH
#define GPULOAD_COMM_DEVICE_PRIMS_LL128_CUH

#include "comm/device/prims_ll.cuh"

enum { GPUL_PAIR_BYTES = 2 * GPUL_COMM_LINE_BYTES, GPUL_PAIR_PACKS = 15, GPUL_PAIR_DATA = GPUL_PAIR_PACKS * GPUL_PACK_BYTES };

/* One thread's packs of a pair of lines; thread 7 has only one, in `a`. */
struct gpul_ll128_packs {
	uint4 a, b;
};

static __device__ __forceinline__ uint4 gpul_pack_of(uint64_t low, uint64_t high)
{
	return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}

/* Whether the warp has diverged: the calling thread does not execute together with all 32. */
static __device__ __forceinline__ bool gpul_warp_is_split(void)
{
	return __activemask() != ~0u;
}

/* Wait, as a warp, until the warp's pairs of lines are complete.  Threads without a pair (at == NULL) also take part in the warp votes. */
static __device__ __forceinline__ gpul_ll128_packs gpul_ll128_wait(gpul_prims *p, const unsigned char *at, bool has_flag)
{
	const uint64_t flag = p->from.step + 1;
	uint64_t a0 = 0, a1 = flag, b0 = 0, b1 = flag;
	gpul_comm_spin spin;
	uint64_t began = 0;
	bool first = true, complete = false;
	gpul_ll128_packs packs;

	for (;;) {
		__syncwarp();
		const bool split = gpul_warp_is_split();

		if (at) {
			gpul_load_words(at, &a0, &a1);
			gpul_load_words(at + GPUL_COMM_LINE_BYTES, &b0, &b1);
		}
		const bool missing = has_flag && (a1 != flag || b1 != flag);

		if (!__any_sync(~0u, missing || split))
			break;
		if (!__any_sync(~0u, missing)) {
			if (complete)
				break;
			complete = true; /* some threads may have loaded their data before the flags were there: load once more */
			continue;
		}
		if (first) {
			spin = gpul_comm_spin_for(p->comm, GPUL_COMM_WAITED_FOR_DATA, p->from.peer, p->from.step);
			began = gpul_trace_now(p->comm);
		}
		first = false;
		if (__any_sync(~0u, gpul_comm_give_up(&spin))) {
			p->leave = true;
			break;
		}
	}
	gpul_trace_add(p->comm, GPUL_COMM_EVENT_WAIT_DATA, began, p->from.peer, p->from.step, 0);
	packs.a = has_flag ? gpul_pack_of(a0, b0) : gpul_pack_of(a0, a1);
	packs.b = gpul_pack_of(b0, b1);
	return packs;
}

/* Write this thread's packs, and the flags if it has them. */
static __device__ __forceinline__ void gpul_ll128_store_packs(unsigned char *at, bool has_flag, uint64_t flag, gpul_ll128_packs packs)
{
	const uint64_t a0 = packs.a.x | (uint64_t)packs.a.y << 32, a1 = packs.a.z | (uint64_t)packs.a.w << 32;
	const uint64_t b0 = packs.b.x | (uint64_t)packs.b.y << 32, b1 = packs.b.z | (uint64_t)packs.b.w << 32;

	gpul_store_words(at, a0, has_flag ? flag : a1);
	gpul_store_words(at + GPUL_COMM_LINE_BYTES, has_flag ? a1 : b0, has_flag ? flag : b1);
}

/* Write, as a warp, the warp's pairs of lines.  Threads without a pair (at == NULL) also take part in the warp vote. */
static __device__ __forceinline__ void gpul_ll128_store(const gpul_prims *p, unsigned char *at, bool has_flag, gpul_ll128_packs packs)
{
	const uint64_t flag = p->to.step + 1;

	__syncwarp();
	if (__any_sync(~0u, gpul_warp_is_split())) {
		if (at && !has_flag)
			gpul_ll128_store_packs(at, false, flag, packs);
		gpul_fence_sys();
		__syncwarp();
		if (at && has_flag)
			gpul_ll128_store_packs(at, true, flag, packs);
		return;
	}
	if (at)
		gpul_ll128_store_packs(at, has_flag, flag, packs);
}

/* Load pack i of a buffer; bytes and whole packs beyond the end of the buffer are zero. */
static __device__ __forceinline__ uint4 gpul_load_pack_or_zero(const unsigned char *buffer, uint32_t i, uint32_t n_bytes)
{
	return i * GPUL_PACK_BYTES < n_bytes ? gpul_load_pack(buffer, i, n_bytes) : make_uint4(0, 0, 0, 0);
}

static __device__ __forceinline__ unsigned char *gpul_ll128_slot(const gpul_comm_end *end)
{
	const gpul_comm_sizes *s = &end->comm->sizes;

	return end->slots + s->ll128_at + end->step % GPUL_COMM_STEPS * s->ll128_bytes;
}

/* Process one slot of a message.  The bits of HOW select the operations: receive, reduce, send, store. */
template <int HOW>
static __device__ __forceinline__ void gpul_ll128_move(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint32_t n_bytes)
{
	const unsigned char *in = HOW & GPUL_RECV ? gpul_ll128_slot(&p->from) : NULL;
	unsigned char *out = HOW & GPUL_SEND ? gpul_ll128_slot(&p->to) : NULL;
	const uint32_t n_pairs = (n_bytes + GPUL_PAIR_DATA - 1) / GPUL_PAIR_DATA, lane = threadIdx.x % 8;
	const bool last_lane = lane == 7;

	/* The loop bounds are the same for the whole warp, because its threads vote together. */
	for (uint32_t first = threadIdx.x / 32 * 4; first < n_pairs && !p->leave; first += blockDim.x / 8) {
		const uint32_t pair = first + threadIdx.x % 32 / 8;
		const bool mine = pair < n_pairs;
		const uint32_t a = pair * GPUL_PAIR_PACKS + (last_lane ? 14 : lane), b = a + 7;
		const uint32_t n_b = last_lane || !mine ? 0 : n_bytes; /* thread 7 of a group of 8 has no pack b */
		const uint64_t line = (uint64_t)pair * GPUL_PAIR_BYTES + lane * 16;
		gpul_ll128_packs own = {}, received = {}, packs;

		if (HOW & GPUL_SRC) {
			own.a = gpul_load_pack_or_zero(src, a, mine ? n_bytes : 0);
			own.b = gpul_load_pack_or_zero(src, b, n_b);
		}
		if (HOW & GPUL_RECV)
			received = gpul_ll128_wait(p, mine ? in + line : NULL, mine && last_lane);
		if (p->leave)
			break;
		packs.a = gpul_combine<HOW>(p, received.a, own.a);
		packs.b = gpul_combine<HOW>(p, received.b, own.b);
		if (HOW & GPUL_SEND)
			gpul_ll128_store(p, mine ? out + line : NULL, last_lane, packs);
		if (HOW & GPUL_DST && mine && a * GPUL_PACK_BYTES < n_bytes)
			gpul_store_pack(dst, a, n_bytes, packs.a);
		if (HOW & GPUL_DST && b * GPUL_PACK_BYTES < n_b)
			gpul_store_pack(dst, b, n_bytes, packs.b);
	}
}

template <int HOW>
static __device__ __forceinline__ bool gpul_pass_ll128(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint64_t n_bytes)
{
	const uint32_t slot_bytes = p->comm->sizes.ll128_bytes / GPUL_PAIR_BYTES * GPUL_PAIR_DATA;

	for (uint64_t at = 0; at < n_bytes; at += slot_bytes) {
		const uint32_t n = (uint32_t)min((uint64_t)slot_bytes, n_bytes - at);

		if (HOW & GPUL_SEND) {
			gpul_flag_wait_credit(p);
			p->leave = __any_sync(~0u, p->leave);
		}

		const uint64_t began = gpul_trace_now(p->comm);

		gpul_ll128_move<HOW>(p, HOW & GPUL_SRC ? src + at : NULL, HOW & GPUL_DST ? dst + at : NULL, n);
		gpul_trace_step<HOW>(p, began, n);
		if (HOW & GPUL_SEND)
			p->to.step++;
		if (HOW & GPUL_RECV && gpul_flag_free(p))
			return true;
	}
	return false;
}

#endif
