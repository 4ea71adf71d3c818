/* exec_arena.c — an allocator of device memory whose addresses the process never uses for other memory.
 *
 *     region   ├ taken │ free │ taken │ taken │ free ................................ ┤    addresses reserved until exit
 *              └─────────── readable and writable ──────────┴──── PROT_NONE ──────────┘
 *
 * If device memory came from malloc(), a freed device address could soon be the address of a string of the program, which a late copy
 * to the freed memory would destroy.
 *
 * Free blocks are in a list per size class (power of two); adjacent free blocks are merged. The structs that describe blocks are outside
 * the arena's memory, which kernels can overwrite. Up to KEPT_BYTES of freed blocks keep their pages for later allocations. */
#include "softcuda/exec/exec_arena_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_REGIONS = 512, N_BINS = 64, SEARCHED = 32 };
static const size_t REGION_BYTES = (size_t)64 << 30, LEAST_REGION_BYTES = (size_t)64 << 20, OPENED_BYTES = 8 << 20;
static const size_t KEPT_BYTES = 64 << 20, LARGE_BYTES = 32 << 20;

struct region {
	uint64_t base;
	size_t bytes;
	uint64_t open_end; /* [base, open_end) is readable and writable */
};

struct arena_block {
	struct region *region;
	uint64_t base;
	size_t bytes;
	size_t kept_bytes; /* free block: approximate number of its bytes that have physical pages */
	bool is_free;
	struct arena_block *before, *behind; /* the blocks next to this one in the region */
	struct arena_block *previous, *next; /* links of the list of free blocks of the same size class (bin) */
};

/* protects the variables below, except that regions are read without the lock, because they are only ever added */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region regions[MAX_REGIONS];
static atomic_size_t n_regions;
static struct arena_block *bins[N_BINS];
static size_t kept_bytes; /* sum of kept_bytes over all free blocks */

static unsigned bin_of(size_t bytes)
{
	return 63 - (unsigned)__builtin_clzll(bytes);
}

static void insert_free(struct arena_block *b)
{
	struct arena_block **first = &bins[bin_of(b->bytes)];

	b->is_free = true;
	b->previous = NULL;
	b->next = *first;
	if (*first)
		(*first)->previous = b;
	*first = b;
}

static void remove_free(struct arena_block *b)
{
	*(b->previous ? &b->previous->next : &bins[bin_of(b->bytes)]) = b->next;
	if (b->next)
		b->next->previous = b->previous;
	b->is_free = false;
}

/* ---- regions: reserved ranges of addresses ---------------------------------------------------------------------------- */

static bool addresses_are_limited(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY;
}

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Reserve a region of at least this size, and add it as one free block; false: no address space is left. */
static bool add_region(size_t least_bytes)
{
	size_t n = atomic_load(&n_regions), usual = addresses_are_limited() ? LEAST_REGION_BYTES : REGION_BYTES;
	size_t bytes = least_bytes > usual ? least_bytes : usual;
	struct arena_block *b = n < MAX_REGIONS ? calloc(1, sizeof *b) : NULL;
	void *p = b ? reserve(bytes) : NULL;

	if (!p && b && bytes > least_bytes)
		p = reserve(bytes = least_bytes);
	if (!p) {
		free(b);
		return false;
	}
	regions[n] = (struct region){ (uintptr_t)p, bytes, (uintptr_t)p };
	*b = (struct arena_block){ .region = &regions[n], .base = regions[n].base, .bytes = bytes };
	insert_free(b);
	atomic_store(&n_regions, n + 1);
	return true;
}

bool gpul_arena_contains(uint64_t address)
{
	const size_t n = atomic_load(&n_regions);

	for (size_t k = 0; k < n; k++)
		if (address - regions[k].base < regions[k].bytes)
			return true;
	return false;
}

/* Make the block's pages readable and writable; false: the system does not allow it. */
static bool open_pages(const struct arena_block *b)
{
	struct region *r = b->region;
	uint64_t end = b->base + b->bytes;

	if (end <= r->open_end)
		return true;
	if (r->base + r->bytes - end > OPENED_BYTES)
		end += OPENED_BYTES;
	if (mprotect((void *)(uintptr_t)r->open_end, end - r->open_end, PROT_READ | PROT_WRITE))
		return false;
	r->open_end = end;
	return true;
}

