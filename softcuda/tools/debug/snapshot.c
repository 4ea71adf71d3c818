/* snapshot.c — saves the memory contents at the start of a launch, so that the launch can run again. */
#include "softcuda/tools/debug/debug_internal.h"

#include <stdlib.h>

void gpul_debug_drop_snapshot(struct debug *d)
{
	for (size_t k = 0; k < d->saved.n; k++)
		free(d->saved.at[k].copy);
	d->saved.n = 0;
	d->has_snapshot = false;
}

static bool save_range(struct debug *d, const gpul_exec_range *r)
{
	struct saved_range *s = gpul_array_push(&d->saved);

	if (!s)
		return false;
	*s = (struct saved_range){ .base = r->base, .bytes = r->bytes, .copy = malloc(r->bytes) };
	if (!s->copy)
		return false;
	memcpy(s->copy, (const void *)(uintptr_t)r->base, r->bytes);
	return true;
}

void gpul_debug_save(struct debug *d)
{
	uint64_t at = 0, bytes = 0;
	gpul_exec_range r;
	bool ok = true;

	gpul_debug_drop_snapshot(d);
	while (ok && gpul_exec_memory_next(d->memory, at, &r)) {
		at = r.base + r.bytes;
		if (r.flags & (GPUL_EXEC_MEM_READ_ONLY | GPUL_EXEC_MEM_MULTICAST)) /* multicast addresses have no memory of their own */
			continue;
		bytes += r.bytes;
		ok = bytes <= d->back_bytes && save_range(d, &r);
	}
	d->heap = (struct heap_marks){ 0 };
	if (d->launch->machine->heap)
		gpul_heap_mark(d->launch->machine->heap, &d->heap);
	if (ok)
		d->has_snapshot = true;
	else
		gpul_debug_drop_snapshot(d);
}

void gpul_debug_restore(struct debug *d)
{
	for (size_t k = 0; k < d->saved.n; k++) {
		const struct saved_range *s = &d->saved.at[k];
		gpul_exec_range r;

		if (gpul_exec_memory_find(d->memory, s->base, &r) && r.base == s->base && r.bytes == s->bytes)
			memcpy((void *)(uintptr_t)s->base, s->copy, s->bytes);
	}
	if (d->launch->machine->heap)
		gpul_heap_rewind(d->launch->machine->heap, &d->heap);
}
