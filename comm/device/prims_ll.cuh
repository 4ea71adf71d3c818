/* prims_ll.cuh — the protocol LL: each 4 bytes of data travel with a flag, in one 8-byte word.
 *
 *     a slot of step s:   first half                        second half
 *     16-byte line i:    │ data 0 │ flag │ data 1 │ flag │ │ data 2 │ flag │ data 3 │ flag │     words 0 to 3 of pack i
 *
 * A word is written and read as a whole (PTX ISA, Memory Consistency Model), so data with the right flag is the data of this step:
 * no fence or counter is needed, and the data arrives after one link latency.  A vector of two words may arrive in two parts, so
 * both flags are checked.  Because a slot has two halves, neighbouring threads write neighbouring addresses.  Flags are not 0,
 * because 0 is the flag of memory that was never written.  A slot's flags repeat after 2^35 - 8 steps, about a day of small calls
 * without a pause: a word that no message has overwritten for exactly that many steps would look new.  This is not prevented,
 * because it is unlikely: all messages in that time would have to be too short to overwrite the word, and exactly that step's
 * message would have to include it.
 *
 * All threads are workers.  Each one polls its own words and the credits, so a step needs no barrier.  Every
 * GPUL_LL_FREE_STEPS steps the block frees the slots that it has read: a barrier, then a fence and `head` by one thread.  The
 * sender therefore has at least GPUL_COMM_STEPS - GPUL_LL_FREE_STEPS + 1 = 5 slots.
 *
 * A thread that gives up sets a mark, stops waiting and storing, and continues to the next barrier, where all threads read the
 * mark.  So a primitive returns true only at such a barrier; gpul_prims_close() contains one, too. */
#ifndef GPULOAD_COMM_DEVICE_PRIMS_LL_CUH
#define GPULOAD_COMM_DEVICE_PRIMS_LL_CUH

#include "comm/device/prims_state.cuh"

enum { GPUL_LL_FREE_STEPS = 4 };

/* Wait until the receiver has freed the slot of the next step, or the communicator has failed (p->leave).  A slow thread may find
 * `head` beyond its own step, because faster threads have written the whole message and the receiver has read it. */
static __device__ __forceinline__ void gpul_flag_wait_credit(gpul_prims *p)
{
	if (p->leave || p->to.step < p->credits + GPUL_COMM_STEPS)
		return;
	gpul_comm_spin spin = gpul_comm_spin_for(p->comm, GPUL_COMM_WAITED_FOR_CREDIT, p->to.peer, p->to.step);
	const uint64_t began = gpul_trace_now(p->comm);

	while (p->to.step >= (p->credits = gpul_load_acquire(&p->to.outbox->head)) + GPUL_COMM_STEPS &&
	       !(p->leave = gpul_comm_give_up(&spin)))
		;
	gpul_trace_add(p->comm, GPUL_COMM_EVENT_WAIT_CREDIT, began, p->to.peer, p->to.step, 0);
}

/* Count a slot that the block has read, and free the slots every GPUL_LL_FREE_STEPS steps.  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_flag_free(gpul_prims *p)
{
	const uint64_t n_read = ++p->from.step;

	if (n_read % GPUL_LL_FREE_STEPS != 0)
		return false;
	if (gpul_comm_any_leaves(p->leave))
		return true;
	if (threadIdx.x == 0) {
		gpul_fence_sys();
		gpul_store_relaxed(&p->from.outbox->head, n_read);
	}
	return false;
}

static __device__ __forceinline__ uint32_t gpul_ll_flag(uint64_t step)
{
	return (uint32_t)(step % UINT32_MAX) + 1;
}

/* Wait for pack i in the slot of the next step, and return it. */
static __device__ __forceinline__ uint4 gpul_ll_wait_pack(gpul_prims *p, const unsigned char *slot, uint32_t flag, uint32_t i)
{
	const unsigned char *first = slot + i * 16, *second = first + p->comm->sizes.ll_bytes / 2;
	uint64_t low, high;
	bool ready = gpul_load_ll(first, &low, flag) & gpul_load_ll(second, &high, flag);

	if (!ready && !p->leave) {
		gpul_comm_spin spin = gpul_comm_spin_for(p->comm, GPUL_COMM_WAITED_FOR_DATA, p->from.peer, p->from.step);
		const uint64_t began = gpul_trace_now(p->comm);

		do
			ready = gpul_load_ll(first, &low, flag) & gpul_load_ll(second, &high, flag);
		while (!ready && !(p->leave = gpul_comm_give_up(&spin)));
		gpul_trace_add(p->comm, GPUL_COMM_EVENT_WAIT_DATA, began, p->from.peer, p->from.step, 0);
	}
	return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}

static __device__ __forceinline__ void gpul_ll_store_pack(const gpul_prims *p, unsigned char *slot, uint32_t flag, uint32_t i, uint4 pack)
{
	unsigned char *first = slot + i * 16, *second = first + p->comm->sizes.ll_bytes / 2;

	gpul_store_ll(first, pack.x | (uint64_t)pack.y << 32, flag);
	gpul_store_ll(second, pack.z | (uint64_t)pack.w << 32, flag);
}

static __device__ __forceinline__ unsigned char *gpul_ll_slot(const gpul_comm_end *end)
{
	const gpul_comm_sizes *s = &end->comm->sizes;

	return end->slots + s->ll_at + end->step % GPUL_COMM_STEPS * s->ll_bytes;
}

