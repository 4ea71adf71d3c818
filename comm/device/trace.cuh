/* trace.cuh — records when a block waits, copies and reduces; comm/trace.h turns the trace on and reads it.
 *
 *     const uint64_t began = gpul_trace_now(comm);                          0 if the trace is off
 *     ... wait for the credit of a step ...
 *     gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_CREDIT, began, peer, step, 0);
 *
 * Thread 0 of the block calls both; in other threads they do nothing, so a caller needs no test of its own.  Events of a block
 * may contain each other (a SEND contains its wait and its copy), but must not overlap otherwise: a viewer draws them nested.
 * With the trace off, a call costs only the test of one word, which stays in the cache. */
#ifndef GPULOAD_COMM_DEVICE_TRACE_CUH
#define GPULOAD_COMM_DEVICE_TRACE_CUH

#include "comm/device/word.cuh"

/* Get the time; 0: the trace is off, or this is not thread 0. */
static __device__ __forceinline__ uint64_t gpul_trace_now(const gpul_comm_view *comm)
{
	return comm->trace && threadIdx.x == 0 ? gpul_globaltimer_ns() | 1 : 0;
}

/* Slow part of gpul_trace_add(). */
static __device__ __noinline__ void gpul_trace_write(gpul_comm_trace *trace, uint32_t kind, uint64_t began_ns, int32_t peer, uint64_t step,
						     uint32_t bytes)
{
	const uint64_t at = atomicAdd((unsigned long long *)&trace->n_events, 1ull);

	if (at >= trace->max_events)
		return;
	gpul_comm_event *event = (gpul_comm_event *)(trace + 1) + at;

	event->begin_ns = began_ns;
	event->end_ns = gpul_globaltimer_ns() | 1;
	event->kind = kind;
	event->peer = peer;
	event->step = step;
	event->block = blockIdx.x;
	event->bytes = bytes;
}

/* Record an event that ends now.  kind: gpul_comm_event_kind; peer -1: none. */
static __device__ __forceinline__ void gpul_trace_add(const gpul_comm_view *comm, uint32_t kind, uint64_t began_ns, int32_t peer,
						      uint64_t step, uint32_t bytes)
{
	if (began_ns)
		gpul_trace_write(comm->trace, kind, began_ns, peer, step, bytes);
}

#endif
