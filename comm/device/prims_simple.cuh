/* prims_simple.cuh — the protocol Simple: the sender writes the data, then a fence, then a step counter.
 *
 * A block has three roles, so that waits and fences overlap with copies:
 *
 *     workers, all other warps     │ ════ step n ════ ║ ════ step n + 1 ════ ║
 *     waiter, last warp but one    │ polls for n + 1 ─┤ polls for n + 2 ─────┤    1: barrier "ready": workers and waiter
 *     poster, last warp            │ fence, post n - 1├ fence, post n ───────┤    2: barrier "done": workers and poster
 *
 * The poster's fence follows the barrier, so it orders the stores of all workers before the step counter, and their loads before
 * the credit (PTX ISA: fences and barriers are cumulative). */
#ifndef GPULOAD_COMM_DEVICE_PRIMS_SIMPLE_CUH
#define GPULOAD_COMM_DEVICE_PRIMS_SIMPLE_CUH

#include "comm/device/prims_state.cuh"

enum { GPUL_BAR_READY = 1, GPUL_BAR_DONE = 2, GPUL_UNROLL = 4, GPUL_HALVED_BYTES = 32 << 10 };

/* Return the number of bytes in each step of a message; sender and receiver compute the same number.  A message of less than two slots is
 * cut into halves, so that the receiver can begin to read, and pass on, the first half before the sender has written the second one. */
static __device__ __forceinline__ uint32_t gpul_slice_bytes(const gpul_comm_view *comm, uint64_t n_bytes)
{
	const uint32_t slot_bytes = comm->sizes.slot_bytes;

	if (n_bytes >= 2 * (uint64_t)slot_bytes || n_bytes < GPUL_HALVED_BYTES)
		return slot_bytes;
	return ((uint32_t)n_bytes / 2 + GPUL_COMM_LINE_BYTES - 1) / GPUL_COMM_LINE_BYTES * GPUL_COMM_LINE_BYTES;
}

/* Compute `in` OP `src`, and store the result to `out` and `dst`, as thread `worker` of n_workers.  Pointers that are not needed
 * are NULL. */
template <int HOW>
static __device__ __forceinline__ void gpul_simple_move(const gpul_prims *p, const unsigned char *in, const unsigned char *src,
							unsigned char *out, unsigned char *dst, uint32_t n_bytes, uint32_t worker,
							uint32_t n_workers)
{
	const uintptr_t all = (uintptr_t)in | (uintptr_t)src | (uintptr_t)out | (uintptr_t)dst;
	const uint32_t n_whole = all % GPUL_PACK_BYTES == 0 ? n_bytes / GPUL_PACK_BYTES : 0;
	uint32_t i = worker;

	for (; i + (GPUL_UNROLL - 1) * n_workers < n_whole; i += GPUL_UNROLL * n_workers) {
		uint4 received[GPUL_UNROLL], own[GPUL_UNROLL];

#pragma unroll
		for (uint32_t u = 0; u < GPUL_UNROLL; u++) {
			if (HOW & GPUL_RECV)
				received[u] = ((const uint4 *)in)[i + u * n_workers];
			if (HOW & GPUL_SRC)
				own[u] = ((const uint4 *)src)[i + u * n_workers];
		}
#pragma unroll
		for (uint32_t u = 0; u < GPUL_UNROLL; u++) {
			const uint4 pack = gpul_combine<HOW>(p, received[u], own[u]);

			if (HOW & GPUL_SEND)
				((uint4 *)out)[i + u * n_workers] = pack;
			if (HOW & GPUL_DST && dst)
				((uint4 *)dst)[i + u * n_workers] = pack;
		}
	}
	for (; i * GPUL_PACK_BYTES < n_bytes; i += n_workers) {
		uint4 received = {}, own = {};

		if (HOW & GPUL_RECV)
			received = gpul_load_pack(in, i, n_bytes);
		if (HOW & GPUL_SRC)
			own = gpul_load_pack(src, i, n_bytes);
		const uint4 pack = gpul_combine<HOW>(p, received, own);

		if (HOW & GPUL_SEND)
			gpul_store_pack(out, i, n_bytes, pack);
		if (HOW & GPUL_DST && dst)
			gpul_store_pack(dst, i, n_bytes, pack);
	}
}

