/* new_file.c — see new_file.h. */
#include "cli/lib/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/io.h"

/* Network file systems write when a file is closed, and tell then of a full disk; closing a
 * copy is enough. */
static bool flush_to_server(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 || close(copy) == 0;
}

/* A file being written.  Where the file system can (O_TMPFILE), it has no name yet, and goes
 * with the process if that is killed; elsewhere it is called temporary. */
struct unborn {
	int fd;
	bool named;
	char *temporary; /* owned: the name it has, or passes through to replace a file */
};

static bool open_unborn(const char *path, struct unborn *f)
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

/* The finished file gets a name.  linkat() never replaces. */
static bool link_as(const struct unborn *f, const char *path)
{
	char self[32];

	snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, f->named ? f->temporary : self, AT_FDCWD, path,
		      f->named ? 0 : AT_SYMLINK_FOLLOW) == 0;
}

/* Give it its own name.  A file system without links gets a look and a rename. */
static bool give_name(struct unborn *f, const char *path, bool replace)
{
	struct stat there;

	if (!replace && link_as(f, path))
		return true;
	if (!replace && (errno == EEXIST || lstat(path, &there) == 0)) {
		errno = EEXIST;
		return false;
	}
	if (!f->named) {
		unlink(f->temporary); /* of a process of this pid that was killed here */
		f->named = link_as(f, f->temporary);
	}
	return f->named && rename(f->temporary, path) == 0;
}

static gpul_status fail_write(const char *path, int error, gpul_error *err)
{
	if (error == EEXIST)
		return gpul_fail(err, GPUL_ESYS, error,
				 "%s is there already; --force replaces it", path);
	return gpul_fail(err, GPUL_ESYS, error, "%s: cannot be written: %s", path,
			 strerror(error));
}

/* A device, a pipe: there is nothing to be renamed over it, what is there takes the bytes. */
static bool is_device_or_pipe(const char *path)
{
	struct stat there;

	return stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
}

gpul_status file_overwrite(const char *path, const void *head, size_t n_head, const void *bytes, size_t n_bytes,
			   gpul_error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bool ok = fd >= 0 && gpul_write_all(fd, head, n_head) && gpul_write_all(fd, bytes, n_bytes);
	int error = errno;

	if (fd >= 0 && close(fd) && ok) {
		ok = false;
		error = errno;
	}
	return ok ? GPUL_OK : fail_write(path, error, err);
}

gpul_status new_file_write(const char *path, const void *head, size_t n_head, const void *bytes,
			   size_t n_bytes, bool replace, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	struct unborn f = { .fd = -1 };

	if (replace && is_device_or_pipe(path))
		return file_overwrite(path, head, n_head, bytes, n_bytes, err);
	if (asprintf(&f.temporary, "%s.%ld.part", path, (long)getpid()) < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a file name");
	if (!open_unborn(path, &f)) {
		st = fail_write(path, errno, err);
		goto free_name;
	}
	if (!gpul_write_all(f.fd, head, n_head) || !gpul_write_all(f.fd, bytes, n_bytes) ||
	    !flush_to_server(f.fd) || !give_name(&f, path, replace))
		st = fail_write(path, errno, err);
	if (f.named)
		unlink(f.temporary); /* after a rename it is not there any more */
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
		mkdir(part, 0777); /* if it fails and matters, the last one fails, too */
		*p = '/';
	}
	free(part);
	if (mkdir(path, 0777) && errno != EEXIST)
		st = gpul_fail(err, GPUL_ESYS, errno, "%s: cannot be made: %s", path,
			       strerror(errno));
	else if (stat(path, &there) || !S_ISDIR(there.st_mode))
		st = gpul_fail(err, GPUL_ESYS, ENOTDIR, "%s is no folder", path);
	return st;
}
