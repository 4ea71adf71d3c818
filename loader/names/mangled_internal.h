/* mangled_internal.h — mangled names that must not be demangled. */
#ifndef GPULOAD_LOADER_NAMES_MANGLED_INTERNAL_H
#define GPULOAD_LOADER_NAMES_MANGLED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes a name has once it is demangled, within a factor of some three.  Takes no longer
 * than the name is, whatever it stands for.  Any thread. */
uint64_t gpul_mangled_length(const char *name);

#endif
