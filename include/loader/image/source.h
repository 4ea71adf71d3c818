/* source.h — opens, maps and recognises a file with device code (a source) once, for all uses.
 *
 *     path, pipe │ memory ── gpul_source_open │ _of ──> source ─┬─ content, text: PTX and CUDA C++
 *                                                               └─ gpul_source_images: the list of its images
 *
 * The path is never opened a second time.  So if the file is replaced meanwhile, old and new content cannot mix; and a
 * pipe, which can be read only once, works like any other file. */
#ifndef GPULOAD_LOADER_IMAGE_SOURCE_H
#define GPULOAD_LOADER_IMAGE_SOURCE_H

#include <stddef.h>

#include "core/error.h"
#include "loader/image/images.h"
#include "loader/image/recognise.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_source gpul_source; /* opaque: mapping, kind of content, list of images */

/** Open and map a file, or read a pipe to its end, and recognise the content.
 *
 * @path  any file; relative paths are relative to the current folder; "-" is standard input
 * @out   owned by the caller: gpul_source_close(); untouched on failure
 * Errors  GPUL_ESYS cannot be opened or read, or is a device (native = errno); GPUL_EFORMAT empty; GPUL_ENOMEM
 * Threads any thread may call; only one thread at a time may use a source
 * Source  POSIX open(), mmap() */
gpul_status gpul_source_open(const char *path, gpul_source **out, gpul_error *err);

/** Create a source from bytes in memory.
 *
 * @bytes    borrowed until gpul_source_close()
 * @n_bytes  their number, at least 1
 * @name     for messages, and to recognise CUDA C++ (a name that ends in .cu); copied
 * @out      owned by the caller: gpul_source_close(); untouched on failure
 * Errors  GPUL_EFORMAT n_bytes is 0; GPUL_ENOMEM
 * Threads any thread may call; only one thread at a time may use a source */
gpul_status gpul_source_of(const void *bytes, size_t n_bytes, const char *name, gpul_source **out, gpul_error *err);

/** Free the list of images and unmap the file.  Accepts NULL; cannot fail. */
void gpul_source_close(gpul_source *s);

/** Fail if a file of the source was truncated after it was opened: zeros may then have been read instead of its last bytes.
 *
 * The functions that list images and kernels and load modules call this themselves.  Call it after other uses of the
 * content, before the result is used.
 *
 * @s     the source
 * Errors  GPUL_ESYS (native = EIO) the file, or a member of its thin archive, was truncated
 * Threads one at a time for each source
 * Source  POSIX fstat() */
gpul_status gpul_source_check(const gpul_source *s, gpul_error *err);

/** Return the path or name with which the source was opened; borrowed from the source. */
const char *gpul_source_name(const gpul_source *s);
/** Return the kind of the content (recognise.h). */
gpul_content gpul_source_content(const gpul_source *s);
/** Return the content, borrowed from the source; *n_bytes is set to its length. */
const void *gpul_source_bytes(const gpul_source *s, size_t *n_bytes);

/** Get the content as a string, for PTX and CUDA C++; it ends at the first NUL.
 *
 * @s     the source; memory that does not end in NUL is copied at the first call
 * @text  set to the string; borrowed from the source
 * Errors  GPUL_ENOMEM
 * Threads one at a time for each source */
gpul_status gpul_source_text(gpul_source *s, const char **text, gpul_error *err);

/** Get the images in the file, which are listed at the first call (gpul_images_all() describes the list).  Parts that
 * are damaged are left out, and gpul_images_damaged() returns them; the call fails if nothing else is left.
 *
 * @s         the source
 * @progress  called during a long search; NULL: no reports
 * @out       borrowed from the source; untouched on failure
 * Errors  GPUL_ESYS a member of a thin archive cannot be read, or the file was truncated; GPUL_EFORMAT cannot contain device
 *         code, or is damaged: the text has the place (native = byte offset) and what was expected; GPUL_ENOMEM
 * Threads one at a time for each source */
gpul_status gpul_source_images(gpul_source *s, const gpul_progress *progress, const gpul_images **out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
