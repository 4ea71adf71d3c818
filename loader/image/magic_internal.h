/* magic_internal.h — search plain data for the magic numbers of fatbins and ELF files. */
#ifndef GPULOAD_LOADER_IMAGE_MAGIC_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_MAGIC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* The first position in [from, to) of the four bytes 50 ed 55 ba or 7f 45 4c 46, or `to` if there is none.  The four
 * bytes may extend past `to` but not past n; from <= to <= n.  Runs at the speed of memory. */
size_t gpul_magic_find(const unsigned char *bytes, size_t n, size_t from, size_t to);

/* True if the four bytes at `at` are one of the magic numbers. */
bool gpul_magic_is(const unsigned char *bytes, size_t n, size_t at);

#endif
