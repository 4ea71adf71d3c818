/* memcheck_internal.h — what the driver's allocators do for memcheck.  Without it, each function returns at once. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_MEMCHECK_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_MEMCHECK_MEMCHECK_INTERNAL_H

#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_memcheck_tool;

/* Bytes that an allocation of so many bytes needs before it and behind it, so that an access beyond its end does not
 * hit another allocation; 0: memcheck is off. */
size_t gpul_memcheck_red_zone(size_t bytes);
/* Keep the freed allocation that began at base, so that later accesses are found: true: the tool gives back `block` of the arena
 * when the memory is needed.  Its range has been removed from the table. */
struct arena_block;
bool gpul_memcheck_keep(uint64_t base, struct arena_block *block);
/* Report that a call frees an address at which no allocation begins. */
void gpul_memcheck_bad_free(const char *call, uint64_t address);
/* Report that a copy or fill is refused, because its memory is not that of one allocation, or may not be used; why: "is not within an allocation". */
void gpul_memcheck_bad_range(const char *call, const char *what, uint64_t address, uint64_t bytes, const char *why);
/* Report that an access of a copy or fill fails, because no memory is there.  is_in_call: it runs in the call that made it. */
void gpul_memcheck_bad_access(const char *what, const char *where, bool is_in_call);
/* Treat memory as if it was not written; no kernel uses it. */
void gpul_memcheck_forget(uint64_t address, size_t bytes);
/* Report that the context of the allocation at base ends before it was freed. */
void gpul_memcheck_leaked(uint64_t base);

#endif
