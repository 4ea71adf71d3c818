/* events.c — the events to come, in a heap, and random numbers. */
#include <stdlib.h>

#include "lab/fabric/fabric_internal.h"

static bool comes_before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void fabric_fail(gpul_fabric *f, gpul_status status, const char *text)
{
	if (!f->failed)
		f->failed = gpul_fail(&f->why, status, 0, "%s", text);
}

void fabric_at(gpul_fabric *f, uint64_t at_ns, enum event_kind kind, unsigned index, void *what)
{
	const struct event e = { at_ns, f->order++, kind, index, what };
	struct event *slot = gpul_array_push(&f->heap);
	size_t i = f->heap.n - 1;

	if (!slot) {
		fabric_fail(f, GPUL_ENOMEM, "no memory for the events of the simulation");
		if (kind == EVENT_ARRIVE || kind == EVENT_PROCESS)
			free(what);
		return;
	}
	for (; i && comes_before(&e, &f->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
		f->heap.at[i] = f->heap.at[(i - 1) / 2];
	f->heap.at[i] = e;
}

struct event fabric_take(gpul_fabric *f)
{
	struct event *heap = f->heap.at;
	const struct event first = heap[0], last = heap[--f->heap.n];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < f->heap.n && comes_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= f->heap.n || !comes_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* splitmix64 */
uint64_t fabric_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

bool fabric_chance(gpul_fabric *f, uint32_t of_a_million)
{
	return of_a_million && fabric_mix(f->random++) % GPUL_FABRIC_MILLION < of_a_million;
}
