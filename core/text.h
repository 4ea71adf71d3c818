/* text.h — small helpers for text that people typed. */
#ifndef GPULOAD_CORE_TEXT_H
#define GPULOAD_CORE_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Number of single-character edits (insert, delete, replace, swap of neighbours) from a to b.
 * Names longer than 255 bytes are compared by their first 255. */
size_t gpul_text_distance(const char *a, const char *b);

/** The name that name was probably meant to be: the nearest by gpul_text_distance, if it is near
 * enough (a third of the longer name's length, at least one edit), or the only one that name begins.
 * NULL: none.  Ties go to the first.  Borrowed from names. */
const char *gpul_text_nearest(const char *name, const char *const *names, size_t n_names);

#ifdef __cplusplus
}
#endif

#endif
