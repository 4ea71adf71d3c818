#ifndef GPULOAD_SOFTCUDA_EXEC_EXEC_ARENA_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_EXEC_ARENA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_block; /* a block of the arena, taken or free */

/* Allocate `bytes` bytes, rounded up to whole pages, at a multiple of `align`, which is a power of two.  The content is
 * undefined.  NULL: out of memory.  Any thread may call the functions of this file. */
struct arena_block *gpul_arena_take(size_t bytes, size_t align, uint64_t *base);
void gpul_arena_give(struct arena_block *b); /* accepts NULL */
/* Returns true if the address is in the arena, which is never host memory of the program. */
bool gpul_arena_contains(uint64_t address);

#endif
