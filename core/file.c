/* file.c — see file.h. */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST_READ_BYTES = 64 * 1024 };
static const uint64_t MAX_STREAM_BYTES = (uint64_t)4 << 30;  /* /dev/zero has no end */

static gpul_status no_memory(const char *path, gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, ENOMEM, "%s: no memory to read it", path);
}

/* A file with a size of a whole number of pages has no NUL after it, so one more page is
 * wanted: reserve room for both, then lay the file over its front.  The page behind stays zero.
 */
static gpul_status map(int fd, const char *path, size_t n_bytes, gpul_file *out,
		       gpul_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (n_bytes / page + 1) * page;
	void *base = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return no_memory(path, err);
	if (mmap(base, n_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		int why = errno;

		munmap(base, room);
		return gpul_fail(err, GPUL_ESYS, why, "%s: cannot map it: %s", path,
				 strerror(why));
	}
	*out = (gpul_file){
		.bytes = base, .n_bytes = n_bytes, .mapped = true, .mapped_bytes = room, .fd = fd
	};
	return GPUL_OK;
}

static gpul_status read_all(int fd, const char *path, gpul_file *out, gpul_error *err)
{
	size_t room = FIRST_READ_BYTES, n = 0;
	char *text = malloc(room), *more;
	ssize_t got;

	if (!text)
		return no_memory(path, err);
	while ((got = read(fd, text + n, room - n - 1)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || (n += (size_t)got) > MAX_STREAM_BYTES) {
			int why = got < 0 ? errno : EFBIG;

			free(text);
			return gpul_fail(err, GPUL_ESYS, why, "%s: cannot read it: %s", path,
					 strerror(why));
		}
		if (room - n > 1)
			continue;
		room *= 2;
		more = realloc(text, room);
		if (!more) {
			free(text);
			return no_memory(path, err);
		}
		text = more;
	}
	if (n == 0) {
		free(text);
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s is empty", path);
	}
	text[n] = '\0';
	*out = (gpul_file){ .bytes = text, .n_bytes = n };
	return GPUL_OK;
}

static gpul_status take(int fd, const char *path, bool regular, gpul_file *out, gpul_error *err)
{
	struct stat s;

	if (fstat(fd, &s) != 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(s.st_mode))
		return gpul_fail(err, GPUL_ESYS, EISDIR, "%s is a directory, not a file", path);
	if (regular && !S_ISREG(s.st_mode))
		return gpul_fail(err, GPUL_ESYS, EINVAL, "%s is not a regular file", path);
	/* Files below /proc and /sys are regular, say that they are empty, and are not. */
	if (!S_ISREG(s.st_mode) || s.st_size == 0)
		return read_all(fd, path, out, err);
	return map(fd, path, (size_t)s.st_size, out, err);
}

static gpul_status open_file(const char *path, bool regular, gpul_file *out, gpul_error *err)
{
	/* Opening a pipe waits for its writer, unless told not to. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK | O_NOCTTY : 0));
	gpul_status st;

	if (fd < 0 && errno == ENOENT)
		return gpul_fail(err, GPUL_ESYS, ENOENT, "%s: no such file", path);
	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot open it: %s", path,
				 strerror(errno));
	st = take(fd, path, regular, out, err);
	if (st || !out->mapped)
		close(fd);
	return st;
}

gpul_status gpul_file_open(const char *path, gpul_file *out, gpul_error *err)
{
	return open_file(path, false, out, err);
}

gpul_status gpul_file_open_regular(const char *path, gpul_file *out, gpul_error *err)
{
	return open_file(path, true, out, err);
}

void gpul_file_close(gpul_file *f)
{
	if (!f)
		return;
	if (f->mapped) {
		munmap((void *)(uintptr_t)f->bytes, f->mapped_bytes);
		close(f->fd);
	} else {
		free((void *)(uintptr_t)f->bytes);
	}
	*f = (gpul_file){ 0 };
}

/* What is wholly in the pages of n bytes: releasing must not touch what is beside them, fetching may
 * leave the edges to page faults. */
static void advise(const gpul_file *f, const void *at, size_t n_bytes, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)at, end = start + n_bytes;

	start = (start + page - 1) & ~(page - 1);
	end &= ~(page - 1);
	if (f->mapped && start < end)
		madvise((void *)start, end - start, advice);
}

void gpul_file_fetch(const gpul_file *f, const void *at, size_t n_bytes)
{
#ifdef MADV_POPULATE_READ /* Linux 5.14: maps all at once, which page faults do piece by piece */
	advise(f, at, n_bytes, MADV_POPULATE_READ);
#else
	advise(f, at, n_bytes, MADV_WILLNEED);
#endif
}

void gpul_file_release(const gpul_file *f, const void *at, size_t n_bytes)
{
	advise(f, at, n_bytes, MADV_DONTNEED); /* a private mapping that nobody wrote to */
}

bool gpul_file_read(const gpul_file *f, const void *at, size_t n_bytes, void *out)
{
	off_t offset = (const char *)at - (const char *)f->bytes;

	/* Not pread(): it is where a thread may be cancelled, and seeing to that takes a tenth of its time. */
	return f->mapped && syscall(SYS_pread64, f->fd, out, n_bytes, offset) == (long)n_bytes;
}
