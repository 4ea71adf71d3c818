/* as_kernel.c — a FIFO in this program's memory; CPU threads push into its lanes, and wait for free slots as kernels do. */
#include <stdlib.h>
#include <sched.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "tests/proxy/as_kernel.h"

static const uint64_t PATIENCE_NS = 30000000000;

void as_kernel_open(struct as_kernel *k, unsigned slots, unsigned lanes)
{
	gpul_error err = { 0 };
	size_t bytes;

	*k = (struct as_kernel){ .shape = { .slots = slots, .lanes = lanes } };
	bytes = (gpul_fifo_area_bytes(&k->shape) + 511) / 512 * 512;
	k->area = aligned_alloc(512, bytes);
	k->lane = calloc(lanes, sizeof(*k->lane));
	assert_non_null(k->area);
	assert_non_null(k->lane);
	if (gpul_fifo_area_format(k->area, bytes, &k->shape, &err) || gpul_fifo_open(k->area, bytes, &k->fifo, &err))
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < lanes; i++)
		k->lane[i] = pusher_of(k->area, i);
}

void as_kernel_close(struct as_kernel *k)
{
	gpul_fifo_close(k->fifo);
	free(k->area);
	free(k->lane);
}

uint64_t as_kernel_tail(const struct as_kernel *k, unsigned lane)
{
	return __atomic_load_n(&k->lane[lane].line->tail, __ATOMIC_ACQUIRE);
}

uint64_t as_kernel_abort(const struct as_kernel *k, unsigned lane)
{
	return pusher_aborted(&k->lane[lane]);
}

void as_kernel_raise(struct as_kernel *k, unsigned code)
{
	struct gpul_fifo_header *header = k->area;

	__atomic_store_n(&header->raised, code, __ATOMIC_RELEASE);
}

/* Check for an abort or a time-out, then yield before the next poll. */
static enum gpul_fifo_result wait_more(const struct as_kernel *k, unsigned lane, uint64_t begun)
{
	if (as_kernel_abort(k, lane))
		return GPUL_FIFO_ABORTED;
	if (gpul_clock_ns() - begun > PATIENCE_NS)
		return GPUL_FIFO_TIMED_OUT;
	sched_yield();
	return GPUL_FIFO_OK;
}

enum gpul_fifo_result as_kernel_push(struct as_kernel *k, unsigned lane, unsigned kind, uint64_t a)
{
	struct pusher *p = &k->lane[lane];
	const uint64_t begun = gpul_clock_ns(), b = p->next | (uint64_t)kind << GPUL_FIFO_KIND_SHIFT;
	enum gpul_fifo_result result = GPUL_FIFO_OK;

	while (result == GPUL_FIFO_OK && !pusher_push(p, a, b))
		result = wait_more(k, lane, begun);
	return result;
}

enum gpul_fifo_result as_kernel_sync(struct as_kernel *k, unsigned lane)
{
	const uint64_t begun = gpul_clock_ns();
	enum gpul_fifo_result result = GPUL_FIFO_OK;

	while (result == GPUL_FIFO_OK && as_kernel_tail(k, lane) < k->lane[lane].next)
		result = wait_more(k, lane, begun);
	return result;
}
