/* cu_range.c — checks whether a copy, a fill or another host call may use a range of memory.
 *
 *     allocation         ├───────────────┤
 *     within it              ├───────┤           a call may use it
 *     it ends outside              ├───────┤     refused, whatever follows the allocation
 *     program's memory                       ├───┤   a copy may use it; the access is guarded, because it may be unmapped
 *
 * As on an H200, adjacent mappings of cuMemMap count as one range, but adjacent allocations do not. */
#include "softcuda/api/memory/cu_memory_internal.h"
#include "softcuda/exec/exec_arena_internal.h"

#include <stdio.h>

#include "softcuda/tools/memcheck/memcheck_internal.h"

typedef unsigned long long ull;

static bool is_mapping(const gpul_exec_range *r)
{
	return soft_handle_find(HANDLE_MAPPING, r->owner);
}

/* Find the end of the allocation r, or of the adjacent mappings that begin with r; do not search beyond `end`. */
static uint64_t end_of_memory(const gpul_exec_range *r, uint64_t end)
{
	gpul_exec_range last = *r, next;

	while (last.base + last.bytes < end && is_mapping(&last) && gpul_exec_memory_find(soft.memory, last.base + last.bytes, &next) &&
	       is_mapping(&next))
		last = next;
	return last.base + last.bytes;
}

bool soft_is_known(uint64_t address, size_t bytes)
{
	gpul_exec_range range;
	uint64_t end;

	return !__builtin_add_overflow(address, bytes, &end) && gpul_exec_memory_find(soft.memory, address, &range) &&
	       end <= end_of_memory(&range, end);
}

static bool range_allows(const gpul_exec_range *range, bool write)
{
	const struct mapping *m = soft_handle_find(HANDLE_MAPPING, range->owner);

	/* Read-only memory is memory that was registered as such, the conditions of graphs, and the error names that kernels read.
	 * Constants of modules are writable, because kernels and copies write to them. */
	if (write && range->flags & GPUL_EXEC_MEM_READ_ONLY)
		return false;
	return !m || (!m->memory->multicast && soft_mapping_allows(m, write));
}

/* Returns true if the CPU or some device may read (or write) all memory of this driver in the range. */
static bool may_copy(uint64_t address, uint64_t end, bool write)
{
	gpul_exec_range range;

	while (address < end && gpul_exec_memory_next(soft.memory, address, &range) && range.base < end) {
		if (!range_allows(&range, write))
			return false;
		address = range.base + range.bytes;
	}
	return true;
}

/* Returns true if a range of the application's memory, which ends at `end`, extends into an allocation.  *r: the first entry after the
 * start of the range in the table of memory that kernels may access.  Registered ranges are not allocations, but application memory. */
static bool runs_into(uint64_t end, gpul_exec_range *r)
{
	do {
		const struct allocation *a = soft_handle_find(HANDLE_ALLOCATION, r->owner);

		if (r->base >= end)
			return false;
		if (!a || a->kind != ALLOC_REGISTERED)
			return true;
	} while (gpul_exec_memory_next(soft.memory, r->base + r->bytes, r));
	return false;
}

enum verdict { MEMORY_IS_KNOWN, MEMORY_OF_PROGRAM, ENDS_OUTSIDE, RUNS_INTO, IS_NONE, IS_FREED, IS_RESERVED, HAS_NO_RIGHT };

/* Classify a range.  *r is set to the allocation in which the range starts, or (RUNS_INTO) into which it extends. */
static enum verdict examine(const struct range_use *u, gpul_exec_range *r)
{
	uint64_t end;
	bool found;

	if (__builtin_add_overflow(u->address, u->bytes, &end))
		return IS_NONE;
	found = gpul_exec_memory_next(soft.memory, u->address, r);
	if (found && r->base <= u->address) {
		if (end <= r->base + r->bytes)
			return range_allows(r, u->write) ? MEMORY_IS_KNOWN : HAS_NO_RIGHT;
		if (end > end_of_memory(r, end))
			return ENDS_OUTSIDE;
		return may_copy(u->address, end, u->write) ? MEMORY_IS_KNOWN : HAS_NO_RIGHT;
	}
	if (gpul_arena_contains(u->address))
		return IS_FREED;
	if (soft_is_reserved(u->address))
		return IS_RESERVED;
	if (u->side == SIDE_DEVICE)
		return IS_NONE;
	return found && runs_into(end, r) ? RUNS_INTO : MEMORY_OF_PROGRAM;
}

