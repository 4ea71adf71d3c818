/* loaded.h — finds symbols of a loaded object, for auditors of the dynamic loader, which cannot call dlsym(). */
#ifndef GPULOAD_NVIDIA_LOADED_H
#define GPULOAD_NVIDIA_LOADED_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if a loaded object imports a function. */
bool imports(const struct link_map *map, const char *name);

/* Return the address of a function or variable that a loaded object exports; 0: none. */
uintptr_t find_export(const struct link_map *map, const char *name);

#endif
