/* text.h — finds the name that a user probably meant, reads a number of bytes, shortens a message. */
#ifndef GPULOAD_CORE_TEXT_H
#define GPULOAD_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Return the number of single-character edits (insert, delete, replace, swap of adjacent ones) that
 * turn a into b.  Of longer names only the first 255 bytes are compared. */
size_t gpul_text_distance(const char *a, const char *b);

/** Return the entry of names that is nearest to a misspelt name by gpul_text_distance(), if the distance is at most 1 or a third of
 * the longer name's length; else the only entry that starts with name; else NULL.  Of equally near entries, the first is returned.
 * The result is borrowed from names. */
const char *gpul_text_nearest(const char *name, const char *const *names, size_t n_names);

/** Read a number of bytes: decimal digits, optionally followed by K, M, G or T (powers of 1024).  Returns false for other text, or if
 * the number does not fit; *out is then untouched. */
bool gpul_text_bytes(const char *text, uint64_t *out);

/** Shorten a text in place so that it fits into room_bytes with its NUL; room_bytes is at least 64.
 *
 * Long words, such as paths, are shortened first and in the middle:
 * "/home/...build/kernel.cu:7:".  If this is not enough, because a path has blanks, the part between the first and the last '/' is
 * shortened, and then the end is cut.  "..." marks each place; UTF-8 characters stay whole.  Any thread. */
void gpul_text_fit(char *text, size_t room_bytes);

#ifdef __cplusplus
}
#endif

#endif
