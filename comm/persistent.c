/* persistent.c — the CPU's side of a persistent kernel: a queue of calls in host memory (layout.h, gpul_comm_queue). */
#include "comm/persistent.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm_internal.h"
#include "core/clock.h"

_Static_assert(sizeof(gpul_comm_item) <= 4 * GPUL_COMM_ITEM_WORDS, "a lane of one warp polls each word");

enum { SPINS = 2000, NAP_NS = 20 * 1000, ONESHOT_BYTES = 256 << 10 };

struct gpul_comm_persistent {
	gpul_comm *c;
	CUstream stream;
	gpul_mem *queue_mem;
	gpul_comm_queue *queue;
	CUdeviceptr relay;
	unsigned n_blocks, n_threads;
	_Atomic uint64_t n_posted; /* number of posted items; gpul_comm_persistent_wait() reads it in other threads */
};

void gpul_comm_persistent_destroy(gpul_comm *c)
{
	gpul_comm_persistent *p = c->persistent;

	if (!p)
		return;
	if (c->persistent_runs)
		(void)gpul_comm_persistent_stop(p, NULL);
	if (p->stream)
		(void)c->drv->cuStreamDestroy(p->stream);
	if (p->relay)
		(void)c->drv->cuMemFree(p->relay);
	gpul_mem_destroy(p->queue_mem);
	free(p);
	c->persistent = NULL;
}

/* Allocate the memory of the queue.  It is freed only with the communicator: freeing may wait for the whole device, on which other
 * ranks of this process may run kernels that wait for this rank. */
static gpul_status create_persistent(gpul_comm *c, gpul_error *err)
{
	const gpul_mem_desc desc = { .kind = GPUL_MEM_PINNED, .bytes = sizeof(gpul_comm_queue), .devices = &c->device, .n_devices = 1 };
	gpul_comm_persistent *p = calloc(1, sizeof *p);
	gpul_status st;

	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a persistent kernel");
	p->c = c;
	c->persistent = p;
	st = gpul_mem_create(c->drv, &desc, &p->queue_mem, err);
	st = st ? st : gpul_cu(c->drv, err, cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(c->drv, err, cuMemAlloc(&p->relay, sizeof(gpul_comm_relay)));
	if (st)
		gpul_comm_persistent_destroy(c);
	else
		p->queue = gpul_mem_cpu(p->queue_mem);
	return st;
}

static gpul_status launch_persistent(gpul_comm_persistent *p, gpul_error *err)
{
	gpul_comm *c = p->c;
	CUdeviceptr queue = gpul_mem_gpu(p->queue_mem);
	void *arguments[] = { &c->view, &queue, &p->relay };
	CUfunction kernel;
	gpul_status st = gpul_comm_kernel(c, KERNEL_persistent, &kernel, err);

	memset(p->queue, 0, sizeof *p->queue);
	p->n_posted = 0;
	st = st ? st : gpul_cu(c->drv, err, cuMemsetD8Async(p->relay, 0, sizeof(gpul_comm_relay), p->stream));
	if (!st && c->last.exists) /* the kernel must start after all earlier calls have ended */
		st = gpul_cu(c->drv, err, cuStreamWaitEvent(p->stream, c->last.ended, 0));
	return st ? st : gpul_cu(c->drv, err, cuLaunchKernel(kernel, p->n_blocks, 1, 1, p->n_threads, 1, 1, 0, p->stream, arguments, NULL));
}

gpul_status gpul_comm_persistent_start(gpul_comm *c, unsigned n_blocks, gpul_comm_persistent **out, gpul_error *err)
{
	gpul_status st = gpul_comm_idle(c, err);
	CUstreamCaptureMode mode;
	gpul_comm_persistent *p;

	if (st)
		return st;
	if (n_blocks > c->sizes.n_blocks)
		return gpul_fail(err, GPUL_EINVAL, 0, "n_blocks is %u, but this communicator has at most %u blocks (options.n_blocks)",
				 n_blocks, c->sizes.n_blocks);
	if (c->has_network)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "a persistent kernel is not possible: all ranks must share memory, but some pairs of ranks are "
				 "connected only by the network");
	mode = gpul_comm_relax(c);
	if (!c->persistent)
		st = create_persistent(c, err);
	p = c->persistent;
	if (!st) {
		p->n_blocks = n_blocks ? n_blocks : c->sizes.n_blocks < 16 ? c->sizes.n_blocks : 16;
		p->n_threads = c->interprets ? 96 : 512;
		st = launch_persistent(p, err);
	}
	gpul_comm_unrelax(c, mode);
	if (st)
		return st;
	c->persistent_runs = true;
	*out = p;
	return GPUL_OK;
}

