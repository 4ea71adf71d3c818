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

/* Return the entry of a symbol in the table of symbols of a loaded object; NULL: none. */
const Elf64_Sym *find_symbol(const struct link_map *map, const char *name);

/* Returns true if a loaded object needs a library (DT_NEEDED), by the library's file name or its DT_SONAME. */
bool needs_library(const struct link_map *map, const struct link_map *library);

#endif
