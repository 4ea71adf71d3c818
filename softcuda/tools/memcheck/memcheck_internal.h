/* memcheck_internal.h — the functions that the driver's allocators call. While memcheck is off, they return immediately. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_MEMCHECK_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_MEMCHECK_INTERNAL_H

#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_memcheck_tool;

/* Return how many unused bytes must surround an allocation of this size, so that an overrun hits no other one; 0: memcheck is off. */
size_t gpul_memcheck_red_zone(size_t bytes);
/* Keep the freed allocation that starts at base reserved, so that later accesses to it are found. Returns true if memcheck takes
 * ownership of `block`, which it returns to the arena later. The caller has removed the range from the memory table. */
struct arena_block;
bool gpul_memcheck_keep(uint64_t base, struct arena_block *block);
/* Report a call that frees an address that is not the start of an allocation. */
void gpul_memcheck_bad_free(const char *call, uint64_t address);
/* Report that a copy or fill is refused because of its range.  why: the rest of the sentence, such as "is not within an allocation". */
void gpul_memcheck_bad_range(const char *call, const char *what, uint64_t address, uint64_t bytes, const char *why);
/* Report that a copy or fill fails because it accesses unmapped memory. is_in_call: it ran inside the call, not later in a stream. */
void gpul_memcheck_bad_access(const char *what, const char *where, bool is_in_call);
/* Mark memory as unwritten. No kernel may be using it. */
void gpul_memcheck_forget(uint64_t address, size_t bytes);
/* Report that the context of the allocation at base was destroyed before the allocation was freed. */
void gpul_memcheck_leaked(uint64_t base);

#endif
