/* wait.cuh — waits that always end, by data, an abort or the time-out; and barriers after which all threads of a block leave
 * together.
 *
 *     gpul_comm_spin w = gpul_comm_spin_for(comm, GPUL_COMM_WAITED_FOR_DATA, peer, step);
 *     bool leave = false;
 *     while (gpul_load_acquire(tail) <= step && !(leave = gpul_comm_give_up(&w)))
 *             ;
 *     if (gpul_comm_any_leaves(leave))       a barrier; the same result for all threads of the block
 *             return;
 *
 * Reading the abort word takes a round trip to host memory, so it is read only at every 1024th poll, or every 0.7 ms; with an
 * interpreting driver at every 32nd.  At these polls the thread also publishes the rank that it waits for: from these words the CPUs of all
 * ranks find the rank that causes a time-out (comm/blame.c).  After a time-out the thread writes a report, and sets the abort word
 * for the other blocks. */
#ifndef GPULOAD_COMM_DEVICE_WAIT_CUH
#define GPULOAD_COMM_DEVICE_WAIT_CUH

#include "comm/device/word.cuh"

struct gpul_comm_spin {
	const gpul_comm_view *comm;
	uint64_t start_ns, step;
	uint32_t polls, what;
	int32_t peer;
};

static __device__ __forceinline__ gpul_comm_spin gpul_comm_spin_for(const gpul_comm_view *comm, uint32_t what, int peer, uint64_t step)
{
	gpul_comm_spin w;

	w.comm = comm;
	w.start_ns = 0;
	w.step = step;
	w.polls = 0;
	w.what = what;
	w.peer = peer;
	return w;
}

/* Report a problem of this rank's kernels to the CPU, unless another one has been reported, and set the abort word, which
 * ends all blocks. */
static __device__ __noinline__ void gpul_comm_report_wait(const gpul_comm_view *comm, uint32_t what, int peer, uint64_t step,
							  uint64_t expected, uint64_t found)
{
	gpul_comm_report *report = &comm->control->report;

	if (atomicCAS_system(&report->state, GPUL_COMM_REPORT_NONE, GPUL_COMM_REPORT_BUSY) == GPUL_COMM_REPORT_NONE) {
		report->what = what;
		report->peer = peer;
		report->block = blockIdx.x;
		report->step = step;
		report->expected = expected;
		report->found = found;
		gpul_fence_sys();
		gpul_store_relaxed32(&report->state, GPUL_COMM_REPORT_READY);
	}
	gpul_store_relaxed32(&comm->control->abort, 1);
}

/* The slow part of gpul_comm_give_up().  Returns true if the communicator has been aborted, or the time-out has passed. */
static __device__ __noinline__ bool gpul_comm_check(gpul_comm_spin *w)
{
	if (w->polls % w->comm->polls_per_check != 0)
		return false;
	if (gpul_load_relaxed32(&w->comm->control->abort) != 0)
		return true;
	const uint64_t now = gpul_globaltimer_ns();

	if (w->start_ns == 0)
		w->start_ns = now;
	gpul_store_relaxed(&w->comm->control->waits[blockIdx.x % GPUL_COMM_MAX_BLOCKS], now << 8 | (uint32_t)w->peer);
	if (w->comm->timeout_ns == 0 || now - w->start_ns < w->comm->timeout_ns)
		return false;
	gpul_comm_report_wait(w->comm, w->what, w->peer, w->step, 0, 0);
	return true;
}

/* Call after an unsuccessful poll.  Returns true if the thread must stop waiting. */
static __device__ __forceinline__ bool gpul_comm_give_up(gpul_comm_spin *w)
{
	return ++w->polls % GPUL_COMM_LEAST_POLLS == 0 && gpul_comm_check(w);
}

/* A barrier for the first n_threads threads that reach it.  Returns to all of them whether `leave` is set in any of them.  So all
 * threads decide the same, and none waits at a barrier for a thread that has left.  Barrier 0 with all threads is __syncthreads(). */
static __device__ __forceinline__ bool gpul_comm_any_leaves_of(uint32_t barrier, uint32_t n_threads, bool leave)
{
	uint32_t n_leaving;

	__syncwarp();
	asm volatile("{\n\t"
		     ".reg .pred leaves;\n\t"
		     "setp.ne.u32 leaves, %1, 0;\n\t"
		     "bar.red.popc.u32 %0, %2, %3, leaves;\n\t"
		     "}"
		     : "=r"(n_leaving)
		     : "r"((uint32_t)leave), "r"(barrier), "r"(n_threads)
		     : "memory");
	return n_leaving != 0;
}

static __device__ __forceinline__ bool gpul_comm_any_leaves(bool leave)
{
	return gpul_comm_any_leaves_of(0, blockDim.x, leave);
}

#endif