static gpul_status wait_done(const gpul_comm_persistent *p, uint64_t n, int timeout_ms, gpul_error *err)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const uint64_t end_ns = gpul_clock_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000 * 1000;

	for (unsigned polls = 0; __atomic_load_n(&p->queue->done, __ATOMIC_ACQUIRE) < n; polls++) {
		if (gpul_comm_failed(p->c, NULL))
			return gpul_comm_usable(p->c, err);
		if (timeout_ms >= 0 && polls % 64 == 63 && gpul_clock_ns() >= end_ns)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
					 "the posted call with ticket %llu has not finished within %d ms; %llu posted calls have finished",
					 (unsigned long long)n, timeout_ms,
					 (unsigned long long)__atomic_load_n(&p->queue->done, __ATOMIC_RELAXED));
		if (polls > SPINS)
			(void)nanosleep(&nap, NULL);
		else if (polls > SPINS / 10)
			(void)sched_yield();
	}
	return GPUL_OK;
}

/* Write an item into its slot.  Each word contains a flag, from which the kernel knows that the word has been written. */
static gpul_status push_item(gpul_comm_persistent *p, const gpul_comm_item *item, gpul_error *err)
{
	const uint64_t number = p->n_posted + 1;
	uint64_t *slot = (uint64_t *)p->queue->slots[number % GPUL_COMM_ITEMS];
	uint32_t words[sizeof *item / 4];
	gpul_status st = GPUL_OK;

	if (number > GPUL_COMM_ITEMS)
		st = wait_done(p, number - GPUL_COMM_ITEMS, -1, err);
	if (st)
		return st;
	memcpy(words, item, sizeof words);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		__atomic_store_n(&slot[i], (number & UINT32_MAX) << 32 | words[i], __ATOMIC_RELEASE);
	p->n_posted = number;
	gpul_bell_ring(gpul_boot_bell(p->c->boot));
	return GPUL_OK;
}

/* Find the persistent kernel's function for a call with an algorithm.  Returns STOP if there is none. */
static enum gpul_comm_body body_of(gpul_comm_call call, gpul_comm_algo algo)
{
	static const enum gpul_comm_body bodies[GPUL_COMM_N_CALLS][GPUL_COMM_N_ALGOS] = {
#define RESIDENT(name, file, function, work, call, algo, proto) [GPUL_COMM_##call][GPUL_COMM_##algo] = GPUL_COMM_BODY_##name,
#include "comm/kernels/kernels.def"
	};

	return bodies[call][algo];
}

/* Choose the persistent kernel's function for a call whose parts have n_bytes, and the number of blocks that share the work. */
static void choose_body(const gpul_comm_persistent *p, gpul_comm_item *item, size_t n_bytes)
{
	const bool fits = n_bytes <= ONESHOT_BYTES && 2 * n_bytes <= p->c->sizes.scratch_bytes;
	/* a communicator of one rank uses one-shot for all sizes, because it needs no scratch and cannot use a ring */
	const bool is_small = fits || p->c->n_ranks == 1;
	const size_t wanted = is_small ? n_bytes / 8 / p->n_threads + 1 : p->n_blocks;

	item->body = body_of(item->work.call, is_small ? GPUL_COMM_ONE_SHOT : GPUL_COMM_DIRECT);
	item->work.n_blocks = wanted < p->n_blocks ? (uint32_t)wanted : p->n_blocks;
}

gpul_status gpul_comm_persistent_post(gpul_comm_persistent *p, const gpul_comm_posting *posting, uint64_t *ticket, gpul_error *err)
{
	gpul_comm_item item = { 0 };
	struct comm_request r;
	gpul_status st;

	if (posting->call >= GPUL_COMM_N_CALLS || body_of(posting->call, GPUL_COMM_DIRECT) == GPUL_COMM_BODY_STOP)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "a persistent kernel cannot run %s: launch this collective by its own call",
				 gpul_comm_call_name(posting->call));
	st = gpul_comm_request(p->c, posting, &r, err);
	if (st)
		return st;
	item.work = r.work;
	choose_body(p, &item, posting->count * r.work.element_bytes);
	st = push_item(p, &item, err);
	if (!st)
		*ticket = p->n_posted;
	return st;
}

gpul_status gpul_comm_persistent_wait(gpul_comm_persistent *p, uint64_t ticket, int timeout_ms, gpul_error *err)
{
	const uint64_t last = p->n_posted;

	if (ticket == 0 || ticket > last)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "ticket %llu does not exist: the last posted call has ticket %llu, and tickets start at 1",
				 (unsigned long long)ticket, (unsigned long long)last);
	return wait_done(p, ticket, timeout_ms, err);
}

gpul_status gpul_comm_persistent_stop(gpul_comm_persistent *p, gpul_error *err)
{
	const gpul_comm_item stop = { .body = GPUL_COMM_BODY_STOP };
	gpul_status st;

	if (!p || !p->c->persistent_runs)
		return GPUL_OK;
	st = push_item(p, &stop, err); /* if this fails because of an earlier failure, the abort word ends the kernel */
	p->c->persistent_runs = false;
	st = st ? st : gpul_comm_wait(p->c, p->stream, err);
	(void)p->c->drv->cuStreamSynchronize(p->stream);
	return st;
}
