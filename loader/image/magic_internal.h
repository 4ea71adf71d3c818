/* magic_internal.h — the next place in plain data where a fatbin or an ELF file might start. */
#ifndef GPULOAD_LOADER_IMAGE_MAGIC_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_MAGIC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* The first position from `from` on, below `to`, where four bytes are 50 ed 55 ba or 7f 45 4c 46; to
 * when there is none.  The four may reach beyond `to`, not beyond n, and from <= to <= n.  Reads as
 * fast as memory goes. */
size_t gpul_magic_find(const unsigned char *bytes, size_t n, size_t from, size_t to);

/* Do they stand there? */
bool gpul_magic_is(const unsigned char *bytes, size_t n, size_t at);

#endif
