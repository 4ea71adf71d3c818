/* new_file.c — write files through a nameless or temporary file; create folders. */
#include "cli/lib/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/io.h"

/* A file that is being written.  If the file system supports O_TMPFILE, the file has no name yet and disappears if the process is
 * killed; otherwise it has a temporary name. */
struct unfinished {
	int fd;
	bool named;
	char *temporary; /* owned; temporary name, used without O_TMPFILE and to replace an existing file */
};

static bool open_unfinished(const char *path, struct unfinished *f)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	f->fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
	f->named = f->fd < 0;
	free(folder);
	if (f->named)
		f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return f->fd >= 0;
}

/* Give the file a name; linkat() fails if the name exists. */
static bool link_as(const struct unfinished *f, const char *path)
{
	char self[32];

	snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, f->named ? f->temporary : self, AT_FDCWD, path, f->named ? 0 : AT_SYMLINK_FOLLOW) == 0;
}

/* Give the complete file its final name.  On a file system without hard links, check that the name is free, then rename the file. */
static bool give_name(struct unfinished *f, const char *path, bool replace)
{
	/* Network file systems transfer the bytes when a descriptor is closed, and only then report a full disk, so close a duplicate. */
	int copy = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	struct stat there;

	if (copy >= 0 && close(copy))
		return false;
	if (!replace && link_as(f, path))
		return true;
	if (!replace && (errno == EEXIST || lstat(path, &there) == 0)) {
		errno = EEXIST;
		return false;
	}
	if (!f->named) {
		unlink(f->temporary); /* remove a file that a killed process with the same pid may have left */
		f->named = link_as(f, f->temporary);
	}
	return f->named && rename(f->temporary, path) == 0;
}

static gpul_status fail_write(const char *path, int error, gpul_error *err)
{
	if (error == EEXIST)
		return gpul_fail(err, GPUL_ESYS, error, "%s already exists; --force replaces it", path);
	return gpul_fail(err, GPUL_ESYS, error, "%s: cannot be written: %s", path, strerror(error));
}

/* True for a device or a pipe: the bytes are written to it, because a file must not replace it. */
static bool is_device_or_pipe(const char *path)
{
	struct stat there;

	return stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
}

/* If the path is "-", write to stdout.  If that fails, main.c reports the failure, unless the reader has closed the pipe. */
static bool write_to_stdout(const char *path, const void *head, size_t n_head, const void *bytes, size_t n_bytes)
{
	if (strcmp(path, "-") != 0)
		return false;
	if (n_head)
		fwrite(head, 1, n_head, stdout);
	if (n_bytes)
		fwrite(bytes, 1, n_bytes, stdout);
	return true;
}

gpul_status file_overwrite(const char *path, const void *head, size_t n_head, const void *bytes, size_t n_bytes, gpul_error *err)
{
	int fd, error;
	bool ok;

	if (write_to_stdout(path, head, n_head, bytes, n_bytes))
		return GPUL_OK;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ok = fd >= 0 && gpul_write_all(fd, head, n_head) && gpul_write_all(fd, bytes, n_bytes);
	error = errno;
	if (fd >= 0 && close(fd) && ok) {
		ok = false;
		error = errno;
	}
	return ok ? GPUL_OK : fail_write(path, error, err);
}

gpul_status new_file_write(const char *path, const void *head, size_t n_head, const void *bytes, size_t n_bytes, bool replace,
			   gpul_error *err)
{
	gpul_status st = GPUL_OK;
	struct unfinished f = { .fd = -1 };

	if (write_to_stdout(path, head, n_head, bytes, n_bytes))
		return GPUL_OK;
	if (replace && is_device_or_pipe(path))
		return file_overwrite(path, head, n_head, bytes, n_bytes, err);
	if (asprintf(&f.temporary, "%s.%ld.part", path, (long)getpid()) < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a file name");
	if (!open_unfinished(path, &f)) {
		st = fail_write(path, errno, err);
		goto free_name;
	}
	if (!gpul_write_all(f.fd, head, n_head) || !gpul_write_all(f.fd, bytes, n_bytes) || !give_name(&f, path, replace))
		st = fail_write(path, errno, err);
	if (f.named)
		unlink(f.temporary); /* after a successful rename there is no such file, and unlink() has no effect */
	close(f.fd);
free_name:
	free(f.temporary);
	return st;
}

gpul_status new_folder(const char *path, gpul_error *err)
{
	char *part = strdup(path);
	gpul_status st = GPUL_OK;
	struct stat there;

	if (!part)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a folder name");
	for (char *p = part + 1; *part && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(part, 0777); /* errors are ignored: if this folder could not be created, mkdir(path) below fails */
		*p = '/';
	}
	free(part);
	if (mkdir(path, 0777) && errno != EEXIST)
		st = gpul_fail(err, GPUL_ESYS, errno, "%s: cannot be created: %s", path, strerror(errno));
	else if (stat(path, &there) || !S_ISDIR(there.st_mode))
		st = gpul_fail(err, GPUL_ESYS, ENOTDIR, "%s is not a folder", path);
	return st;
}
