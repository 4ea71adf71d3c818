/* file.h — a whole file as bytes. */
#ifndef GPULOAD_CORE_FILE_H
#define GPULOAD_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_file {
	const void *bytes;  /* followed by a NUL that is not counted: text is a string */
	size_t n_bytes;     /* at least 1 */
	bool mapped;        /* how to give it back: private to file.c */
	size_t mapped_bytes;
	int fd;             /* of a mapped file, kept for gpul_file_read() */
} gpul_file;

/** Map a file, or read it where mapping cannot be (a pipe, /dev/stdin).
 *
 * The bytes do not follow later writes to a file that was read, but may follow those to a mapped
 * one; a mapped file that is cut short while it is used ends the process with SIGBUS, as for every
 * mapping.
 *
 * @path  for open(); at most 4 GiB are taken from what is not a regular file
 * @out   owned by the caller: gpul_file_close(); untouched on failure
 * Errors  GPUL_ESYS native = errno: missing, a directory, no permission; GPUL_EFORMAT empty;
 *         GPUL_ENOMEM
 * Threads any thread may call
 * Source  POSIX open(), mmap() */
gpul_status gpul_file_open(const char *path, gpul_file *out, gpul_error *err);

/** The same for a path that another file names, who knows why: a pipe, at which it would wait, and a
 * device are refused.
 *
 * @path  for open()
 * @out   owned by the caller: gpul_file_close(); untouched on failure
 * Errors  as above; GPUL_ESYS native = EINVAL: not a regular file
 * Threads any thread may call
 * Source  POSIX open(), mmap() */
gpul_status gpul_file_open_regular(const char *path, gpul_file *out, gpul_error *err);
void gpul_file_close(gpul_file *f);  /* a zeroed one is fine; cannot fail */

/* Hints, for files of hundreds of megabytes; n_bytes at `at` lie in f.  Fetch: they are about to be
 * read, all of them.  Release: their memory may go; reading them again brings them back.  Both do
 * nothing where f was read and not mapped.  Any thread. */
void gpul_file_fetch(const gpul_file *f, const void *at, size_t n_bytes);
void gpul_file_release(const gpul_file *f, const void *at, size_t n_bytes);

/* Copy n_bytes at `at`, which lie in f, without mapping the pages around them: for a few bytes here
 * and there.  False: they cannot be read this way, look at `at` itself.  Any thread. */
bool gpul_file_read(const gpul_file *f, const void *at, size_t n_bytes, void *out);

#ifdef __cplusplus
}
#endif

#endif
