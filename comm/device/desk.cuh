/* desk.cuh — how ranks begin and end a call that uses no channel: by greetings and goodbyes, words in the desk of each rank (layout.h).
 *
 *     rank A                                  rank B
 *     greet: signature, buffers ────────────> greetings[n % 2][A]
 *     greetings[n % 2][B] <────────────────── greet
 *     meet: same call?  where are B's buffers?
 *        ... reads and writes B's buffers ...
 *     part: release n ──────────────────────> goodbyes[block][A]
 *     goodbyes[block][B] <─────────────────── n
 *
 * Block 0 greets for its rank; each block that needs the buffers reads the greetings.  Each block says goodbye to the same
 * block of the other ranks, so a kernel ends when all ranks have finished with its buffers.
 *
 * An LL flag is the low half of the call's number.  Numbers whose low half is 0 or 1 are skipped, because 0 is the flag of memory
 * that was never written.  Flags repeat after 2^32 calls, so the last two calls before that clear the scratch. */
#ifndef GPULOAD_COMM_DEVICE_DESK_CUH
#define GPULOAD_COMM_DEVICE_DESK_CUH

#include "comm/device/trace.cuh"
#include "comm/device/wait.cuh"

/* The buffers of all ranks, at the addresses at which this rank maps them; in shared memory. */
struct gpul_desk_buffers {
	unsigned char *send[GPUL_COMM_MAX_PEERS], *recv[GPUL_COMM_MAX_PEERS];
};

/* Return the number of the new call.  All threads of the block read it; gpul_desk_end() writes it. */
static __device__ __forceinline__ uint64_t gpul_desk_number(const gpul_comm_view *comm)
{
	const uint64_t number = gpul_load_relaxed((const uint64_t *)(comm + 1) + blockIdx.x) + 1;

	return (uint32_t)number < 2 ? number + 2 : number;
}

/* End a block's call: store its number in the entries of all blocks, because the next kernel may have more or fewer blocks.  All threads
 * must have read the old number. began_ns: start time of the block, for the trace.  Returns `leave`, which is the same for all threads. */
static __device__ __forceinline__ bool gpul_desk_end(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number,
						     uint64_t began_ns, bool leave)
{
	gpul_trace_add(comm, GPUL_COMM_EVENT_KERNEL, began_ns, -1, number, 0);
	for (uint32_t i = blockIdx.x + threadIdx.x * work->n_blocks; !leave && i < comm->sizes.n_blocks; i += blockDim.x * work->n_blocks)
		gpul_store_relaxed(&comm->calls[i], number);
	return leave;
}

static __device__ __forceinline__ gpul_comm_greeting *gpul_desk_greeting(const gpul_comm_view *comm, unsigned char *desk, uint64_t number,
									 int from)
{
	return (gpul_comm_greeting *)(desk + comm->sizes.greetings_at) + (number % 2 * comm->sizes.n_ranks + from);
}

/* Compute the signature of a call, which must be equal on all ranks. report.c decodes it. */
static __device__ __forceinline__ uint64_t gpul_desk_signature(const gpul_comm_work *work)
{
	return work->count << GPUL_COMM_SIGNATURE_COUNT | (uint64_t)work->root << GPUL_COMM_SIGNATURE_ROOT |
	       (uint64_t)work->op << GPUL_COMM_SIGNATURE_OP | (uint64_t)work->dtype << GPUL_COMM_SIGNATURE_DTYPE | work->call;
}

static __device__ __forceinline__ uint64_t gpul_desk_place(uint32_t window, uint64_t offset)
{
	return offset << GPUL_COMM_PLACE_OFFSET | window;
}

/* Store 8 bytes of data as an LL pair: two words, each of 4 bytes of data and a flag of 4 bytes. */
static __device__ __forceinline__ void gpul_store_ll(void *at, uint64_t data, uint32_t flag)
{
	const uint64_t high = (uint64_t)flag << 32;

	gpul_store_words(at, high | (uint32_t)data, high | data >> 32);
}

