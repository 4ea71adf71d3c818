/* pusher.h — pushes triggers from the CPU like a kernel thread that owns a lane, for tests without a kernel.
 *
 *     struct pusher p = pusher_of(area, lane);
 *     while (!pusher_push(&p, a, b))          false: the ring is full
 *             sched_yield();
 *
 * It trusts the contents of the area: besides the test, only the CPU's end writes there. */
#ifndef GPULOAD_TESTS_PROXY_FIFO_PUSHER_H
#define GPULOAD_TESTS_PROXY_FIFO_PUSHER_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/fifo.h"

struct pusher {
	struct gpul_trigger *slots; /* the slots of this lane */
	struct gpul_fifo_line *line;
	uint64_t next, tail; /* the next position; positions below tail have been handled */
	unsigned shift;
};

static inline struct pusher pusher_of(void *area, unsigned lane)
{
	const struct gpul_fifo_header *h = area;
	struct gpul_fifo_line *lines = (struct gpul_fifo_line *)(void *)((char *)area + sizeof(*h));
	const size_t slot_bytes = (size_t)h->lanes << h->lane_shift << 4;
	struct gpul_trigger *slots = (struct gpul_trigger *)(void *)((char *)area + h->bytes - slot_bytes);
	const uint64_t tail = __atomic_load_n(&lines[lane].tail, __ATOMIC_ACQUIRE);

	return (struct pusher){ slots + ((size_t)lane << h->lane_shift), lines + lane, tail, tail, h->lane_shift };
}

/* Return a word of a slot: the lap bit and 63 bits of data. */
static inline uint64_t pusher_word(const struct pusher *p, uint64_t at, uint64_t value)
{
	return (~(at >> p->shift) & 1) << 63 | value;
}

/* Store one word of a slot; a slot's two words are stored separately, because those of a GPU's vector store can arrive in any order. */
static inline void pusher_store(struct pusher *p, uint64_t at, unsigned half, uint64_t value)
{
	struct gpul_trigger *slot = &p->slots[at & ((1ull << p->shift) - 1)];

	__atomic_store_n(&slot->word[half], pusher_word(p, at, value), __ATOMIC_RELEASE);
}

static inline bool pusher_full(struct pusher *p)
{
	if ((p->next - p->tail) >> p->shift)
		p->tail = __atomic_load_n(&p->line->tail, __ATOMIC_ACQUIRE);
	return (p->next - p->tail) >> p->shift != 0;
}

static inline bool pusher_push(struct pusher *p, uint64_t a, uint64_t b)
{
	if (pusher_full(p))
		return false;
	pusher_store(p, p->next, 0, a);
	pusher_store(p, p->next, 1, b);
	p->next++;
	return true;
}

static inline uint64_t pusher_aborted(const struct pusher *p)
{
	return __atomic_load_n(&p->line->abort, __ATOMIC_ACQUIRE);
}

#endif
