/* ptx_arena_internal.h — allocates the memory of a module: many small objects that are freed together.
 *
 * The parser collects table entries in growing arrays (core/array.h), which move; a complete table is copied into the arena once, at its
 * exact size.  The names of this folder's private functions begin with ptx_. */
#ifndef GPULOAD_PTX_PTX_ARENA_INTERNAL_H
#define GPULOAD_PTX_PTX_ARENA_INTERNAL_H

#include <stddef.h>

typedef struct ptx_arena {
	struct ptx_chunk *chunks; /* newest first; only the newest has free space */
	size_t used, room;        /* used bytes of the newest chunk, and its size */
} ptx_arena;

/* Allocate memory, aligned to 16 bytes and not cleared; NULL: out of memory. */
void *ptx_arena_alloc(ptx_arena *a, size_t bytes);
void ptx_arena_free(ptx_arena *a);

#endif
