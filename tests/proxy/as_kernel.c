/* as_kernel.c — see as_kernel.h. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sched.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "core/clock.h"
#include "tests/proxy/as_kernel.h"

typedef _Atomic unsigned long long word;

static const uint64_t PATIENCE_NS = 30000000000;

void as_kernel_open(struct as_kernel *k, unsigned slots, unsigned lanes)
{
	gpul_error err = { 0 };
	size_t bytes;

	*k = (struct as_kernel){ .shape = { .slots = slots, .lanes = lanes } };
	bytes = (gpul_fifo_area_bytes(&k->shape) + 511) / 512 * 512;
	k->area = aligned_alloc(512, bytes);
	k->next = calloc(lanes, sizeof(*k->next));
	assert_non_null(k->area);
	assert_non_null(k->next);
	if (gpul_fifo_area_format(k->area, bytes, &k->shape, &err) || gpul_fifo_open(k->area, bytes, &k->fifo, &err))
		fail_msg("%s", err.text);
}

void as_kernel_close(struct as_kernel *k)
{
	gpul_fifo_close(k->fifo);
	free(k->area);
	free(k->next);
}

static struct gpul_fifo_line *line_of(const struct as_kernel *k, unsigned lane)
{
	return (struct gpul_fifo_line *)((char *)k->area + sizeof(struct gpul_fifo_header)) + lane;
}

uint64_t as_kernel_tail(const struct as_kernel *k, unsigned lane)
{
	return atomic_load_explicit((word *)&line_of(k, lane)->tail, memory_order_acquire);
}

uint64_t as_kernel_abort(const struct as_kernel *k, unsigned lane)
{
	return atomic_load_explicit((word *)&line_of(k, lane)->abort, memory_order_acquire);
}

void as_kernel_raise(struct as_kernel *k, unsigned code)
{
	struct gpul_fifo_header *header = k->area;

	atomic_store_explicit((word *)&header->raised, code, memory_order_release);
}

static enum gpul_fifo_result wait_until(struct as_kernel *k, unsigned lane, uint64_t upto)
{
	const uint64_t begun = gpul_clock_ns();

	while (as_kernel_tail(k, lane) < upto) {
		if (as_kernel_abort(k, lane))
			return GPUL_FIFO_ABORTED;
		if (gpul_clock_ns() - begun > PATIENCE_NS)
			return GPUL_FIFO_TIMED_OUT;
		sched_yield();
	}
	return GPUL_FIFO_OK;
}

enum gpul_fifo_result as_kernel_push(struct as_kernel *k, unsigned lane, unsigned kind, uint64_t a)
{
	const unsigned size = k->shape.slots / k->shape.lanes;
	struct gpul_trigger *slots = (void *)((char *)k->area + gpul_fifo_area_bytes(&k->shape) -
					      k->shape.slots * sizeof(*slots));
	const uint64_t at = k->next[lane], lap = (~(at / size) & 1) << 63;
	struct gpul_trigger *slot = slots + (size_t)lane * size + at % size;
	enum gpul_fifo_result full = at < size ? GPUL_FIFO_OK : wait_until(k, lane, at + 1 - size);

	if (full != GPUL_FIFO_OK)
		return full;
	k->next[lane] = at + 1;
	atomic_store_explicit((word *)&slot->word[0], a | lap, memory_order_release);
	atomic_store_explicit((word *)&slot->word[1], at | (uint64_t)kind << GPUL_FIFO_KIND_SHIFT | lap,
			      memory_order_release);
	return GPUL_FIFO_OK;
}

enum gpul_fifo_result as_kernel_sync(struct as_kernel *k, unsigned lane)
{
	return wait_until(k, lane, k->next[lane]);
}
