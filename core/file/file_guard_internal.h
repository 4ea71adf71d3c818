/* file_guard_internal.h — keeps the process alive when a mapped file is truncated while it is read. */
#ifndef GPULOAD_CORE_FILE_FILE_GUARD_INTERNAL_H
#define GPULOAD_CORE_FILE_FILE_GUARD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct gpul_file_guard;

/* Watch the pages of a mapped file until gpul_file_guard_remove().  NULL: no memory. */
struct gpul_file_guard *gpul_file_guard_add(const void *pages, size_t n_bytes);
void gpul_file_guard_remove(struct gpul_file_guard *g);
/* True if a page of the file could not be read; since then, zeros are read from that page on. */
bool gpul_file_guard_tripped(const struct gpul_file_guard *g);

#endif
