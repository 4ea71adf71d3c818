/* prims_state.cuh — what the primitives of all protocols share: the state of the two channel ends that a block uses, and its part
 * of the data. */
#ifndef GPULOAD_COMM_DEVICE_PRIMS_STATE_CUH
#define GPULOAD_COMM_DEVICE_PRIMS_STATE_CUH

#include "comm/device/channel.cuh"
#include "comm/device/desk.cuh"
#include "comm/device/reduce.cuh"

/* Bits for what a primitive does; prims.cuh lists the primitives. */
enum {
	GPUL_RECV = 1,
	GPUL_SRC = 2,
	GPUL_SEND = 4,
	GPUL_DST = 8,
	GPUL_FINISH = 16, /* divide the result for AVG */
	GPUL_DIRECT_IN = 32,
	GPUL_DIRECT_OUT = 64, /* direct variants: IN when receiving from `from`, OUT when sending to `to` */
};

struct gpul_prims {
	const gpul_comm_view *comm;
	gpul_comm_end from, to; /* the channel ends from which the block receives and to which it sends; .peer < 0: none */
	uint32_t dtype, op;
	uint64_t signature;                  /* signature of the call; the receiver compares its own with the sender's */
	uint64_t first_sent, first_received; /* step numbers at the beginning of the call */
	uint64_t began_ns;                   /* start time of the call, for the trace */
	uint64_t credits;                    /* the value of `head` that this thread, or thread 0 in an earlier call, has read last */
	unsigned char *direct_to;            /* the output buffer that the receiver has offered; NULL: none; see knows_direct_to */
	bool knows_direct_to;
	bool direct_from; /* this rank has offered its output buffer to the sender */
	bool leave;       /* LL, LL128: this thread has stopped waiting, because the communicator has failed */
	uint32_t lane;    /* for the trace: 0 to 3, a different number for each gpul_prims of a block */
};

/* Compute `received` OP `own`; if the primitive has only one of them, return it.  Divide for AVG if this is the last operation. */
template <int HOW> static __device__ __forceinline__ uint4 gpul_combine(const gpul_prims *p, uint4 received, uint4 own)
{
	uint4 pack = own;

	if (HOW & GPUL_RECV && HOW & GPUL_SRC) /* a sum of f32, the most common case, is inlined */
		pack = p->dtype == GPUL_COMM_F32 && (p->op == GPUL_COMM_SUM || p->op == GPUL_COMM_AVG)
			       ? gpul_add_f32(received, own)
			       : gpul_reduce(received, own, p->dtype, p->op);
	else if (HOW & GPUL_RECV)
		pack = received;
	if (HOW & GPUL_FINISH && p->op == GPUL_COMM_AVG)
		pack = gpul_finish(pack, p->dtype, p->op, p->comm->sizes.n_ranks);
	return pack;
}

template <int HOW> static __device__ __forceinline__ void gpul_trace_step(const gpul_prims *p, uint64_t began_ns, uint32_t n_bytes)
{
	const uint32_t kind = HOW & GPUL_RECV ? HOW & GPUL_SRC    ? GPUL_COMM_EVENT_REDUCE
						: HOW & GPUL_SEND ? GPUL_COMM_EVENT_COPY
								  : GPUL_COMM_EVENT_RECV
					      : GPUL_COMM_EVENT_SEND;

	gpul_trace_add(p->comm, kind, began_ns, HOW & GPUL_RECV ? p->from.peer : p->to.peer, HOW & GPUL_RECV ? p->from.step : p->to.step,
		       n_bytes);
}

/* The range of n_bytes that block i of n handles.  Ranges are consecutive, and all but the last have a multiple of `unit` bytes. */
struct gpul_part {
	uint64_t begin, end;
};

static __device__ __forceinline__ gpul_part gpul_part_of(uint64_t n_bytes, uint32_t i, uint32_t n, uint32_t unit)
{
	const uint64_t n_units = (n_bytes + unit - 1) / unit;
	const uint64_t part_bytes = (n_units + n - 1) / n * unit;
	gpul_part part;

	part.begin = min(n_bytes, i * part_bytes);
	part.end = min(n_bytes, part.begin + part_bytes);
	return part;
}

/* Offer the sender the place where its direct variants may write: an offset in a window. Window 0 means that there is none.  Called
 * by one thread.
 *
 *     offers[0]: {mode, window, offset of the output in the window}   offers[1]: {signature of the call}   offered: first step + 1
 *
 * The sender reads an offer before the call's first direct step, and the receiver writes the next one after the call's last step,
 * so there is room for one offer only. */
static __device__ __forceinline__ void gpul_prims_offer(const gpul_prims *p, uint32_t window, uint64_t offset)
{
	gpul_comm_outbox *outbox = p->from.outbox;

	outbox->offers[0].mode = window != 0 ? GPUL_COMM_SLOT_DIRECT : GPUL_COMM_SLOT_DATA;
	outbox->offers[0].window = (uint16_t)window;
	outbox->offers[0].offset = offset;
	outbox->offers[1].offset = p->signature;
	gpul_fence_sys();
	gpul_store_relaxed(&outbox->offered, p->from.step + 1);
}