template <int HOW>
static __device__ __forceinline__ bool gpul_pass_ll(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint64_t n_bytes)
{
	const uint32_t slot_bytes = p->comm->sizes.ll_bytes / 2;

	for (uint64_t at = 0; at < n_bytes; at += slot_bytes) {
		const uint32_t n = (uint32_t)min((uint64_t)slot_bytes, n_bytes - at);
		const unsigned char *in = HOW & GPUL_RECV ? gpul_ll_slot(&p->from) : NULL;
		unsigned char *out = HOW & GPUL_SEND ? gpul_ll_slot(&p->to) : NULL;
		const uint32_t in_flag = gpul_ll_flag(p->from.step), out_flag = gpul_ll_flag(p->to.step);

		if (HOW & GPUL_SEND)
			gpul_flag_wait_credit(p);

		const uint64_t began = gpul_trace_now(p->comm);

		for (uint32_t i = threadIdx.x; i * GPUL_PACK_BYTES < n && !p->leave; i += blockDim.x) {
			uint4 own = {}, received = {};

			if (HOW & GPUL_SRC)
				own = gpul_load_pack(src + at, i, n);
			if (HOW & GPUL_RECV)
				received = gpul_ll_wait_pack(p, in, in_flag, i);
			if (p->leave)
				break;
			const uint4 pack = gpul_combine<HOW>(p, received, own);

			if (HOW & GPUL_SEND)
				gpul_ll_store_pack(p, out, out_flag, i, pack);
			if (HOW & GPUL_DST)
				gpul_store_pack(dst + at, i, n, pack);
		}
		gpul_trace_step<HOW>(p, began, n);
		if (HOW & GPUL_SEND)
			p->to.step++;
		if (HOW & GPUL_RECV && gpul_flag_free(p))
			return true;
	}
	return false;
}

/* ---- a head of one pack and a message, in one step ---- */

/* Whether a message and its head fit into one slot.  Then one step carries both: pack 0 is the head, pack i + 1 is pack i of the
 * message.  Otherwise the head is also pack 0, but of a step of its own, so a receiver that expects another size finds it. */
static __device__ __forceinline__ bool gpul_ll_has_room_for_head(const gpul_prims *p, uint64_t n_bytes)
{
	return n_bytes + GPUL_PACK_BYTES <= p->comm->sizes.ll_bytes / 2;
}

/* Load pack i of a head and a message; packs after the end of the message are zero. */
static __device__ __forceinline__ uint4 gpul_ll_load_with_head(const gpul_prims *p, const unsigned char *src, uint32_t i, uint64_t n_bytes)
{
	const uint64_t at = (uint64_t)i * GPUL_PACK_BYTES;

	if (i == 0)
		return gpul_head(p);
	if (at >= n_bytes + GPUL_PACK_BYTES)
		return make_uint4(0, 0, 0, 0);
	if (at > n_bytes && gpul_are_words(src, n_bytes))
		return gpul_load_few_words((const uint32_t *)(src + at - GPUL_PACK_BYTES), (uint32_t)(n_bytes + GPUL_PACK_BYTES - at) / 4);
	return gpul_load_pack(src, i - 1, n_bytes);
}

static __device__ __forceinline__ void gpul_ll_send_with_head(gpul_prims *p, const unsigned char *src, uint64_t n_bytes)
{
	unsigned char *out = gpul_ll_slot(&p->to);
	const uint32_t flag = gpul_ll_flag(p->to.step);
	uint32_t i = threadIdx.x;
	/* The first load precedes the wait for a credit, so that its latency overlaps those of the channel's state and of the credit. */
	uint4 pack = gpul_ll_load_with_head(p, src, i, n_bytes);

	gpul_flag_wait_credit(p);

	const uint64_t began = gpul_trace_now(p->comm);

	for (; i * GPUL_PACK_BYTES < n_bytes + GPUL_PACK_BYTES && !p->leave; i += blockDim.x) {
		gpul_ll_store_pack(p, out, flag, i, pack);
		pack = gpul_ll_load_with_head(p, src, i + blockDim.x, n_bytes);
	}
	gpul_trace_step<GPUL_SRC | GPUL_SEND>(p, began, (uint32_t)n_bytes);
	p->to.step++;
}

/* Receive the head, compare it with the signature of this call, and store the message.  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_ll_receive_with_head(gpul_prims *p, unsigned char *dst, uint64_t n_bytes)
{
	const unsigned char *in = gpul_ll_slot(&p->from);
	const uint32_t flag = gpul_ll_flag(p->from.step);
	const uint64_t began = gpul_trace_now(p->comm);

	for (uint32_t i = threadIdx.x; i * GPUL_PACK_BYTES < n_bytes + GPUL_PACK_BYTES && !p->leave; i += blockDim.x) {
		const uint4 pack = gpul_ll_wait_pack(p, in, flag, i);

		if (p->leave)
			break;
		if (i == 0)
			gpul_compare_head(p, pack);
		else if (i * GPUL_PACK_BYTES > n_bytes && gpul_are_words(dst, n_bytes))
			gpul_store_few_words((uint32_t *)(dst + (i - 1) * GPUL_PACK_BYTES), pack,
					     (uint32_t)(n_bytes % GPUL_PACK_BYTES) / 4);
		else
			gpul_store_pack(dst, i - 1, n_bytes, pack);
	}
	gpul_trace_step<GPUL_RECV | GPUL_DST>(p, began, (uint32_t)n_bytes);
	return gpul_flag_free(p);
}

#endif
