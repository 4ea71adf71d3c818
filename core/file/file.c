/* file.c — maps large regular files, and reads other files. */
#include "core/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/file/file_guard_internal.h"

enum {
	FIRST_READ_BYTES = 64 * 1024,
	/* smaller files are read, because reading them is as fast as mapping, and later writes to the file cannot change the bytes */
	MAP_FROM_BYTES = 256 * 1024,
	WRITER_MS = 2000, /* how long to wait for a writer of a named pipe */
};
static const uint64_t MAX_STREAM_BYTES = (uint64_t)4 << 30; /* limit for streams without an end, such as /dev/zero */

static gpul_status no_memory(const char *path, gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, ENOMEM, "%s: out of memory", path);
}

static gpul_status was_cut(const char *path, size_t n_bytes, gpul_error *err)
{
	return gpul_fail(err, GPUL_ESYS, EIO,
			 "%s became shorter while it was read (it had %zu bytes at the start); try again when no process "
			 "writes to it",
			 path, n_bytes);
}

/* Read n bytes at an offset.  Returns false if the read failed, or the file is too short. */
static bool read_at(int fd, void *to, size_t n, size_t offset)
{
	while (n) {
		ssize_t got = pread(fd, to, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to = (char *)to + got;
		offset += (size_t)got;
		n -= (size_t)got;
	}
	return true;
}

static gpul_status read_small(int fd, const char *path, size_t n_bytes, gpul_file *out, gpul_error *err)
{
	char *text = malloc(n_bytes + 1);

	if (!text)
		return no_memory(path, err);
	if (!read_at(fd, text, n_bytes, 0)) {
		free(text);
		return was_cut(path, n_bytes, err);
	}
	text[n_bytes] = '\0';
	*out = (gpul_file){ .bytes = text, .n_bytes = n_bytes };
	return GPUL_OK;
}

/*     ├── whole pages, mapped ──┼─ last page: the rest of the file, read, and zeros ─┤
 *
 * A NUL must follow the bytes even if the file grows later, so the last page is a copy in anonymous memory. */
static gpul_status map_file(int fd, const char *path, size_t n_bytes, gpul_file *out, gpul_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = n_bytes / page * page, room = whole + page;
	char *base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	gpul_file f = { .bytes = base, .n_bytes = n_bytes, .mapped = true, .mapped_bytes = room, .fd = fd };
	gpul_status st = GPUL_OK;

	if (base == MAP_FAILED)
		return no_memory(path, err);
	if (mmap(base, whole, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		st = gpul_fail(err, GPUL_ESYS, errno, "%s: cannot map the file: %s", path, strerror(errno));
	else if (!read_at(fd, base + whole, n_bytes - whole, whole))
		st = was_cut(path, n_bytes, err);
	else if (!(f.guard = gpul_file_guard_add(base, whole)))
		st = no_memory(path, err);
	if (st) {
		munmap(base, room);
		return st;
	}
	mprotect(base + whole, page, PROT_READ);
	*out = f;
	return GPUL_OK;
}

/* Read to the end of the stream.  first: the first byte, if it has already been read, else -1. */
static gpul_status read_stream(int fd, const char *path, int first, gpul_file *out, gpul_error *err)
{
	size_t room = FIRST_READ_BYTES, n = 0;
	char *text = malloc(room), *more;
	ssize_t got;

	if (!text)
		return no_memory(path, err);
	if (first >= 0)
		text[n++] = (char)first;
	while ((got = read(fd, text + n, room - n - 1)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || (n += (size_t)got) > MAX_STREAM_BYTES) {
			int why = got < 0 ? errno : EFBIG;

			free(text);
			return gpul_fail(err, GPUL_ESYS, why, "%s: cannot read the file: %s", path, strerror(why));
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

/* Wait for data in a pipe that was opened non-blocking: a pipe without a writer has neither data nor an end.  If the wait reads a
 * byte, it is stored in *first. */
static gpul_status wait_for_writer(int fd, const char *path, int *first, gpul_error *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned char c;
	ssize_t got;

	if (poll(&p, 1, WRITER_MS) != 0)
		return GPUL_OK;
	got = read(fd, &c, 1); /* result 0: the pipe has no writer; EAGAIN: the writer has written nothing yet */
	if (got == 0)
		return gpul_fail(err, GPUL_ESYS, ENXIO, "%s is a pipe that no process writes to", path);
	if (got > 0)
		*first = c;
	return GPUL_OK;
}

/* Refuse a device without an end of file, such as /dev/zero; accept terminals and /dev/null, which have one. */
static gpul_status check_device(int fd, const char *path, gpul_error *err)
{
	char c;

	if (isatty(fd) || read(fd, &c, 1) == 0)
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, ENODEV, "%s is a device, not a file", path);
}

static gpul_status load_stream(int fd, const char *path, mode_t mode, gpul_file *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	int first = -1;

	if (S_ISCHR(mode) || S_ISBLK(mode))
		st = check_device(fd, path, err);
	else if (S_ISFIFO(mode))
		st = wait_for_writer(fd, path, &first, err);
	if (st)
		return st;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return read_stream(fd, path, first, out, err);
}

static gpul_status load_file(int fd, const char *path, bool regular, gpul_file *out, gpul_error *err)
{
	struct stat s;

	if (fstat(fd, &s) != 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(s.st_mode))
		return gpul_fail(err, GPUL_ESYS, EISDIR, "%s is a directory, not a file", path);
	if (regular && !S_ISREG(s.st_mode))
		return gpul_fail(err, GPUL_ESYS, EINVAL, "%s is not a regular file", path);
	if (!S_ISREG(s.st_mode))
		return load_stream(fd, path, s.st_mode, out, err);
	if (s.st_size == 0) /* files in /proc and /sys are regular with size 0, but have content */
		return read_stream(fd, path, -1, out, err);
	return (size_t)s.st_size < MAP_FROM_BYTES ? read_small(fd, path, (size_t)s.st_size, out, err)
						  : map_file(fd, path, (size_t)s.st_size, out, err);
}

static gpul_status open_file(const char *path, bool regular, gpul_file *out, gpul_error *err)
{
	/* O_NONBLOCK, because opening a pipe would otherwise wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	gpul_status st;

	if (fd < 0 && errno == ENOENT)
		return gpul_fail(err, GPUL_ESYS, ENOENT, "%s: no such file", path);
	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot open the file: %s", path, strerror(errno));
	st = load_file(fd, path, regular, out, err);
	if (st || !out->mapped)
		close(fd);
	return st;
}

/* Open standard input.  A regular file from which nothing has been read is mapped; any other input is read from here to its end. */
static gpul_status open_stdin(gpul_file *out, gpul_error *err)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	gpul_status st;

	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "stdin: %s", strerror(errno));
	st = lseek(fd, 0, SEEK_CUR) == 0 ? load_file(fd, "stdin", false, out, err) : read_stream(fd, "stdin", -1, out, err);
	if (st || !out->mapped)
		close(fd);
	return st;
}

gpul_status gpul_file_open(const char *path, gpul_file *out, gpul_error *err)
{
	return strcmp(path, "-") == 0 ? open_stdin(out, err) : open_file(path, false, out, err);
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
		gpul_file_guard_remove(f->guard);
		munmap((void *)(uintptr_t)f->bytes, f->mapped_bytes);
		close(f->fd);
	} else {
		free((void *)(uintptr_t)f->bytes);
	}
	*f = (gpul_file){ 0 };
}

gpul_status gpul_file_check(const gpul_file *f, const char *path, gpul_error *err)
{
	struct stat s;

	/* Compare the size, too: after a truncation, the rest of the last page reads as zeros without a SIGBUS. */
	if (f->mapped && (gpul_file_guard_tripped(f->guard) || fstat(f->fd, &s) || (size_t)s.st_size < f->n_bytes))
		return was_cut(path, f->n_bytes, err);
	return GPUL_OK;
}

/* Call madvise() for the pages that lie entirely inside the n_bytes at `at`, so that a release does not affect bytes around them.
 * The bytes in partial pages at both ends are loaded by page faults. */
static void advise_pages(const gpul_file *f, const void *at, size_t n_bytes, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)at, end = start + n_bytes;

	start = (start + page - 1) & ~(page - 1);
	end &= ~(page - 1);
	if (f->mapped && start < end)
		madvise((void *)start, end - start, advice);
}

void gpul_file_fetch(const gpul_file *f, const void *at, size_t n_bytes)
{
#ifdef MADV_POPULATE_READ /* Linux 5.14: loads all pages with one system call, without page faults */
	advise_pages(f, at, n_bytes, MADV_POPULATE_READ);
#else
	advise_pages(f, at, n_bytes, MADV_WILLNEED);
#endif
}

void gpul_file_release(const gpul_file *f, const void *at, size_t n_bytes)
{
	advise_pages(f, at, n_bytes, MADV_DONTNEED); /* loses no data: the mapping is private, and no page was modified */
}

bool gpul_file_read(const gpul_file *f, const void *at, size_t n_bytes, void *out)
{
	off_t offset = (const char *)at - (const char *)f->bytes;

	/* syscall() instead of pread(), which is a cancellation point and therefore 10 % slower. */
	return f->mapped && syscall(SYS_pread64, f->fd, out, n_bytes, offset) == (long)n_bytes;
}

const char *gpul_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
