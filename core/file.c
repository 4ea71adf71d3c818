/* file.c — map regular files, read others. */
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
static const uint64_t MAX_STREAM_BYTES = (uint64_t)4 << 30;  /* limit for streams without an end, such as /dev/zero */

static gpul_status no_memory(const char *path, gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, ENOMEM, "%s: out of memory", path);
}

/* A NUL must follow the bytes.  If the size is a multiple of the page size, the NUL needs one more page: reserve zeroed
 * pages for the file and the NUL, then map the file over the first pages. */
static gpul_status map_file(int fd, const char *path, size_t n_bytes, gpul_file *out,
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
		return gpul_fail(err, GPUL_ESYS, why, "%s: cannot map the file: %s", path,
				 strerror(why));
	}
	*out = (gpul_file){
		.bytes = base, .n_bytes = n_bytes, .mapped = true, .mapped_bytes = room, .fd = fd
	};
	return GPUL_OK;
}

static gpul_status read_stream(int fd, const char *path, gpul_file *out, gpul_error *err)
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
			return gpul_fail(err, GPUL_ESYS, why, "%s: cannot read the file: %s", path,
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

static gpul_status load_file(int fd, const char *path, bool regular, gpul_file *out, gpul_error *err)
{
	struct stat s;

	if (fstat(fd, &s) != 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(s.st_mode))
		return gpul_fail(err, GPUL_ESYS, EISDIR, "%s is a directory, not a file", path);
	if (regular && !S_ISREG(s.st_mode))
		return gpul_fail(err, GPUL_ESYS, EINVAL, "%s is not a regular file", path);
	/* Files in /proc and /sys are regular with size 0, but have content. */
	if (!S_ISREG(s.st_mode) || s.st_size == 0)
		return read_stream(fd, path, out, err);
	return map_file(fd, path, (size_t)s.st_size, out, err);
}

static gpul_status open_file(const char *path, bool regular, gpul_file *out, gpul_error *err)
{
	/* Without O_NONBLOCK, opening a pipe waits for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK | O_NOCTTY : 0));
	gpul_status st;

	if (fd < 0 && errno == ENOENT)
		return gpul_fail(err, GPUL_ESYS, ENOENT, "%s: no such file", path);
	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot open the file: %s", path,
				 strerror(errno));
	st = load_file(fd, path, regular, out, err);
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

/* Call madvise() for the pages that are entirely inside the n_bytes at `at`, because a release must not affect the
 * bytes around them.  Page faults load the bytes in the other pages. */
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
#ifdef MADV_POPULATE_READ /* Linux 5.14: populates all pages at once, without page faults */
	advise_pages(f, at, n_bytes, MADV_POPULATE_READ);
#else
	advise_pages(f, at, n_bytes, MADV_WILLNEED);
#endif
}

void gpul_file_release(const gpul_file *f, const void *at, size_t n_bytes)
{
	advise_pages(f, at, n_bytes, MADV_DONTNEED); /* loses no data: the mapping is private and unmodified */
}

bool gpul_file_read(const gpul_file *f, const void *at, size_t n_bytes, void *out)
{
	off_t offset = (const char *)at - (const char *)f->bytes;

	/* Not pread(): it is a cancellation point, which makes it 10 % slower. */
	return f->mapped && syscall(SYS_pread64, f->fd, out, n_bytes, offset) == (long)n_bytes;
}
