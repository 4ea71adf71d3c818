/* race_finding.c — reports the kind of a race and both accesses.  Each pair of source lines is reported once, with a count at the end. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdio.h>

enum { PLACE_BYTES = 1000 };

bool race_report_same;

static struct tool_findings findings = { .lock = PTHREAD_MUTEX_INITIALIZER };
static gpul_exec_memory *memory;

void race_findings_begin(gpul_exec_memory *m)
{
	memory = m;
}

/* Return the first address of the allocation that contains `at`. */
static uint64_t allocation_of(uint64_t at)
{
	gpul_exec_range range;

	return gpul_exec_memory_find(memory, at, &range) ? range.base : 0;
}

/* Count a race between two instructions, or between two copies in one allocation.  Returns true if it is new for these source lines. */
static bool is_new(const struct site *a, const struct site *b, bool shared, uint64_t at)
{
	const struct site *first = a->number < b->number ? a : b, *second = a->number < b->number ? b : a;
	const struct finding_key key = { .what = { first, second },
					 .number = a->program | b->program ? (a->program + b->program) << 1 | shared : allocation_of(at) };
	const char *x, *y;
	char text[PLACE_BYTES];

	if (gpul_finding_known(&findings, &key))
		return false;
	x = race_site_line(first);
	y = race_site_line(second);
	snprintf(text, sizeof text, "%.350s and %.350s", strcmp(x, y) < 0 ? x : y, strcmp(x, y) < 0 ? y : x);
	return gpul_finding_new(&findings, &key, text);
}

/* Write the kind of an access: "write", "asynchronous read", "atomic operation of scope GPU". */
static void name_access(unsigned how, bool is_volatile, char *buf, size_t bytes)
{
	static const char *const scopes[] = { "block", "cluster", "GPU", "system" };
	const bool writes = how & HOW_WRITES, reads = how & HOW_READS;
	const char *verb = writes && reads ? "atomic operation" : writes ? "write" : "read";

	if (how & HOW_MBARRIER)
		verb = writes && reads ? "mbarrier operation" : writes ? "mbarrier.init" : "mbarrier test";
	if (how & HOW_STRONG && !(how & HOW_COPY))
		snprintf(buf, bytes, "%s%s of scope %s", writes && reads ? "" : "strong ", verb, scopes[how >> HOW_SCOPE_AT & 3]);
	else
		snprintf(buf, bytes, "%s%s", how & HOW_ASYNC ? "asynchronous " : is_volatile ? "volatile " : "", verb);
}

/* Write a description of an access: "write by thread 3,0,0 of block 0,0,0, kernel k: k.ptx:31 (k.cu:7)". */
static void describe_access(unsigned how, uint32_t launch, uint32_t block, uint32_t thread, const struct site *site, char *buf,
			    size_t bytes)
{
	static const struct launch_info unknown = { .kernel = "?", .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
	const struct launch_info *l = race_launch_info(launch);
	char verb[80], place[512];

	l = l ? l : &unknown;
	name_access(how, site->is_volatile, verb, sizeof verb);
	race_site_place(site, place, sizeof place);
	if (l->copy)
		snprintf(buf, bytes, "%s by %s, operation %llu of stream %llu", verb, l->kernel, (unsigned long long)l->order.number,
			 (unsigned long long)(l->order.stream >> ORDER_NODE_BITS));
	else
		snprintf(buf, bytes, "%s by thread %u,%u,%u of block %u,%u,%u of %s: %s", verb, thread % l->block[0],
			 thread / l->block[0] % l->block[1], thread / (l->block[0] * l->block[1]), block % l->grid[0],
			 block / l->grid[0] % l->grid[1], block / l->grid[0] / l->grid[1], l->kernel, place);
}

static void describe_memory(bool shared, uint64_t at, unsigned bytes, char *buf, size_t buf_bytes)
{
	const char *unit = bytes == 1 ? "byte" : "bytes";
	gpul_exec_range range;

	if (shared)
		snprintf(buf, buf_bytes, "%u %s of shared memory at offset %llu", bytes, unit, (unsigned long long)at);
	else if (gpul_exec_memory_find(memory, at, &range))
		snprintf(buf, buf_bytes, "%u %s of global memory at 0x%llx, byte %llu of %llu of %s", bytes, unit, (unsigned long long)at,
			 (unsigned long long)(at - range.base), (unsigned long long)range.bytes, range.label);
	else
		snprintf(buf, buf_bytes, "%u %s of global memory at 0x%llx", bytes, unit, (unsigned long long)at);
}

/* Return the part of the report that says how the program could order these two accesses. */
static const char *remedy_for(const struct now *n, const struct record *r)
{
	const struct watched_block *b = n->w->block;

	if (n->lacks_lock_fence)
		return "the first critical section took the lock without a fence, or with a fence of too small a scope: if it ran second, "
		       "it would not see what the other section has written";
	if (n->lacks_proxy_fence)
		return "a bulk copy accesses shared memory through the async proxy: fence.proxy.async is missing between the store and the barrier";
	if (r->how & HOW_ASYNC || n->how & HOW_ASYNC)
		return "an asynchronous copy is complete when its thread has waited for its group, or for its mbarrier; other threads "
		       "need a barrier after that";
	if (r->launch != b->launch && (r->how | n->how) & HOW_COPY)
		return "the two operations are in different streams, or a kernel was still running: an event, or a synchronisation by "
		       "the host, would order them";
	if (r->launch != b->launch)
		return "the launches are in different streams: an event, or a synchronisation by the host, would order them";
	if (r->block != (uint32_t)b->key)
		return r->how & n->how & HOW_STRONG
			       ? "an access with block scope is atomic only for threads of the same block"
			       : "blocks run at the same time: atomic operations, or a release and an acquire with GPU scope (a fence "
				 "before the signal and a fence after it has been seen), would order them";
	if (r->warp != n->w->index)
		return "__syncthreads() between the two, or a release and an acquire, would order them";
	return "lanes of a warp do not run in lockstep: __syncwarp() between the two would order them; shuffles and votes do not";
}

void race_found(const struct now *n, unsigned lane, uint64_t at, unsigned bytes, const struct record *other, unsigned other_lane)
{
	const struct watched_block *b = n->w->block;
	char where[200], mine[PLACE_BYTES], others[PLACE_BYTES];

	if (!is_new(n->site, other->site, n->shared, at))
		return;
	describe_memory(n->shared, at, bytes, where, sizeof where);
	describe_access(n->how, b->launch, (uint32_t)b->key, n->w->index * LANES + lane, n->site, mine, sizeof mine);
	describe_access(other->how, other->launch, other->block, other->warp * LANES + other_lane, other->site, others, sizeof others);
	gpul_tool_report(TOOL, "race: %s\n%s\n%s\n%s", where, others, mine, remedy_for(n, other));
}

void race_findings_finish(void)
{
	gpul_findings_say_counts(&findings, TOOL, "times");
	gpul_tool_sum_up(TOOL);
}