/* Store an LL pair with release semantics: after everything that this thread has read and written before. */
static __device__ __forceinline__ void gpul_store_ll_release(void *at, uint64_t data, uint32_t flag)
{
	const uint64_t high = (uint64_t)flag << 32;

	gpul_store_words_release(at, high | (uint32_t)data, high | data >> 32);
}

/* Load an LL pair.  Returns false if at least one of its words has not arrived yet. */
static __device__ __forceinline__ bool gpul_load_ll(const void *at, uint64_t *data, uint32_t flag)
{
	uint64_t a, b;

	gpul_load_words(at, &a, &b);
	*data = (uint32_t)a | b << 32;
	return (uint32_t)(a >> 32) == flag && (uint32_t)(b >> 32) == flag;
}

/* Load an LL pair with acquire semantics, which pairs with gpul_store_ll_release(). */
static __device__ __forceinline__ bool gpul_load_ll_acquire(const void *at, uint64_t *data, uint32_t flag)
{
	uint64_t a, b;

	gpul_load_words_acquire(at, &a, &b);
	*data = (uint32_t)a | b << 32;
	return (uint32_t)(a >> 32) == flag && (uint32_t)(b >> 32) == flag;
}

/* Clear the half of this rank's scratch that the next call uses.  No rank writes there before it has received this rank's next greeting. */
static __device__ __noinline__ void gpul_desk_clear_next(const gpul_comm_view *comm, uint64_t number)
{
	const uint64_t half_bytes = (uint64_t)comm->sizes.n_ranks * comm->sizes.scratch_bytes;

	for (uint32_t r = 0; r < comm->sizes.n_ranks; r++) {
		unsigned char *half = comm->peers[r].desk + comm->sizes.scratch_at + (number + 1) % 2 * half_bytes;
		unsigned char *from_rank = half + (uint64_t)r * comm->sizes.scratch_bytes;

		for (uint32_t at = threadIdx.x * 16; at < comm->sizes.scratch_bytes; at += blockDim.x * 16)
			gpul_store_words(from_rank + at, 0, 0);
	}
	gpul_fence_sys();
	__syncthreads();
}

/* Return the rank that this thread handles.  Each lane of the last warp handles one rank.  Threads of the other warps get a number
 * above all ranks (the subtraction wraps around): they handle no rank, and can start to move data immediately. */
static __device__ __forceinline__ uint32_t gpul_desk_lane(void)
{
	return threadIdx.x - (blockDim.x - 32);
}

/* Block 0 writes the signature of this rank's call (which collective, how many elements, of which type ...), and if tells_buffers
 * is set, the window and offset of its buffers, into the memory of each other rank, which compares the signature with that of its
 * own call. The other blocks do nothing. */
static __device__ __forceinline__ void gpul_desk_greet(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number,
						       bool tells_buffers)
{
	const uint32_t peer = gpul_desk_lane();

	if (blockIdx.x != 0)
		return;
	if ((uint32_t)(number + 1) == 0 || (uint32_t)number == 2)
		gpul_desk_clear_next(comm, number);
	if (peer >= comm->sizes.n_ranks || (int)peer == comm->rank)
		return;
	gpul_comm_greeting *to = gpul_desk_greeting(comm, comm->peers[peer].their_desk, number, comm->rank);

	if (!tells_buffers) {
		gpul_store_ll(&to->words[0], gpul_desk_signature(work), (uint32_t)number);
		return;
	}
	gpul_store_ll(&to->words[2], gpul_desk_place(work->send_window, work->send_offset), (uint32_t)number);
	gpul_store_ll(&to->words[4], gpul_desk_place(work->recv_window, work->recv_offset), (uint32_t)number);
	/* a release, because the other ranks will read the buffers, which were filled earlier */
	gpul_store_ll_release(&to->words[0], gpul_desk_signature(work), (uint32_t)number);
}