/* Report that the other rank has made a different call, or a send of a different size.  (A function that is not inlined must
 * not get a pointer to gpul_prims, because its members could then not stay in registers.) */
static __device__ __noinline__ void gpul_report_mismatch(const gpul_comm_view *comm, int peer, uint64_t step, uint64_t expected,
							 uint64_t found)
{
	const uint32_t call = (1u << GPUL_COMM_SIGNATURE_DTYPE) - 1;

	if ((expected & call) == GPUL_COMM_SENDRECV && (found & call) == GPUL_COMM_SENDRECV)
		gpul_comm_report_wait(comm, GPUL_COMM_OTHER_SIZE, peer, step, expected >> GPUL_COMM_SIGNATURE_COUNT,
				      found >> GPUL_COMM_SIGNATURE_COUNT);
	else
		gpul_comm_report_wait(comm, GPUL_COMM_OTHER_CALL, peer, step, expected, found);
}

/* The head that is sent before a message: the signature of the call. */
static __device__ __forceinline__ uint4 gpul_head(const gpul_prims *p)
{
	return make_uint4((uint32_t)p->signature, (uint32_t)(p->signature >> 32), 0, 0);
}

/* Compare the head that the sender sent with the signature of this call: if they differ, report it, and stop waiting. */
static __device__ __forceinline__ void gpul_compare_head(gpul_prims *p, uint4 head)
{
	const uint64_t found = (uint64_t)head.y << 32 | head.x;

	if (found == p->signature || p->leave)
		return;
	gpul_report_mismatch(p->comm, p->from.peer, p->first_received, p->signature, found);
	p->leave = true;
}

/* Begin a call on a block's channels.
 *
 * from, to: ranks; -1: none.  signature: see layout.h.  The caller sets the operation and the type of a reduction. */
template <int PROTO>
static __device__ __forceinline__ void gpul_prims_open(gpul_prims *p, const gpul_comm_view *comm, uint32_t block, int from, int to,
						       uint64_t signature)
{
	p->comm = comm;
	p->from.peer = p->to.peer = -1;
	p->from.step = p->to.step = 0;
	p->began_ns = gpul_trace_now(comm);
	if (from >= 0)
		p->from = gpul_channel_from(comm, from, block);
	if (to >= 0)
		p->to = gpul_channel_to(comm, to, block);
	p->dtype = p->op = 0;
	p->signature = signature;
	p->first_sent = to >= 0 ? p->to.step : 0;
	p->first_received = from >= 0 ? p->from.step : 0;
	p->credits = to >= 0 ? p->to.saved->credits : 0;
	p->direct_to = NULL;
	p->knows_direct_to = PROTO != GPUL_COMM_SIMPLE || !comm->direct;
	p->direct_from = false;
	p->leave = false;
	p->lane = 0;
}

/* Offer the output buffer, at `offset` of a window, in a call that has direct variants.  Window 0: the buffer is in no window, so
 * data comes through slots.  The call must receive at least one message that is not empty. */
template <int PROTO> static __device__ __forceinline__ void gpul_prims_receive_at(gpul_prims *p, uint32_t window, uint64_t offset)
{
	if (PROTO != GPUL_COMM_SIMPLE || !p->comm->direct || p->from.peer < 0)
		return;
	if (window != 0 && p->comm->windows[window][p->from.peer] == 0)
		window = 0;
	p->direct_from = window != 0;
	if (threadIdx.x == blockDim.x - 1)
		gpul_prims_offer(p, window, offset);
}

/* ---- several gpul_prims in one block: a rank of a tree or of two rings ---- */

/* LL, LL128: if a thread has stopped waiting in one gpul_prims because of a failure, make it stop in the next one, too, because it
 * must not send data that depends on what it has not received. */
static __device__ __forceinline__ void gpul_prims_follow(gpul_prims *next, const gpul_prims *last)
{
	next->leave = next->leave || last->leave;
}

/* Save the number of steps for the next call.  All threads have read the old number, because there is a barrier between
 * gpul_prims_open() and this function. */
static __device__ __forceinline__ void gpul_prims_save(const gpul_prims *p)
{
	if (threadIdx.x != 0)
		return;
	if (p->from.peer >= 0)
		p->from.saved->received = p->from.step;
	if (p->to.peer >= 0) {
		p->to.saved->sent = p->to.step;
		p->to.saved->credits = p->credits;
	}
}

/* End a call: after a barrier, save the number of steps for the next call, which may be in the same kernel.  The barrier ensures
 * that all threads have read the old number (LL has no other barrier).  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_prims_close(gpul_prims *p)
{
	if (gpul_comm_any_leaves(p->leave))
		return true;
	gpul_prims_save(p);
	__syncthreads();
	gpul_trace_add(p->comm, GPUL_COMM_EVENT_KERNEL, p->began_ns, p->from.peer >= 0 ? p->from.peer : p->to.peer, p->first_sent, 0);
	return false;
}

#endif
