/* arena_internal.h — addresses for the memory of devices: like a GPU's, they are those of nothing else, also after they were freed. */
#ifndef GPULOAD_SOFTCUDA_EXEC_ARENA_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_ARENA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_block;          /* memory that was taken, or is free */

/* Take memory for `bytes` bytes in whole pages, at a multiple of `align`, which is a power of two.  Its content is unknown.  NULL: out of
 * memory.  Any thread may call these functions. */
struct arena_block *gpul_arena_take(size_t bytes, size_t align, uint64_t *base);
void gpul_arena_give(struct arena_block *b);  /* NULL is fine */
/* True: the address is, was or will be of memory that is taken here; so it is never memory of the program. */
bool gpul_arena_contains(uint64_t address);

#endif
