/* capture.h — keep what is written to stdout for a while, for example by the printf of a kernel. */
#ifndef GPULOAD_CLI_LIB_CAPTURE_H
#define GPULOAD_CLI_LIB_CAPTURE_H

#include <stddef.h>

struct capture { int saved, file; };  /* descriptors: the real stdout, and the file that replaces it; -1: none */

/** Send everything that this process writes to descriptor 1 to a file in memory.  If that is not possible, stdout stays as
 * it is.  One capture at a time. */
void capture_begin(struct capture *c);

/** Restore stdout.
 *
 * @c        after capture_begin()
 * @n_bytes  size of the text without the NUL
 * Returns what was written, NUL-terminated; owned by the caller: free(); NULL: nothing was written, or no memory. */
char *capture_end(struct capture *c, size_t *n_bytes);

#endif