/* Wait for the receiver's offer, and check that the receiver makes the same call. */
static __device__ __forceinline__ bool gpul_simple_await_offer(const gpul_prims *p)
{
	gpul_comm_spin spin = gpul_comm_spin_for(p->comm, GPUL_COMM_WAITED_FOR_OFFER, p->to.peer, p->first_sent);
	const gpul_comm_outbox *outbox = p->to.outbox;

	while (gpul_load_acquire(&outbox->offered) <= p->first_sent)
		if (gpul_comm_give_up(&spin))
			return true;
	if (outbox->offers[1].offset == p->signature)
		return false;
	gpul_report_mismatch(p->comm, p->to.peer, p->to.step, p->signature, outbox->offers[1].offset);
	return true;
}

/* Return the word in which the waiter stores, for the trace, its last wait before this step.  Consecutive steps of a block use different
 * words, so the waiter does not overwrite a word that thread 0 has not read.  Each gpul_prims of a block has words of its own. */
static __device__ __forceinline__ uint32_t *gpul_simple_waited(const gpul_prims *p)
{
	__shared__ uint32_t waited[16];

	return &waited[4 * p->lane + (p->from.step + 2 * p->to.step) % 4];
}

/* Called by one thread: wait for the credit, the offer and the data, if this step needs them.  The wait for the data is last,
 * because the credit and the offer have usually arrived already. */
template <int HOW> static __device__ __forceinline__ bool gpul_simple_wait(gpul_prims *p)
{
	uint32_t waited = HOW & GPUL_RECV ? GPUL_COMM_EVENT_WAIT_DATA : GPUL_COMM_EVENT_WAIT_CREDIT;

	if (HOW & GPUL_SEND && p->to.step >= p->credits + GPUL_COMM_STEPS) {
		gpul_comm_spin spin = gpul_comm_spin_for(p->comm, GPUL_COMM_WAITED_FOR_CREDIT, p->to.peer, p->to.step);

		while (p->to.step >= (p->credits = gpul_load_acquire(&p->to.outbox->head)) + GPUL_COMM_STEPS) {
			waited = GPUL_COMM_EVENT_WAIT_CREDIT;
			if (gpul_comm_give_up(&spin))
				return true;
		}
	}
	if (HOW & GPUL_DIRECT_OUT && !p->knows_direct_to && gpul_simple_await_offer(p))
		return true;
	if (HOW & GPUL_RECV) {
		gpul_comm_spin spin = gpul_comm_spin_for(p->comm, GPUL_COMM_WAITED_FOR_DATA, p->from.peer, p->from.step);

		while (gpul_load_acquire(&p->from.inbox->tail) <= p->from.step) {
			waited = GPUL_COMM_EVENT_WAIT_DATA;
			if (gpul_comm_give_up(&spin))
				return true;
		}
		if (p->from.step == p->first_received) {
			const uint64_t found = gpul_channel_entry(&p->from)->offset;

			if (found != p->signature) {
				gpul_report_mismatch(p->comm, p->from.peer, p->from.step, p->signature, found);
				return true;
			}
		}
	}
	if (p->comm->trace)
		*gpul_simple_waited(p) = waited;
	return false;
}

/* Called by every thread after the barrier "ready" of the first direct send: read the address of the receiver's output. */
static __device__ __forceinline__ void gpul_simple_learn_offer(gpul_prims *p)
{
	const gpul_comm_slot *offer = &p->to.outbox->offers[0];

	p->knows_direct_to = true;
	if (offer->mode == GPUL_COMM_SLOT_DIRECT)
		p->direct_to = (unsigned char *)p->comm->windows[offer->window][p->to.peer] + offer->offset;
}

/* Called by one thread after the workers have copied the data of this step: publish the step to the receiver, and free the slot
 * that was read. */
