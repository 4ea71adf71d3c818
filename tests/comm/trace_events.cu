/* trace_events.cu — a kernel that records events, for test_trace.c: each block adds n nested pairs. */
#include "comm/device/trace.cuh"

extern "C" __global__ void trace_events(const gpul_comm_view *comm, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t outer = gpul_trace_now(comm), inner = gpul_trace_now(comm);

		gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_CREDIT, inner, 3, i, 0);
		gpul_trace_add(comm, GPUL_COMM_EVENT_SEND, outer, -1, i, 4096);
	}
}
