/* mangled_internal.h — estimates how long a mangled name is when demangled. */
#ifndef GPULOAD_CORE_MANGLED_INTERNAL_H
#define GPULOAD_CORE_MANGLED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Estimate the length in bytes of the demangled name, within a factor of about three.  The time is
 * proportional to the length of the mangled name.  Any thread. */
uint64_t gpul_mangled_length(const char *name);

#endif
