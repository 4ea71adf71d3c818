/* new_file.h — write a file so that nobody ever sees half of it. */
#ifndef GPULOAD_CLI_LIB_NEW_FILE_H
#define GPULOAD_CLI_LIB_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/** Write a file under a temporary name beside it, and rename.
 *
 * @path     where it shall be
 * @head     bytes that come first; NULL: none
 * @n_head   their number
 * @bytes    the rest
 * @n_bytes  their number
 * @replace  take the place of a file that is there; a device or a pipe stays, and gets the bytes
 * Errors  GPUL_ESYS it cannot be written (native = errno), or is there and is not to be replaced
 *         (native = EEXIST); GPUL_ENOMEM.  Nothing is left behind
 * Threads any thread may call
 * Source  POSIX rename(), link() */
gpul_status new_file_write(const char *path, const void *head, size_t n_head, const void *bytes,
			   size_t n_bytes, bool replace, gpul_error *err);

/** Make a folder, and those above it that are missing; one that is there is fine.
 *
 * @path  the folder
 * Errors  GPUL_ESYS it cannot be made, or is a file (native = errno); GPUL_ENOMEM
 * Threads any thread may call
 * Source  POSIX mkdir() */
gpul_status new_folder(const char *path, gpul_error *err);

#endif