static void explain(const struct range_use *u, enum verdict v, const gpul_exec_range *r, char *buf, size_t buf_bytes)
{
	const uint64_t at = u->address - r->base;
	uint64_t behind;

	switch (v) {
	case ENDS_OUTSIDE:
		behind = u->address + u->bytes - end_of_memory(r, u->address + u->bytes);
		snprintf(buf, buf_bytes, "begins %llu byte%s into %llu byte%s of %s, and ends %llu byte%s past the end", (ull)at,
			 at == 1 ? "" : "s", (ull)r->bytes, r->bytes == 1 ? "" : "s", r->label, (ull)behind, behind == 1 ? "" : "s");
		break;
	case RUNS_INTO:
		snprintf(buf, buf_bytes, "begins outside of all allocations, and runs into %llu bytes of %s at 0x%llx", (ull)r->bytes,
			 r->label, (ull)r->base);
		break;
	case IS_FREED:
		snprintf(buf, buf_bytes, "is memory that was freed, or was never allocated");
		break;
	case IS_RESERVED:
		snprintf(buf, buf_bytes, "is reserved by cuMemAddressReserve, but no memory is mapped there: call cuMemMap");
		break;
	case HAS_NO_RIGHT:
		if (r->flags & GPUL_EXEC_MEM_MULTICAST)
			snprintf(buf, buf_bytes, "is an address of a multicast object, which only multimem instructions access");
		else
			snprintf(buf, buf_bytes, "is not %s for the CPU or any device", u->write ? "writable" : "readable");
		break;
	default:
		snprintf(buf, buf_bytes, "is not within an allocation");
	}
}

/* Returns true for memory that the application can unmap or protect at any time. */
static bool is_used_by_program(const gpul_exec_range *r)
{
	const struct allocation *a = soft_handle_find(HANDLE_ALLOCATION, r->owner);

	return a && (a->kind == ALLOC_REGISTERED || a->kind == ALLOC_HOST || a->kind == ALLOC_MANAGED);
}

CUresult soft_check_range(const struct range_use *u, bool *known, bool *can_vanish)
{
	gpul_exec_range r = { 0 };
	enum verdict v = examine(u, &r);
	char why[200];

	if (known)
		*known = v == MEMORY_IS_KNOWN;
	if (can_vanish)
		*can_vanish = v == MEMORY_OF_PROGRAM || is_used_by_program(&r);
	if (v == MEMORY_IS_KNOWN || v == MEMORY_OF_PROGRAM)
		return CUDA_SUCCESS;
	explain(u, v, &r, why, sizeof why);
	gpul_memcheck_bad_range(u->call, u->what, u->address, u->bytes, why);
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: the %s, %zu bytes at 0x%llx, %s", u->call, u->what, u->bytes, (ull)u->address,
			   why);
}

bool soft_range_is_valid(const struct range_use *u)
{
	gpul_exec_range r;
	enum verdict v = examine(u, &r);

	return v == MEMORY_IS_KNOWN || v == MEMORY_OF_PROGRAM;
}

bool soft_may_fill(const struct device *d, uint64_t address, size_t bytes)
{
	gpul_exec_range range;
	uint64_t end = address + bytes;

	while (address < end && gpul_exec_memory_find(soft.memory, address, &range)) {
		const struct allocation *a = soft_handle_find(HANDLE_ALLOCATION, range.owner);
		/* Nodes that fill a graph's memory are added before a launch allocates it, so use its future access rights. */
		uint32_t denied = a && a->graph ? ~a->graph->writers : range.denied | range.unwritable;

		if (denied >> d->ordinal & 1)
			return false;
		address = range.base + range.bytes;
	}
	return true;
}

void soft_describe_address(uint64_t address, char *buf, size_t buf_bytes)
{
	gpul_exec_range r;

	if (gpul_exec_memory_find(soft.memory, address, &r))
		snprintf(buf, buf_bytes,
			 "0x%llx, which is %llu bytes into %llu bytes of %s, whose pages the program has since unmapped or protected",
			 (ull)address, (ull)(address - r.base), (ull)r.bytes, r.label);
	else
		snprintf(buf, buf_bytes, "0x%llx, which is not mapped or is protected", (ull)address);
}