/* ---- blocks: parts of a region ------------------------------------------------------------------------------------------ */

static uint64_t first_aligned(const struct arena_block *b, size_t align)
{
	return (b->base + align - 1) & ~(uint64_t)(align - 1);
}

static bool block_fits(const struct arena_block *b, size_t bytes, size_t align)
{
	const uint64_t skipped = first_aligned(b, align) - b->base;

	return skipped <= b->bytes && b->bytes - skipped >= bytes;
}

/* Find a free block with enough room.  At most SEARCHED blocks are tried in the bin for blocks of about this size. */
static struct arena_block *find_free(size_t bytes, size_t align)
{
	for (unsigned bin = bin_of(bytes); bin < N_BINS; bin++) {
		struct arena_block *b = bins[bin];

		for (unsigned tries = SEARCHED; b && tries; b = b->next, tries--)
			if (block_fits(b, bytes, align))
				return b;
	}
	return NULL;
}

/* Split a block that is in no list of free blocks: the first `bytes` bytes stay, the rest becomes a free block; false: out of memory. */
static bool split_block(struct arena_block *b, size_t bytes)
{
	struct arena_block *rest = malloc(sizeof *rest);

	if (!rest)
		return false;
	*rest = (struct arena_block){
		.region = b->region, .base = b->base + bytes, .bytes = b->bytes - bytes, .before = b, .behind = b->behind
	};
	rest->kept_bytes = b->kept_bytes > bytes ? b->kept_bytes - bytes : 0; /* assumes that the pages are at the start of b */
	b->kept_bytes -= rest->kept_bytes;
	b->bytes = bytes;
	if (rest->behind)
		rest->behind->before = rest;
	b->behind = rest;
	insert_free(rest);
	return true;
}

/* Merge the free block after b into b, which is in no list of free blocks. */
static void join_behind(struct arena_block *b)
{
	struct arena_block *x = b->behind;

	remove_free(x);
	b->bytes += x->bytes;
	b->kept_bytes += x->kept_bytes;
	b->behind = x->behind;
	if (b->behind)
		b->behind->before = b;
	free(x);
}

/* Merge a block with its free neighbours, and put it into the list of its size class (bin). */
static void release_block(struct arena_block *b)
{
	if (b->behind && b->behind->is_free)
		join_behind(b);
	if (b->before && b->before->is_free) {
		struct arena_block *first = b->before;

		remove_free(first);
		insert_free(b);
		join_behind(first);
		b = first;
	}
	insert_free(b);
}

/* Allocate [at, at + bytes) from the free block b.  NULL: out of memory. */
static struct arena_block *carve(struct arena_block *b, uint64_t at, size_t bytes)
{
	remove_free(b);
	if (at > b->base) {
		struct arena_block *front = b;

		if (!split_block(front, at - front->base)) {
			insert_free(front);
			return NULL;
		}
		b = front->behind;
		remove_free(b);
		insert_free(front);
	}
	if ((b->bytes > bytes && !split_block(b, bytes)) || !open_pages(b)) {
		release_block(b);
		return NULL;
	}
	kept_bytes -= b->kept_bytes;
	b->kept_bytes = 0;
	return b;
}

struct arena_block *gpul_arena_take(size_t bytes, size_t align, uint64_t *base)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) & ~(page - 1), at_least = align > page ? align : page;
	struct arena_block *b = NULL;

	if (whole < bytes || !whole || whole + at_least < whole)
		return NULL;
	pthread_mutex_lock(&lock);
	b = find_free(whole, at_least);
	if (!b && add_region(whole + (at_least > page ? at_least : 0)))
		b = find_free(whole, at_least);
	if (b)
		b = carve(b, first_aligned(b, at_least), whole);
	pthread_mutex_unlock(&lock);
	if (b)
		*base = b->base;
	return b;
}

void gpul_arena_give(struct arena_block *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&lock);
	if (b->bytes >= LARGE_BYTES || kept_bytes + b->bytes > KEPT_BYTES)
		madvise((void *)(uintptr_t)b->base, b->bytes, MADV_DONTNEED);
	else
		b->kept_bytes = b->bytes;
	kept_bytes += b->kept_bytes;
	release_block(b);
	pthread_mutex_unlock(&lock);
}
