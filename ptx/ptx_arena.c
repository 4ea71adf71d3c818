/* ptx_arena.c — allocates memory for many small objects that are freed together; it is taken from large chunks. */
#include "ptx/ptx_arena_internal.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 2048, LARGEST_CHUNK = 1 << 20, ALIGN = 16 };

struct ptx_chunk {
	alignas(16) struct ptx_chunk *older;
	size_t bytes;
};

/* Start a chunk that has room for at least `bytes`. */
static int add_chunk(ptx_arena *a, size_t bytes)
{
	size_t room = a->chunks ? a->room * 2 : FIRST_CHUNK;

	if (room > LARGEST_CHUNK)
		room = LARGEST_CHUNK;
	if (room < bytes)
		room = bytes;
	struct ptx_chunk *c = malloc(sizeof *c + room);
	if (!c)
		return -1;
	c->older = a->chunks;
	c->bytes = room;
	a->chunks = c;
	a->used = 0;
	a->room = room;
	return 0;
}

void *ptx_arena_alloc(ptx_arena *a, size_t bytes)
{
	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (bytes > a->room - a->used && add_chunk(a, bytes))
		return NULL;
	void *p = (char *)(a->chunks + 1) + a->used;
	a->used += bytes;
	return p;
}

void ptx_arena_free(ptx_arena *a)
{
	for (struct ptx_chunk *c = a->chunks; c;) {
		struct ptx_chunk *older = c->older;

		free(c);
		c = older;
	}
	memset(a, 0, sizeof *a);
}
