/* 5_fifo.cu — kernels that use the FIFO of proxy/fifo_device.cuh. */
#include "steps.cuh"

/* Count each poll over the bus in the thread's word of polls, which the CPU reads.  Blocks have one thread, so shared
 * variables belong to one thread. */
static __shared__ u64 *my_polls, n_polls;
#define GPUL_FIFO_ON_POLL(line) (my_polls ? store(my_polls, ++n_polls) : (void)0)
#include "proxy/fifo_device.cuh"

#define TEN_SECONDS 10000000000ull

static __device__ void count_into(struct polls *polls)
{
	my_polls = polls ? &polls->of_thread[blockIdx.x][0] : nullptr;
	n_polls = 0;
}

/* All threads share one lane, as in step 4. */
extern "C" __global__ void shared(gpul_fifo_device fifo, struct polls *polls, u64 n)
{
	const u64 me = blockIdx.x;
	gpul_fifo_port port;

	count_into(polls);
	gpul_fifo_share(&fifo, 0, &port);
	for (u64 i = 0; i < n; i++)
		if (gpul_fifo_push(&port, me, i, TEN_SECONDS) != GPUL_FIFO_OK)
			return;
}

/* Each thread owns a lane.  It writes a question, pushes a trigger, and waits for the answer. */
extern "C" __global__ void letters(gpul_fifo_device fifo, struct letters *letters, u64 n)
{
	const unsigned me = blockIdx.x;
	gpul_fifo_port port;

	count_into(nullptr);
	if (gpul_fifo_own(&fifo, me, &port) != GPUL_FIFO_OK)
		return;
	for (u64 i = 0; i < n; i++) {
		letters->question[me] = i;  /* an ordinary store, which push_release orders before the trigger */
		if (gpul_fifo_push_release(&port, i, (u64)LETTER << GPUL_FIFO_KIND_SHIFT, TEN_SECONDS) != GPUL_FIFO_OK ||
		    gpul_fifo_sync(&port, port.next, TEN_SECONDS) != GPUL_FIFO_OK)
			break;
		letters->n_right[me] += *(volatile u64 *)&letters->answer[me] == i * i;
	}
	gpul_fifo_disown(&port);
}

/* The CPU reads nothing: push until a push fails, and store the result of that push. */
extern "C" __global__ void stuck(gpul_fifo_device fifo, struct ends *ends, u64 timeout_ns)
{
	const unsigned me = blockIdx.x;
	gpul_fifo_result result;
	gpul_fifo_port port;

	count_into(nullptr);
	if (gpul_fifo_own(&fifo, me, &port) != GPUL_FIFO_OK)
		return;
	do {
		store(&ends->pushed[me], port.next);
		result = gpul_fifo_push(&port, me, port.next, timeout_ns);
	} while (result == GPUL_FIFO_OK);
	store(&ends->result[me], result);
	gpul_fifo_disown(&port);
}
