/* heap_check.c — checks calls of device malloc and free. */
#include <stdio.h>

#include "softcuda/tools/memcheck/parts_internal.h"

typedef unsigned long long ull;

enum { WHERE_BYTES = 200 };

void gpul_heap_after_call(struct warp_state *s, const struct insn *i, uint32_t on)
{
	const struct call_site *site = i->object;
	char where[WHERE_BYTES];

	if (site->builtin != BUILTIN_MALLOC)
		return;
	EACH_LANE_OF(l, on)
	{
		const uint64_t at = gpul_builtin_result(s, site, l), bytes = gpul_builtin_argument(s, site, 0, l);
		struct record *r = at ? gpul_records_find(at) : NULL;

		if (!r || !r->is_heap)
			continue;
		gpul_find_where(s, i, l, where, sizeof where);
		gpul_heap_enter(at, bytes, i, where);
		gpul_shadow_set(&r->alive, at - r->base, bytes, false);
		if (r->shadow.bits)
			gpul_shadow_clear(&r->shadow, at - r->base, bytes);
	}
}

enum observed gpul_heap_before_call(struct warp_state *s, const struct insn *i, uint32_t on)
{
	const struct call_site *site = i->object;

	if (site->builtin != BUILTIN_FREE)
		return OBSERVED_RUN;
	EACH_LANE_OF(l, on)
	{
		const uint64_t at = gpul_builtin_argument(s, site, 0, l);
		struct record *r = at ? gpul_records_find(at) : NULL;
		char lines[1000] = "", where[WHERE_BYTES];
		enum heap_free found;
		uint64_t bytes = 0;

		if (!at)
			continue;
		gpul_find_where(s, i, l, where, sizeof where);
		found = gpul_heap_take(at, where, &bytes, lines, sizeof lines);
		if (found == HEAP_FREED && r && r->is_heap) {
			gpul_shadow_clear(&r->alive, at - r->base, bytes);
			continue;
		}
		if (found == HEAP_NOT_MADE)
			gpul_records_describe(at, lines, sizeof lines);
		gpul_find_note(s->block->launch, lines);
		gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_ADDRESS, l, "free of 0x%llx, %s", (ull)at,
				found == HEAP_NOT_MADE ? "which malloc did not return (invalid free)"
						       : "which was freed before (double free)");
		return OBSERVED_FAULT;
	}
	return OBSERVED_RUN;
}
