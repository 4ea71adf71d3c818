/* heap.c — device malloc and free: one memory area, divided into blocks whose sizes are powers of two, with a free list for each size.
 *
 *     ┌────────┬──────────────────────────┐   The header contains the block's size class; the pointer that
 *     │ header │ memory for the kernel ...│   the kernel receives is 16-byte aligned.  Freed blocks are kept by
 *     └────────┴──────────────────────────┘   class and never merged: simple, and fast under the lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softcuda/exec/warp/warp_internal.h"

enum { HEADER = 16, MIN_CLASS = 5, N_CLASSES = 48, IN_USE = 0x55a1, FREE = 0xf4ee };

struct header {
	uint32_t magic, size_class;
	struct header *next;
};
_Static_assert(sizeof(struct header) == HEADER, "keeps pointers 16-byte aligned");

struct heap {
	gpul_exec_memory *memory;
	pthread_mutex_t lock;
	uint8_t *arena;
	uint64_t bytes, used;
	struct header *free[N_CLASSES];
	uint64_t red_zone; /* number of unused bytes after each allocation: heap_red_zone_bytes of struct observer */
};

struct heap *gpul_heap_create(gpul_exec_memory *m, uint64_t bytes)
{
	struct heap *h = calloc(1, sizeof *h);
	gpul_exec_range range = { .bytes = bytes, .label = "device heap" };

	if (!h)
		return NULL;
	h->arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->arena == MAP_FAILED)
		goto free_heap;
	range.base = (uintptr_t)h->arena;
	if (gpul_exec_memory_add(m, &range, NULL))
		goto unmap;
	for (struct observer *o = gpul_exec_memory_observers(m); o; o = o->next)
		h->red_zone = o->heap_red_zone_bytes > h->red_zone ? o->heap_red_zone_bytes : h->red_zone;
	h->memory = m;
	h->bytes = bytes;
	pthread_mutex_init(&h->lock, NULL);
	return h;
unmap:
	munmap(h->arena, bytes);
free_heap:
	free(h);
	return NULL;
}

void gpul_heap_mark(struct heap *h, struct heap_marks *out)
{
	_Static_assert(sizeof out->free == sizeof h->free, "a list for each class");
	pthread_mutex_lock(&h->lock);
	out->used = h->used;
	memcpy(out->free, h->free, sizeof out->free);
	pthread_mutex_unlock(&h->lock);
}

void gpul_heap_rewind(struct heap *h, const struct heap_marks *marks)
{
	pthread_mutex_lock(&h->lock);
	h->used = marks->used;
	memcpy(h->free, marks->free, sizeof marks->free);
	pthread_mutex_unlock(&h->lock);
}

void gpul_heap_destroy(struct heap *h)
{
	if (!h)
		return;
	gpul_exec_memory_remove(h->memory, (uintptr_t)h->arena);
	munmap(h->arena, h->bytes);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

static struct header *carve_block(struct heap *h, uint32_t size_class)
{
	uint64_t bytes = 1ull << size_class;
	struct header *block = (struct header *)(void *)(h->arena + h->used);

	if (bytes > h->bytes - h->used)
		return NULL;
	h->used += bytes;
	block->size_class = size_class;
	return block;
}

uint64_t gpul_heap_alloc(struct heap *h, uint64_t bytes)
{
	uint32_t size_class = MIN_CLASS;
	struct header *block;

	if (bytes > h->bytes)
		return 0;
	while (1ull << size_class < bytes + HEADER + h->red_zone)
		size_class++;
	pthread_mutex_lock(&h->lock);
	/* if a tool has set red_zone, memory that was never allocated is used first, so that freed memory is reused late */
	block = h->red_zone ? carve_block(h, size_class) : NULL;
	if (!block && h->free[size_class]) {
		block = h->free[size_class];
		h->free[size_class] = block->next;
	}
	if (!block)
		block = carve_block(h, size_class);
	if (block)
		block->magic = IN_USE;
	pthread_mutex_unlock(&h->lock);
	return block ? (uintptr_t)(block + 1) : 0;
}

bool gpul_heap_free(struct heap *h, uint64_t address)
{
	uint64_t offset = address - (uintptr_t)h->arena;
	struct header *block = (struct header *)(uintptr_t)address - 1;
	bool ours = false;

	pthread_mutex_lock(&h->lock);
	if (address % HEADER == 0 && offset >= HEADER && offset < h->used && block->magic == IN_USE && block->size_class < N_CLASSES) {
		ours = true;
		block->magic = FREE;
		block->next = h->free[block->size_class];
		h->free[block->size_class] = block;
	}
	pthread_mutex_unlock(&h->lock);
	return ours;
}

struct heap *gpul_heap_of(struct gpul_exec_machine *m)
{
	struct heap *h;

	pthread_mutex_lock(&m->lock);
	if (!m->heap)
		m->heap = gpul_heap_create(m->memory, m->options.heap_bytes);
	h = m->heap;
	pthread_mutex_unlock(&m->lock);
	return h;
}
