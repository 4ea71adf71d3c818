/* allocations.c — keeps a record for each range of memory: its shadow, and where it was allocated and freed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softcuda/exec/exec_arena_internal.h"
#include "softcuda/tools/memcheck/parts_internal.h"

typedef unsigned long long ull;

/* KEPT_MOST: maximum number of freed allocations whose addresses stay reserved, without pages; FAR: farther allocations are not named. */
enum { KEPT_MOST = 4096, FAR = 1 << 30 };
static const uint64_t KEPT_BYTES = UINT64_C(64) << 30;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct record **live; /* records of live allocations, sorted by base */
static size_t n_live, live_capacity;
static struct record *newest, *oldest; /* records of freed allocations, linked from the oldest to the newest */
static size_t n_freed;
static uint64_t freed_bytes, n_made;
_Atomic uint64_t gpul_records_generation = 1;

/* ---- the table ------------------------------------------------------------------------------------------------------ */

/* Return the number of live records that start at or below the address. The caller holds the lock. */
static size_t n_before(uint64_t address)
{
	size_t lo = 0, hi = n_live;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (live[mid]->base <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool contains(const struct record *r, uint64_t address)
{
	return address - r->base < r->bytes;
}

static bool insert_live(struct record *r)
{
	const size_t at = n_before(r->base);

	if (n_live == live_capacity) {
		const size_t capacity = live_capacity ? 2 * live_capacity : 256;
		struct record **more = realloc(live, capacity * sizeof *more);

		if (!more)
			return false;
		live = more;
		live_capacity = capacity;
	}
	memmove(&live[at + 1], &live[at], (n_live - at) * sizeof *live);
	live[at] = r;
	n_live++;
	return true;
}

static void free_record(struct record *r)
{
	gpul_shadow_free(&r->shadow);
	gpul_shadow_free(&r->alive);
	gpul_arena_give(r->block);
	free(r);
}

/* Returns true if this memory is written only by kernels and by driver calls, so that unwritten bytes can be detected. */
static bool is_watched(const char *label)
{
	return !strcmp(label, "cuMemAlloc") || !strcmp(label, "cuMemAllocAsync");
}

void gpul_records_add(const gpul_exec_range *range)
{
	struct record *r = calloc(1, sizeof *r);
	bool done;

	if (!r)
		return;
	r->base = range->base;
	r->bytes = range->bytes;
	snprintf(r->label, sizeof r->label, "%s", range->label);
	r->is_constant = range->flags & GPUL_EXEC_MEM_CONSTANT;
	r->is_heap = !strcmp(range->label, "device heap");
	if (!strncmp(range->label, "cu", 2))
		gpul_origin_take(&r->made);
	if (is_watched(range->label) || r->is_heap)
		(void)gpul_shadow_create(&r->shadow, r->bytes); /* if there is no memory for the shadow, all bytes count as written */
	if (r->is_heap && !gpul_shadow_create(&r->alive, r->bytes))
		r->is_heap = false;
	r->shadow.complete = !r->shadow.bits;
	pthread_rwlock_wrlock(&lock);
	r->number = strncmp(range->label, "cu", 2) != 0 ? 0 : ++n_made;
	done = insert_live(r);
	atomic_fetch_add(&gpul_records_generation, 1);
	pthread_rwlock_unlock(&lock);
	if (!done)
		free_record(r);
}

/* Remove the oldest records of freed allocations that exceed the limits, and return them as a list. The caller holds the lock. */
static struct record *forget_oldest(void)
{
	struct record *list = NULL;

	while (n_freed > KEPT_MOST || (n_freed > 1 && freed_bytes > KEPT_BYTES)) {
		struct record *r = oldest;

		oldest = r->next;
		n_freed--;
		freed_bytes -= r->bytes;
		r->next = list;
		list = r;
	}
	return list;
}

void gpul_records_remove(const gpul_exec_range *range)
{
	struct record *r = NULL, *forgotten;
	size_t at;

	pthread_rwlock_wrlock(&lock);
	at = n_before(range->base);
	if (at && live[at - 1]->base == range->base) {
		r = live[at - 1];
		memmove(&live[at - 1], &live[at], (n_live - at) * sizeof *live);
		n_live--;
		if (r->number)
			gpul_origin_take(&r->freed);
		*(newest && n_freed ? &newest->next : &oldest) = r;
		newest = r;
		r->next = NULL;
		n_freed++;
		freed_bytes += r->bytes;
	}
	forgotten = forget_oldest();
	atomic_fetch_add(&gpul_records_generation, 1);
	pthread_rwlock_unlock(&lock);
	if (r && r->is_heap)
		gpul_heap_ends(r->base, r->bytes, gpul_reports_leaks());
	while (forgotten) {
		struct record *next = forgotten->next;

		free_record(forgotten);
		forgotten = next;
	}
}

struct record *gpul_records_find(uint64_t address)
{
	struct record *r = NULL;
	size_t at;

	pthread_rwlock_rdlock(&lock);
	at = n_before(address);
	if (at && contains(live[at - 1], address))
		r = live[at - 1];
	pthread_rwlock_unlock(&lock);
	return r;
}

/* ---- writes by the host ---------------------------------------------------------------------------------------------- */

/* Return the record that contains `at`, and shorten *bytes to end with it.  NULL: none; *bytes is then shortened to end at the next one. */
static struct record *part_in_record(uint64_t at, uint64_t *bytes)
{
	struct record *r = gpul_records_find(at);
	uint64_t most = UINT64_MAX;
	size_t k;

	if (r) {
		most = r->base + r->bytes - at;
	} else {
		pthread_rwlock_rdlock(&lock);
		k = n_before(at);
		if (k < n_live)
			most = live[k]->base - at;
		pthread_rwlock_unlock(&lock);
	}
	*bytes = *bytes < most ? *bytes : most;
	return r;
}

void gpul_records_written(uint64_t to, uint64_t from, uint64_t bytes)
{
	while (bytes) {
		uint64_t part = bytes;
		struct record *r = part_in_record(to, &part);
		struct record *source = from ? part_in_record(from, &part) : NULL;

		if (r && r->shadow.bits && source && source->shadow.bits)
			gpul_shadow_copy(&r->shadow, to - r->base, &source->shadow, from - source->base, part, false);
		else if (r && r->shadow.bits)
			gpul_shadow_set(&r->shadow, to - r->base, part, false);
		if (r && r->shadow.bits && !r->is_heap && part == r->bytes && gpul_shadow_has(&r->shadow, 0, part))
			r->shadow.complete = true;
		to += part;
		from += from ? part : 0;
		bytes -= part;
	}
}

/* ---- descriptions ------------------------------------------------------------------------------------------------------- */

/* Return the number of bytes between the address and the memory of the record; 0: the address is inside. */
static uint64_t distance(const struct record *r, uint64_t address)
{
	return contains(r, address) ? 0 : address < r->base ? r->base - address : address - r->base - r->bytes + 1;
}

static void describe_record(const struct record *r, bool is_freed, uint64_t address, char *buf, size_t bytes)
{
	const uint64_t offset = address - r->base;
	const char *was = is_freed ? "freed " : "";
	char number[40] = "", origin[ORIGIN_BYTES];
	size_t n;

	if (r->number)
		snprintf(number, sizeof number, " (allocation %llu)", (ull)r->number);
	if (contains(r, address))
		snprintf(buf, bytes, "\n%llu bytes into a %s%llu-byte %s at 0x%llx%s", (ull)offset, was, (ull)r->bytes, r->label,
			 (ull)r->base, number);
	else
		snprintf(buf, bytes, "\nnearest memory: %llu bytes %s a %s%llu-byte %s at 0x%llx%s",
			 address < r->base ? (ull)(r->base - address) : (ull)(offset - r->bytes),
			 address < r->base ? "before" : "past the end of", was, (ull)r->bytes, r->label, (ull)r->base, number);
	n = strlen(buf);
	if (*gpul_origin_text(&r->made, origin))
		n += (size_t)snprintf(buf + n, bytes - n, "\nallocated by %s", origin);
	if (is_freed && n < bytes && *gpul_origin_text(&r->freed, origin))
		snprintf(buf + n, bytes - n, "\nfreed by %s", origin);
}

void gpul_records_describe(uint64_t address, char *buf, size_t bytes)
{
	const struct record *best = NULL;
	bool is_freed = false;
	size_t at;

	*buf = '\0';
	pthread_rwlock_rdlock(&lock);
	at = n_before(address);
	for (size_t k = at ? at - 1 : 0; k < n_live && k <= at; k++)
		if (!best || distance(live[k], address) < distance(best, address))
			best = live[k];
	for (const struct record *r = n_freed ? oldest : NULL; r; r = r->next) {
		if (!best || distance(r, address) < distance(best, address) || (is_freed && contains(r, address))) {
			best = r;
			is_freed = true;
		}
	}
	if (best && distance(best, address) > FAR)
		best = NULL;
	if (best && best->is_heap && !is_freed && contains(best, address))
		gpul_heap_describe(address, buf, bytes);
	else if (best)
		describe_record(best, is_freed, address, buf, bytes);
	pthread_rwlock_unlock(&lock);
}

/* ---- calls from the allocators ------------------------------------------------------------------------------------------- */

static bool is_on(void)
{
	return gpul_memcheck.o.name;
}

size_t gpul_memcheck_red_zone(size_t bytes)
{
	enum { LEAST = 4096, MOST = 1 << 20 };
	const size_t zone = bytes / 4 / LEAST * LEAST;

	return !is_on() ? 0 : zone < LEAST ? LEAST : zone > MOST ? MOST : zone;
}

/* Return the whole pages of a freed allocation to the system. */
static void release_pages(const struct record *r)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = (r->base + page - 1) & ~(page - 1),
		       to = (r->base + r->bytes) & ~(page - 1);

	if (to > from)
		madvise((void *)(uintptr_t)from, to - from, MADV_DONTNEED);
}

bool gpul_memcheck_keep(uint64_t base, struct arena_block *block)
{
	bool kept = false;

	if (!is_on())
		return false;
	pthread_rwlock_wrlock(&lock);
	if (n_freed && newest->base == base && !newest->block) {
		newest->block = block;
		release_pages(newest);
		kept = true;
	}
	pthread_rwlock_unlock(&lock);
	return kept;
}

void gpul_memcheck_bad_free(const char *call, uint64_t address)
{
	char near[800], origin[ORIGIN_BYTES];
	const struct record *twice = NULL;
	struct origin caller;
	bool is_live;

	if (!is_on() || gpul_memcheck.has_ended)
		return;
	gpul_origin_take(&caller);
	gpul_origin_text(&caller, origin);
	gpul_records_describe(address, near, sizeof near);
	is_live = gpul_records_find(address); /* true: memory of another kind of allocation, or not the first address of an allocation */
	pthread_rwlock_rdlock(&lock);
	for (const struct record *r = n_freed && !is_live ? oldest : NULL; r; r = r->next)
		twice = r->base == address ? r : twice;
	pthread_rwlock_unlock(&lock);
	gpul_tool_report("memcheck", "%s of 0x%llx%s%s%s%s", call, (ull)address,
			 twice ? ", which was freed before (double free)" : ", at which no allocation of this call begins (invalid free)",
			 *origin ? "; called by " : "", origin, near);
}

void gpul_memcheck_bad_range(const char *call, const char *what, uint64_t address, uint64_t bytes, const char *why)
{
	char near[800], origin[ORIGIN_BYTES];
	struct origin caller;

	if (!is_on() || gpul_memcheck.has_ended)
		return;
	gpul_origin_take(&caller);
	gpul_origin_text(&caller, origin);
	gpul_records_describe(address, near, sizeof near);
	gpul_tool_report("memcheck", "%s: the %s, %llu bytes at 0x%llx, %s%s%s%s", call, what, (ull)bytes, (ull)address, why,
			 *origin ? "; called by " : "", origin, near);
}

void gpul_memcheck_bad_access(const char *what, const char *where, bool is_in_call)
{
	struct origin caller;
	char origin[ORIGIN_BYTES] = "";

	if (!is_on() || gpul_memcheck.has_ended)
		return;
	if (is_in_call) {
		gpul_origin_take(&caller);
		gpul_origin_text(&caller, origin);
	}
	gpul_tool_report("memcheck", "%s: it would access %s%s%s", what, where, *origin ? "; called by " : "", origin);
}

void gpul_memcheck_forget(uint64_t address, size_t bytes)
{
	struct record *r = is_on() ? gpul_records_find(address) : NULL;

	if (!r || !r->shadow.bits || r->is_heap || bytes > r->base + r->bytes - address)
		return;
	r->shadow.complete = false;
	r->shadow.hole = 0;
	gpul_shadow_clear(&r->shadow, address - r->base, bytes);
	atomic_fetch_add(&gpul_records_generation, 1);
}

static void report_leak(const struct record *r, const char *when)
{
	char origin[ORIGIN_BYTES];

	gpul_origin_text(&r->made, origin);
	gpul_tool_report("memcheck", "leak: %llu bytes at 0x%llx of %s (allocation %llu) are not freed %s%s%s", (ull)r->bytes, (ull)r->base,
			 r->label, (ull)r->number, when, *origin ? "\nallocated by " : "", origin);
}

void gpul_memcheck_leaked(uint64_t base)
{
	const struct record *r = is_on() && gpul_reports_leaks() ? gpul_records_find(base) : NULL;

	if (r && is_watched(r->label))
		report_leak(r, "when the context ends");
}

void gpul_records_report_leaks(void)
{
	pthread_rwlock_rdlock(&lock);
	for (size_t k = 0; k < n_live; k++)
		if (is_watched(live[k]->label))
			report_leak(live[k], "when the program ends");
		else if (live[k]->is_heap)
			gpul_heap_ends(live[k]->base, live[k]->bytes, true);
	pthread_rwlock_unlock(&lock);
}