/* Compare the signature of another rank's call with the signature of this rank's call.  If they differ, report it, and return true:
 * the kernel must end. */
static __device__ __forceinline__ bool gpul_desk_differs(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number, int peer,
							 uint64_t found)
{
	if (found == gpul_desk_signature(work))
		return false;
	gpul_comm_report_wait(comm, GPUL_COMM_OTHER_CALL, peer, number, gpul_desk_signature(work), found);
	return true;
}

/* Wait for the signatures of all ranks; each lane of the last warp waits for one rank.  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_desk_check(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number)
{
	const uint32_t peer = gpul_desk_lane();
	uint64_t found;

	if (peer >= comm->sizes.n_ranks || (int)peer == comm->rank)
		return false;
	const gpul_comm_greeting *from = gpul_desk_greeting(comm, comm->peers[peer].desk, number, (int)peer);
	gpul_comm_spin spin = gpul_comm_spin_for(comm, GPUL_COMM_WAITED_FOR_GREETING, (int)peer, number);

	while (!gpul_load_ll(&from->words[0], &found, (uint32_t)number))
		if (gpul_comm_give_up(&spin))
			return true;
	return gpul_desk_differs(comm, work, number, (int)peer, found);
}

/* Wait for all words of a rank's greeting: its signature and its buffers.  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_desk_hear(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number, int peer,
						      uint64_t *send, uint64_t *recv)
{
	const gpul_comm_greeting *from = gpul_desk_greeting(comm, comm->peers[peer].desk, number, peer);
	gpul_comm_spin spin = gpul_comm_spin_for(comm, GPUL_COMM_WAITED_FOR_GREETING, peer, number);
	uint64_t found;

	/* the three loads are in flight at the same time; the first one is the acquire that pairs with the other rank's release */
	for (;;) {
		const bool heard = gpul_load_ll_acquire(&from->words[0], &found, (uint32_t)number);
		const bool has_send = gpul_load_ll(&from->words[2], send, (uint32_t)number);
		const bool has_recv = gpul_load_ll(&from->words[4], recv, (uint32_t)number);

		if (heard && ((has_send && has_recv) || found != gpul_desk_signature(work)))
			return gpul_desk_differs(comm, work, number, peer, found);
		if (gpul_comm_give_up(&spin))
			return true;
	}
}

/* Return the address at which this rank maps a buffer of another rank. guessed_base is the base of window `guess`, which the caller
 * has loaded early; the base of any other window is loaded here. */
static __device__ __forceinline__ unsigned char *gpul_desk_address(const gpul_comm_view *comm, uint32_t peer, uint64_t place,
								   uint32_t guess, uint64_t guessed_base)
{
	const uint32_t window = place & ((1u << GPUL_COMM_PLACE_OFFSET) - 1);
	uint64_t base = guessed_base;

	if (window != guess)
		base = comm->windows[window % GPUL_COMM_MAX_WINDOWS][peer];
	return window == 0 || base == 0 ? NULL : (unsigned char *)(base + (place >> GPUL_COMM_PLACE_OFFSET));
}

enum gpul_desk_outcome { GPUL_DESK_LEAVE, GPUL_DESK_DIRECT, GPUL_DESK_FALLBACK };

/* Wait for the greetings of all ranks, and find their buffers.  FALLBACK: some rank's buffer is not in memory that all ranks map (a
 * window); all ranks return the same result.  A buffer that the call does not use (needs_send, needs_recv) need not be in a window. */
