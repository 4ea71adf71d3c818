/* 5_fifo.cu — the FIFO of proxy/fifo_device.cuh, used. */
#include "steps.cuh"

/* Each look over the bus is counted, in a word of the thread's own (blocks have one thread), for the CPU to see at
 * once. */
static __shared__ u64 *my_looks, n_looks;
#define GPUL_FIFO_ON_LOOK(line) (my_looks ? store(my_looks, ++n_looks) : (void)0)
#include "proxy/fifo_device.cuh"

#define TEN_SECONDS 10000000000ull

static __device__ void count_into(struct looks *looks)
{
	my_looks = looks ? &looks->of_thread[blockIdx.x][0] : nullptr;
	n_looks = 0;
}

/* All threads share one queue, as in step 4. */
extern "C" __global__ void shared(gpul_fifo_device fifo, struct looks *looks, u64 n)
{
	const u64 me = blockIdx.x;
	gpul_fifo_port port;

	count_into(looks);
	gpul_fifo_share(&fifo, 0, &port);
	for (u64 i = 0; i < n; i++)
		if (gpul_fifo_push(&port, me, i, TEN_SECONDS) != GPUL_FIFO_OK)
			return;
}

/* Each thread owns a lane.  It writes a letter, pushes "there is a letter", and waits for the answer. */
extern "C" __global__ void letters(gpul_fifo_device fifo, struct letters *letters, u64 n)
{
	const unsigned me = blockIdx.x;
	gpul_fifo_port port;

	count_into(nullptr);
	if (gpul_fifo_own(&fifo, me, &port) != GPUL_FIFO_OK)
		return;
	for (u64 i = 0; i < n; i++) {
		letters->question[me] = i;  /* an ordinary store: push_release takes care of its order */
		if (gpul_fifo_push_release(&port, i, (u64)LETTER << GPUL_FIFO_KIND_SHIFT, TEN_SECONDS) != GPUL_FIFO_OK ||
		    gpul_fifo_sync(&port, port.next, TEN_SECONDS) != GPUL_FIFO_OK)
			break;
		letters->n_right[me] += *(volatile u64 *)&letters->answer[me] == i * i;
	}
	gpul_fifo_disown(&port);
}

/* Nobody takes anything: push until a push fails, and tell how it ended. */
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
