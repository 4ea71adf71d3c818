/* builtins.c — the functions that PTX calls and the driver provides: vprintf malloc free __assertfail.
 *
 * Their signatures are those of the CUDA C++ Programming Guide's formatted output and dynamic allocation
 * sections, as nvcc declares them. */
#include <stdio.h>

#include "softcuda/exec/warp/builtins_internal.h"

uint64_t gpul_builtin_argument(const struct warp_state *s, const struct call_site *site,
			       uint32_t n, unsigned lane)
{
	const struct call_argument *a = &site->args[n];
	uint32_t bytes = a->slot.bytes < 8 ? a->slot.bytes : 8;
	uint64_t value = 0;

	if (n >= site->n_args)
		return 0;
	if (a->in_register)
		memcpy(&value, (uint8_t *)opptr(&s->w, a->reg) + lane * a->slot.bytes, bytes);
	else
		memcpy(&value,
		       s->local + lane * s->local_stride + s->frame->local_offset +
			       a->slot.offset,
		       bytes);
	return value;
}

static void set_result(const struct warp_state *s, const struct call_site *site, unsigned lane,
		       uint64_t value)
{
	const struct call_argument *a = &site->args[site->n_args];
	uint32_t bytes = a->slot.bytes < 8 ? a->slot.bytes : 8;

	if (!site->n_rets)
		return;
	if (a->in_register)
		memcpy((uint8_t *)opptr(&s->w, a->reg) + lane * a->slot.bytes, &value, bytes);
	else
		memcpy(s->local + lane * s->local_stride + s->frame->local_offset +
			       a->slot.offset,
		       &value, bytes);
}

bool gpul_builtin_readable(struct warp_state *s, unsigned lane, uint64_t at, uint64_t bytes)
{
	if (range_covers(s->cache, 0, at, bytes, false))
		return true;
	if (bytes <= s->local_bytes &&
	    at - (uintptr_t)s->local - lane * s->local_stride <= s->local_bytes - bytes)
		return true;
	return bytes <= s->shared_bytes && at - (uintptr_t)s->shared <= s->shared_bytes - bytes;
}

bool gpul_builtin_string(struct warp_state *s, unsigned lane, uint64_t at, char *buf,
			 size_t bytes)
{
	size_t n = 0;

	for (; n + 1 < bytes; n++) {
		if (!gpul_builtin_readable(s, lane, at + n, 1))
			return false;
		buf[n] = *(const char *)(uintptr_t)(at + n);
		if (!buf[n])
			return true;
	}
	buf[n] = '\0';
	return true;
}

static const struct insn *assert_failed(struct warp_state *s, const struct insn *i,
					unsigned lane)
{
	const struct call_site *site = i->object;
	char message[100] = "?", file[60] = "?", function[60] = "?";

	gpul_builtin_string(s, lane, gpul_builtin_argument(s, site, 0, lane), message,
			    sizeof message);
	gpul_builtin_string(s, lane, gpul_builtin_argument(s, site, 1, lane), file,
			    sizeof file);
	gpul_builtin_string(s, lane, gpul_builtin_argument(s, site, 3, lane), function,
			    sizeof function);
	return gpul_fault_text(s, i, GPUL_EXEC_ASSERT, lane, "%s:%u: %s: assertion `%s' failed",
			       file, (unsigned)gpul_builtin_argument(s, site, 2, lane),
			       function, message);
}

static const struct insn *release(struct warp_state *s, const struct insn *i, unsigned lane)
{
	uint64_t address = gpul_builtin_argument(s, i->object, 0, lane);
	struct heap *heap = gpul_machine_heap(s->block->launch->machine);

	if (!address || (heap && gpul_heap_free(heap, address)))
		return NULL;
	return gpul_fault_text(
		s, i, GPUL_EXEC_ILLEGAL_ADDRESS, lane,
		"free of 0x%llx, which malloc did not give or which was freed before",
		(unsigned long long)address);
}

static uint64_t allocate(const struct warp_state *s, uint64_t bytes)
{
	struct heap *heap = gpul_machine_heap(s->block->launch->machine);

	return heap ? gpul_heap_alloc(heap, bytes) : 0;
}

const struct insn *gpul_call_builtin(struct warp_state *s, const struct insn *i)
{
	const struct call_site *site = i->object;

	for (uint32_t rest = s->w.mask; rest; rest &= rest - 1) {
		unsigned l = first_lane(rest);
		const struct insn *stop = NULL;

		switch (site->builtin) {
		case BUILTIN_VPRINTF:
			set_result(s, site, l,
				   (uint64_t)(int64_t)gpul_builtin_vprintf(s, i, l, &stop));
			break;
		case BUILTIN_MALLOC:
			set_result(s, site, l,
				   allocate(s, gpul_builtin_argument(s, site, 0, l)));
			break;
		case BUILTIN_FREE:
			stop = release(s, i, l);
			break;
		default:
			stop = assert_failed(s, i, l);
			break;
		}
		if (stop)
			return stop;
	}
	return i + 1;
}