static __device__ __forceinline__ gpul_desk_outcome gpul_desk_meet(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number,
								   bool needs_send, bool needs_recv, gpul_desk_buffers *buffers)
{
	const uint64_t began = gpul_trace_now(comm);
	const uint32_t peer = gpul_desk_lane();
	bool leave = false, lacks = false;

	if (peer < comm->sizes.n_ranks) {
		/* Most programs use the same window on all ranks, so the address of that window in each rank is loaded while the
		 * greeting is in flight. */
		const uint64_t send_base = comm->windows[work->send_window][peer], recv_base = comm->windows[work->recv_window][peer];
		uint64_t send = gpul_desk_place(work->send_window, work->send_offset);
		uint64_t recv = gpul_desk_place(work->recv_window, work->recv_offset);

		if ((int)peer != comm->rank)
			leave = gpul_desk_hear(comm, work, number, (int)peer, &send, &recv);
		buffers->send[peer] = gpul_desk_address(comm, peer, send, work->send_window, send_base);
		buffers->recv[peer] = gpul_desk_address(comm, peer, recv, work->recv_window, recv_base);
		lacks = (needs_send && !buffers->send[peer]) || (needs_recv && !buffers->recv[peer]);
	}
	leave = gpul_comm_any_leaves(leave);
	gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_GREETING, began, -1, number, 0);
	if (leave)
		return GPUL_DESK_LEAVE;
	return gpul_comm_any_leaves(lacks) ? GPUL_DESK_FALLBACK : GPUL_DESK_DIRECT;
}

/* Return the address of the word in a rank's desk in which rank `from` reports that its block of this number has ended a call. */
static __device__ __forceinline__ gpul_comm_goodbye *gpul_desk_goodbye(const gpul_comm_view *comm, unsigned char *desk, int from)
{
	return (gpul_comm_goodbye *)(desk + comm->sizes.goodbyes_at) + ((uint64_t)blockIdx.x * comm->sizes.n_ranks + from);
}

/* Report to the same block of every other rank that this block has finished with all buffers, and wait until those blocks have
 * finished, too.  Returns true if the kernel must end. */
static __device__ bool gpul_desk_part(const gpul_comm_view *comm, uint64_t number)
{
	const uint32_t peer = threadIdx.x;
	bool leave = false;

	__syncthreads();
	const uint64_t began = gpul_trace_now(comm);

	if (peer < comm->sizes.n_ranks && (int)peer != comm->rank) {
		const gpul_comm_goodbye *mine = gpul_desk_goodbye(comm, comm->peers[peer].desk, (int)peer);
		gpul_comm_spin spin = gpul_comm_spin_for(comm, GPUL_COMM_WAITED_FOR_GOODBYE, (int)peer, number);

		gpul_store_release(&gpul_desk_goodbye(comm, comm->peers[peer].their_desk, comm->rank)->call, number);
		while (!leave && gpul_load_acquire(&mine->call) < number)
			leave = gpul_comm_give_up(&spin);
	}
	leave = gpul_comm_any_leaves(leave);
	gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_GOODBYE, began, -1, number, 0);
	return leave;
}

/* Tell the same block of another rank that the data of a step is in its buffers.  The numbers of the steps must increase. */
static __device__ __forceinline__ void gpul_desk_signal(const gpul_comm_view *comm, int peer, uint64_t step)
{
	__syncthreads();
	if (threadIdx.x == 0)
		gpul_store_release(&gpul_desk_goodbye(comm, comm->peers[peer].their_desk, comm->rank)->step, step);
}

/* Wait until the same block of another rank has signalled a step with gpul_desk_signal().  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_desk_await(const gpul_comm_view *comm, int peer, uint64_t step)
{
	const uint64_t began = gpul_trace_now(comm);
	bool leave = false;

	if (threadIdx.x == 0) {
		const gpul_comm_goodbye *mine = gpul_desk_goodbye(comm, comm->peers[peer].desk, peer);
		gpul_comm_spin spin = gpul_comm_spin_for(comm, GPUL_COMM_WAITED_FOR_DATA, peer, step);

		while (!leave && gpul_load_acquire(&mine->step) < step)
			leave = gpul_comm_give_up(&spin);
	}
	gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_DATA, began, peer, step, 0);
	return gpul_comm_any_leaves(leave);
}

#endif
