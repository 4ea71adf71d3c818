/* memory_left.h — finds how much memory this process can still use before the kernel kills it.
 *
 * Linux grants more memory than exists, and kills a process that then uses it.  So gpul_memory_check() compares the size of a large
 * buffer, before it is allocated, with what the machine and every control group of the process have left:
 *
 *     /proc/self/cgroup, mountinfo ──> its groups, cgroup v1 and v2, and all their ancestors: limit, used, freeable
 *     /proc/meminfo ─────────────────> the machine: MemAvailable, SwapFree
 *                                      the smallest remainder decides */
#ifndef GPULOAD_CORE_MEMORY_LEFT_H
#define GPULOAD_CORE_MEMORY_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_memory_left {
	uint64_t left_bytes;  /* bytes that are left, including the swap that may be used */
	uint64_t limit_bytes; /* limit of the control group, or memory of the machine */
	uint64_t used_bytes;  /* bytes in use, without the page cache that the kernel can free */
	bool is_machine;      /* true: the machine's memory is the tightest limit; false: a control group's */
	char where[128];      /* the file with the limit; only its end if the path is longer */
} gpul_memory_left;

/** Find the tightest memory limit of this process.
 *
 * @root  "" for this machine; else a folder with copies of /proc and /sys, for tests
 * @out   filled in, unless the result is false
 * Errors  false: nothing is known, because /proc is not mounted
 * Source  proc(5); the kernel's cgroup-v2.rst and cgroup-v1/memory.rst.  Page cache counts as used there: inactive_file
 *         is what the kernel frees first */
bool gpul_memory_find_left(const char *root, gpul_memory_left *out);

/** Check that a buffer fits into the memory that is left.
 *
 * @what   for the message: the purpose of the memory, such as "memfd memory"
 * @bytes  the size of the buffer; sizes below 4 MiB are not checked, because a check takes 0.1 ms
 * Errors  GPUL_ENOMEM the text has the size, the limit, the memory in use, and the file that contains the limit */
gpul_status gpul_memory_check(const char *what, size_t bytes, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
