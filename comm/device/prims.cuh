/* prims.cuh — the primitives from which algorithms are built: a rank's operations on one message of a channel, named as in NCCL.
 *
 *     slot of `from` ──────────────┐
 *                                  ├── OP ──> finish ──┬──> slot of `to`
 *     own input, src ──────────────┘                   └──> own output, dst
 *
 *     name                  slot of from   src    slot of to   dst
 *     send                                 reads  writes
 *     copy_send                            reads  writes       writes
 *     recv                  reads                              writes
 *     recv_copy_send        reads                 writes       writes
 *     recv_reduce_send      reads          reads  writes
 *     recv_reduce_keep      reads          reads               writes, not finished: a partial sum
 *     recv_reduce_copy      reads          reads               writes, finished (AVG divides)
 *     recv_reduce_copy_send reads          reads  writes       writes, finished; both the same bits
 *
 * A message has any number of bytes, and takes one step of the channel for each slot that it fills; one of 0 bytes takes none.
 * Both sides know its size.  src and dst have any alignment, and may be the same buffer.
 *
 * **Direct** variants, Simple only: the receiver has offered its output buffer (gpul_prims_open).  The sender writes the data directly
 * into it, at the same offset from the start of both ranks' outputs.  The receiver copies nothing, and only counts the step.
 *
 *     rank 0                          rank 1                            rank 2
 *     output ──────────────────────── > output ─────────────────────── > output       step counters as usual
 *            direct_send                       direct_recv_copy_send              direct_recv
 *
 * All threads of a block call the primitives together.  They return true to all threads (LL, LL128: later, see prims_ll.cuh) when
 * the communicator has failed: then the caller must call no other primitive, and leave.  The order of the calls is the order of the
 * steps:
 *
 *     gpul_prims p;
 *     gpul_prims_open<PROTO>(&p, comm, block, from, to, signature);
 *     gpul_prims_receive_at<PROTO>(&p, window, offset);    if the call has direct variants
 *     if (gpul_send<PROTO>(&p, src, n_bytes) || gpul_recv<PROTO>(&p, dst, n_bytes))
 *             return true;
 *     return gpul_prims_close(&p);
 *
 * A rank with more neighbours (kernels/tree_allreduce.cuh) opens several gpul_prims, and calls their primitives in turn.  Each end of a
 * channel belongs to one of them.  What one primitive stores, the next one can load for a message of the same size: either the same
 * thread stores and loads each byte (LL, LL128), or the barriers of the steps lie between (Simple). */
#ifndef GPULOAD_COMM_DEVICE_PRIMS_CUH
#define GPULOAD_COMM_DEVICE_PRIMS_CUH

#include "comm/device/prims_ll.cuh"
#include "comm/device/prims_ll128.cuh"
#include "comm/device/prims_simple.cuh"

template <int PROTO, int HOW>
static __device__ __forceinline__ bool gpul_pass(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint64_t n_bytes,
						 uint64_t offset)
{
	if (PROTO == GPUL_COMM_SIMPLE)
		return gpul_pass_simple<HOW>(p, src, dst, n_bytes, offset);
	if (PROTO == GPUL_COMM_LL)
		return gpul_pass_ll<HOW>(p, src, dst, n_bytes);
	return gpul_pass_ll128<HOW>(p, src, dst, n_bytes);
}

template <int PROTO> static __device__ __forceinline__ bool gpul_send(gpul_prims *p, const unsigned char *src, uint64_t n_bytes)
{
	return gpul_pass < PROTO, GPUL_SRC | GPUL_SEND > (p, src, NULL, n_bytes, 0);
}

template <int PROTO> static __device__ __forceinline__ bool gpul_recv(gpul_prims *p, unsigned char *dst, uint64_t n_bytes)
{
	return gpul_pass < PROTO, GPUL_RECV | GPUL_DST > (p, NULL, dst, n_bytes, 0);
}

template <int PROTO> static __device__ __forceinline__ bool gpul_recv_reduce_send(gpul_prims *p, const unsigned char *src, uint64_t n_bytes)
{
	return gpul_pass < PROTO, GPUL_RECV | GPUL_SRC | GPUL_SEND > (p, src, NULL, n_bytes, 0);
}

template <int PROTO>
static __device__ __forceinline__ bool gpul_recv_reduce_keep(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint64_t n_bytes)
{
	return gpul_pass < PROTO, GPUL_RECV | GPUL_SRC | GPUL_DST > (p, src, dst, n_bytes, 0);
}

template <int PROTO>
static __device__ __forceinline__ bool gpul_recv_reduce_copy(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint64_t n_bytes)
{
	return gpul_pass < PROTO, GPUL_RECV | GPUL_SRC | GPUL_DST | GPUL_FINISH > (p, src, dst, n_bytes, 0);
}

/* The direct variants write into the receiver's output. offset: distance of dst from the start of this rank's output, and of the
 * written data from the start of the receiver's output. */
template <int PROTO>
static __device__ __forceinline__ bool gpul_direct_send(gpul_prims *p, const unsigned char *src, uint64_t n_bytes, uint64_t offset)
{
	return gpul_pass < PROTO, GPUL_SRC | GPUL_SEND | GPUL_DIRECT_OUT > (p, src, NULL, n_bytes, offset);
}

template <int PROTO>
static __device__ __forceinline__ bool gpul_direct_copy_send(gpul_prims *p, const unsigned char *src, unsigned char *dst, uint64_t n_bytes,
							     uint64_t offset)
{
	return gpul_pass < PROTO, GPUL_SRC | GPUL_SEND | GPUL_DST | GPUL_DIRECT_OUT > (p, src, dst, n_bytes, offset);
}

template <int PROTO> static __device__ __forceinline__ bool gpul_direct_recv(gpul_prims *p, unsigned char *dst, uint64_t n_bytes)
{
	return gpul_pass < PROTO, GPUL_RECV | GPUL_DST | GPUL_DIRECT_IN > (p, NULL, dst, n_bytes, 0);
}

template <int PROTO>
static __device__ __forceinline__ bool gpul_direct_recv_copy_send(gpul_prims *p, unsigned char *dst, uint64_t n_bytes, uint64_t offset)
{
	return gpul_pass < PROTO, GPUL_RECV | GPUL_SEND | GPUL_DST | GPUL_DIRECT_IN | GPUL_DIRECT_OUT > (p, NULL, dst, n_bytes, offset);
}

/* Receive from a slot, and send into the receiver's output. */
template <int PROTO>
static __device__ __forceinline__ bool gpul_recv_reduce_copy_direct_send(gpul_prims *p, const unsigned char *src, unsigned char *dst,
									 uint64_t n_bytes, uint64_t offset)
{
	return gpul_pass < PROTO,
	       GPUL_RECV | GPUL_SRC | GPUL_SEND | GPUL_DST | GPUL_FINISH | GPUL_DIRECT_OUT > (p, src, dst, n_bytes, offset);
}

#endif
