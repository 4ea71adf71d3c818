/* file.h — maps or reads a whole file. */
#ifndef GPULOAD_CORE_FILE_FILE_H
#define GPULOAD_CORE_FILE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_file {
	const void *bytes; /* followed by a NUL that n_bytes does not count, so that a text file is a string */
	size_t n_bytes;    /* at least 1 */
	bool mapped;       /* the bytes are mapped (else allocated); private to file.c */
	size_t mapped_bytes;
	int fd;                        /* descriptor of a mapped file, open for gpul_file_read() */
	struct gpul_file_guard *guard; /* the guard of a mapped file; private to file.c */
} gpul_file;

/** Map a large file; read a small one, a pipe or standard input.
 *
 * Later writes to a mapped file may change the bytes; writes to a file that was read do not.  When another process truncates a
 * mapped file while it is used, zeros are read after its new end, and gpul_file_check() fails.  For this, a handler of SIGBUS is
 * installed while a file is mapped; it passes every other SIGBUS on to the previous handler.
 *
 * @path  for open(), or "-" for standard input; at most 4 GiB are read from a file that is not regular
 * @out   owned by the caller: gpul_file_close(); untouched on failure
 * Errors  GPUL_ESYS native = errno: missing, a directory, no permission; ENODEV a device that is not a terminal; ENXIO a pipe that
 *         no process opened for writing within 2 seconds; EIO truncated while it was read; GPUL_EFORMAT empty; GPUL_ENOMEM
 * Source  POSIX open(), mmap() */
gpul_status gpul_file_open(const char *path, gpul_file *out, gpul_error *err);

/** Map a file with an untrusted path, for example one that another file contains: refuses pipes, which could block, and devices.
 *
 * @path  for open()
 * @out   owned by the caller: gpul_file_close(); untouched on failure
 * Errors  GPUL_ESYS native = errno; EINVAL: not a regular file; GPUL_EFORMAT empty; GPUL_ENOMEM
 * Source  POSIX open(), mmap() */
gpul_status gpul_file_open_regular(const char *path, gpul_file *out, gpul_error *err);
void gpul_file_close(gpul_file *f); /* accepts a zeroed file; cannot fail */

/** Fail if the file was truncated after it was opened: zeros may then have been read instead of its last bytes.
 *
 * Call this after the last use of the bytes, before the result is used.
 *
 * @f     an open file
 * @path  for the message
 * Errors  GPUL_ESYS (native = EIO) the file was truncated, or its disk could not be read
 * Source  POSIX fstat(), mmap() */
gpul_status gpul_file_check(const gpul_file *f, const char *path, gpul_error *err);

/** Return the name of a file without its folders: the part of the path after the last '/'. */
const char *gpul_file_name(const char *path);

/* Hints about the n_bytes at `at` in f, for large files.  Fetch: the caller will soon read all of them.  Release: the kernel may
 * free their memory; the next access loads them again.  No effect if f is not mapped.  Any thread. */
void gpul_file_fetch(const gpul_file *f, const void *at, size_t n_bytes);
void gpul_file_release(const gpul_file *f, const void *at, size_t n_bytes);

/* Copy the n_bytes at `at` in f without loading the pages around them; for a few scattered bytes.  False: the copy failed, and the
 * caller must read the bytes at `at` itself.  Any thread. */
bool gpul_file_read(const gpul_file *f, const void *at, size_t n_bytes, void *out);

#ifdef __cplusplus
}
#endif

#endif
