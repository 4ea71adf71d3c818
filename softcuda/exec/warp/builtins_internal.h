/* builtins_internal.h — arguments of built-in functions, and the printf that is one of them. */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_BUILTINS_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_BUILTINS_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

uint64_t gpul_builtin_argument(const struct warp_state *s, const struct call_site *site, uint32_t n, unsigned lane);
/* A lane may read [at, at + bytes), a generic address. */
bool gpul_builtin_readable(struct warp_state *s, unsigned lane, uint64_t at, uint64_t bytes);
/* The string there, cut to fit; false: it cannot be read. */
bool gpul_builtin_string(struct warp_state *s, unsigned lane, uint64_t at, char *buf, size_t bytes);
/* print.c: one lane's vprintf(format, arguments).  The number of arguments; *stop: set on a fault. */
int gpul_builtin_vprintf(struct warp_state *s, const struct insn *i, unsigned lane, const struct insn **stop);

#endif
