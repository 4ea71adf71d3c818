/* heap_blocks.c — records the allocations of device malloc: where they were allocated and freed, and which of them leaked. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/tools/memcheck/parts_internal.h"

typedef unsigned long long ull;

/* An allocation of device malloc.  After free(), its entry stays in the table until malloc() returns the same address again. */
struct heap_block {
	uint64_t at, bytes;
	char *made, *freed;       /* where the program allocated and freed it: "kernel.cu:7; k, block 0, thread 3"; not freed: NULL */
	const struct insn *maker; /* the instruction that called malloc */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap_block *blocks; /* sorted by address */
static size_t n_blocks, capacity;

/* Return the number of allocations that start at or below the address. The caller holds the lock. */
static size_t n_before(uint64_t address)
{
	size_t lo = 0, hi = n_blocks;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (blocks[mid].at <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct heap_block *block_at(uint64_t address)
{
	const size_t k = n_before(address);

	return k && blocks[k - 1].at == address ? &blocks[k - 1] : NULL;
}

void gpul_heap_enter(uint64_t at, uint64_t bytes, const struct insn *maker, const char *where)
{
	struct heap_block *b, *more;
	size_t k;

	pthread_mutex_lock(&lock);
	b = block_at(at);
	k = n_before(at);
	if (!b && n_blocks == capacity) {
		more = realloc(blocks, (capacity ? 2 * capacity : 256) * sizeof *more);
		if (!more)
			goto unlock;
		blocks = more;
		capacity = capacity ? 2 * capacity : 256;
	}
	if (!b) {
		b = &blocks[k];
		memmove(b + 1, b, (n_blocks++ - k) * sizeof *b);
		memset(b, 0, sizeof *b);
	}
	free(b->made);
	free(b->freed);
	*b = (struct heap_block){ .at = at, .bytes = bytes, .made = strdup(where), .maker = maker };
unlock:
	pthread_mutex_unlock(&lock);
}

/* Describe a live or freed allocation that contains or is near the address. The caller holds the lock. */
static void describe_block(const struct heap_block *b, uint64_t address, char *buf, size_t bytes)
{
	const bool inside = address - b->at < b->bytes, before = address < b->at;
	int n = snprintf(buf, bytes, "\n%s%llu bytes %s a %s%llu-byte allocation of device malloc at 0x%llx\nallocated by %s",
			 inside ? "" : "nearest memory: ",
			 before ? (ull)(b->at - address) : (ull)(address - b->at - (inside ? 0 : b->bytes)),
			 inside   ? "into"
			 : before ? "before"
				  : "past the end of",
			 b->freed ? "freed " : "", (ull)b->bytes, (ull)b->at, b->made ? b->made : "?");

	if (b->freed && n > 0 && (size_t)n < bytes)
		snprintf(buf + n, bytes - (size_t)n, "\nfreed by %s", b->freed);
}

void gpul_heap_describe(uint64_t address, char *buf, size_t bytes)
{
	size_t k;

	*buf = '\0';
	pthread_mutex_lock(&lock);
	k = n_before(address);
	if (k)
		describe_block(&blocks[k - 1], address, buf, bytes);
	else if (n_blocks)
		describe_block(&blocks[0], address, buf, bytes);
	pthread_mutex_unlock(&lock);
}

enum heap_free gpul_heap_take(uint64_t at, const char *where, uint64_t *n_bytes, char *lines, size_t bytes)
{
	enum heap_free found = HEAP_NOT_MADE;
	struct heap_block *b;

	pthread_mutex_lock(&lock);
	b = block_at(at);
	if (b && b->freed) {
		found = HEAP_FREED_BEFORE;
		describe_block(b, at, lines, bytes);
	} else if (b) {
		found = HEAP_FREED;
		b->freed = strdup(where);
		*n_bytes = b->bytes;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Report all leaked allocations of one malloc instruction; blocks[first] is one of them. The caller holds the lock. */
static void report_leaks(size_t first, uint64_t base, uint64_t bytes)
{
	const struct heap_block *b = &blocks[first];
	uint64_t sum = 0, n = 0;

	for (size_t k = 0; k < n_blocks; k++) {
		if (blocks[k].freed || blocks[k].maker != b->maker || blocks[k].at - base >= bytes)
			continue;
		if (k < first)
			return; /* this leak was reported for an earlier allocation of the same malloc instruction */
		sum += blocks[k].bytes;
		n++;
	}
	gpul_tool_report("memcheck",
			 "leak: %llu bytes of device malloc in %llu allocation%s, the first at 0x%llx, are not freed\nallocated by %s",
			 (ull)sum, (ull)n, n == 1 ? "" : "s", (ull)b->at, b->made ? b->made : "?");
}

void gpul_heap_ends(uint64_t base, uint64_t bytes, bool report)
{
	size_t kept = 0;

	pthread_mutex_lock(&lock);
	for (size_t k = 0; report && k < n_blocks; k++)
		if (!blocks[k].freed && blocks[k].at - base < bytes)
			report_leaks(k, base, bytes);
	for (size_t k = 0; k < n_blocks; k++) {
		struct heap_block *b = &blocks[k];

		if (b->at - base >= bytes) {
			blocks[kept++] = *b;
			continue;
		}
		free(b->made);
		free(b->freed);
	}
	n_blocks = kept;
	pthread_mutex_unlock(&lock);
}