template <int HOW> static __device__ __forceinline__ void gpul_simple_post(const gpul_prims *p, uint32_t n_bytes)
{
	if (HOW & GPUL_SEND) {
		gpul_comm_slot entry;

		entry.mode = HOW & GPUL_DIRECT_OUT && p->direct_to ? GPUL_COMM_SLOT_DIRECT : GPUL_COMM_SLOT_DATA;
		entry.window = 0;
		entry.unused = 0;
		entry.offset = p->signature;
		*gpul_channel_entry(&p->to) = entry;
		p->to.inbox->sizes[p->to.step % GPUL_COMM_STEPS] = n_bytes;
	}
	gpul_fence_sys();
	if (HOW & GPUL_SEND)
		gpul_store_relaxed(&p->to.inbox->tail, p->to.step + 1);
	if (HOW & GPUL_RECV)
		gpul_store_relaxed(&p->from.outbox->head, p->from.step + 1);
}

/* Process one worker's share of a step. */
template <int HOW>
static __device__ __forceinline__ void gpul_simple_work(const gpul_prims *p, const unsigned char *src, unsigned char *dst, uint32_t n_bytes,
							uint64_t offset, uint32_t n_workers)
{
	const unsigned char *in = NULL;
	unsigned char *out = NULL;

	if (HOW & GPUL_RECV)
		in = gpul_channel_data(&p->from);
	if (HOW & GPUL_DIRECT_IN && p->direct_from) { /* the sender has already written the data into the output */
		if (!(HOW & GPUL_SEND))
			return;
		in = dst;
		dst = NULL;
	}
	if (HOW & GPUL_SEND)
		out = HOW & GPUL_DIRECT_OUT && p->direct_to ? p->direct_to + offset : gpul_channel_data(&p->to);
	gpul_simple_move<HOW>(p, in, src, out, dst, n_bytes, threadIdx.x, n_workers);
}

template <int HOW>
static __device__ __forceinline__ bool gpul_pass_simple(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint64_t n_bytes,
							uint64_t offset)
{
	const uint32_t n_workers = blockDim.x - 64, slice_bytes = gpul_slice_bytes(p->comm, n_bytes);

	for (uint64_t at = 0; at < n_bytes; at += slice_bytes) {
		const uint32_t n = (uint32_t)min((uint64_t)slice_bytes, n_bytes - at);
		bool leave = false;

		if (threadIdx.x < n_workers) {
			uint64_t began = gpul_trace_now(p->comm);

			leave = gpul_comm_any_leaves_of(GPUL_BAR_READY, n_workers + 32, false);
			if (began && !leave) {
				const uint32_t waited = *gpul_simple_waited(p);
				const bool for_data = waited == GPUL_COMM_EVENT_WAIT_DATA;

				gpul_trace_add(p->comm, waited, began, for_data ? p->from.peer : p->to.peer,
					       for_data ? p->from.step : p->to.step, 0);
				began = gpul_trace_now(p->comm);
			}
			if (HOW & GPUL_DIRECT_OUT && !leave && !p->knows_direct_to)
				gpul_simple_learn_offer(p);
			if (!leave)
				gpul_simple_work<HOW>(p, HOW & GPUL_SRC ? src + at : NULL, HOW & GPUL_DST ? dst + at : NULL, n, offset + at,
						      n_workers);
			leave = gpul_comm_any_leaves_of(GPUL_BAR_DONE, n_workers + 32, leave);
			gpul_trace_step<HOW>(p, began, n);
			if (HOW & GPUL_RECV && HOW & GPUL_SEND)
				gpul_trace_add(p->comm, GPUL_COMM_EVENT_POST, began, p->to.peer, p->to.step, n);
		} else if (threadIdx.x < n_workers + 32) {
			if (threadIdx.x == n_workers)
				leave = gpul_simple_wait<HOW>(p);
			leave = gpul_comm_any_leaves_of(GPUL_BAR_READY, n_workers + 32, leave);
			if (HOW & GPUL_DIRECT_OUT)
				p->knows_direct_to = true;
		} else {
			leave = gpul_comm_any_leaves_of(GPUL_BAR_DONE, n_workers + 32, false);
			if (HOW & GPUL_DIRECT_OUT && !leave && !p->knows_direct_to)
				gpul_simple_learn_offer(p);
			if (!leave && threadIdx.x == n_workers + 32)
				gpul_simple_post<HOW>(p, n);
		}
		if (leave)
			return true;
		if (HOW & GPUL_RECV)
			p->from.step++;
		if (HOW & GPUL_SEND)
			p->to.step++;
	}
	return false;
}

#endif
