/* new_file.h — write files: atomically, so that no reader sees a half-written file, or in place; create folders. */
#ifndef GPULOAD_CLI_LIB_NEW_FILE_H
#define GPULOAD_CLI_LIB_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/** Write a file under a temporary name in the same folder, then rename it.
 *
 * @path     name of the finished file; "-" is stdout
 * @head     bytes that come first; NULL: none
 * @n_head   size of head in bytes
 * @bytes    the bytes that follow head
 * @n_bytes  size of bytes
 * @replace  replace an existing file; an existing device or pipe is not replaced, the bytes are written to it
 * Errors  GPUL_ESYS cannot write (native = errno), or the file exists and replace is false
 *         (native = EEXIST); GPUL_ENOMEM.  No temporary file is left after an error
 * Source  POSIX rename(), link() */
gpul_status new_file_write(const char *path, const void *head, size_t n_head, const void *bytes, size_t n_bytes, bool replace,
			   gpul_error *err);

/** Write a file in place: create it, or truncate it if it exists.  A failure may leave a part of the bytes.
 *
 * @path     the file; "-" is stdout
 * @head     bytes that come first; NULL: none
 * @n_head   size of head in bytes
 * @bytes    the bytes that follow head
 * @n_bytes  size of bytes
 * Errors  GPUL_ESYS cannot write (native = errno)
 * Source  POSIX open() */
gpul_status file_overwrite(const char *path, const void *head, size_t n_head, const void *bytes, size_t n_bytes, gpul_error *err);

/** Create a folder and its missing parents; an existing folder is not an error.
 *
 * @path  the folder
 * Errors  GPUL_ESYS cannot create it, or it is a file (native = errno); GPUL_ENOMEM
 * Source  POSIX mkdir() */
gpul_status new_folder(const char *path, gpul_error *err);

#endif
