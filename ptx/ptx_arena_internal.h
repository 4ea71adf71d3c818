/* ptx_arena_internal.h — allocates the memory of a module: many pieces that are freed together.
 *
 * The parser collects rows in growing arrays (core/array.h), which move; a finished table is copied once, at its exact
 * size, into the arena.  The names of this folder's private functions begin with ptx_. */
#ifndef GPULOAD_PTX_PTX_ARENA_INTERNAL_H
#define GPULOAD_PTX_PTX_ARENA_INTERNAL_H

#include <stddef.h>

typedef struct ptx_arena {
	struct ptx_chunk *chunks; /* newest first; only the newest has free space */
	size_t used, room;        /* used bytes of the newest chunk; its size */
} ptx_arena;

/* Allocate memory, aligned to 16 bytes and not cleared; NULL: out of memory. */
void *ptx_arena_alloc(ptx_arena *a, size_t bytes);
void ptx_arena_free(ptx_arena *a);

#endif
