/* arena_internal.h — memory of a module: an arena that is freed in one go, and growing arrays.
 *
 * The parser collects rows in ptx_vec arrays, which move when they grow; what is finished is
 * copied once, to its exact size, into the arena.  Names of this folder's private functions
 * begin with ptx_. */
#ifndef GPULOAD_PTX_ARENA_INTERNAL_H
#define GPULOAD_PTX_ARENA_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

typedef struct ptx_arena {
	struct ptx_chunk *chunks;   /* newest first; only the newest has room */
	size_t used, room;          /* bytes of the newest chunk */
} ptx_arena;

/* Aligned to 16 bytes; not cleared; NULL: out of memory. */
void *ptx_arena_alloc(ptx_arena *a, size_t bytes);
void ptx_arena_free(ptx_arena *a);

typedef struct ptx_vec {
	void *rows;
	uint32_t n, room;
} ptx_vec;

/* A new, cleared row at the end; NULL: out of memory (or 2^32 rows). */
void *ptx_vec_push(ptx_vec *v, size_t row_bytes);
void ptx_vec_free(ptx_vec *v);

#define PTX_ROWS(type, vec) ((type *)(vec).rows)

#endif
