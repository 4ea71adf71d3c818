/* new_file.c — see new_file.h. */
#include "cli/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

/* Give the finished file its name.  link() is what POSIX has that never replaces; a file system
 * without it gets a look and a rename. */
static bool give_name(const char *temporary, const char *path, bool replace)
{
	struct stat there;

	if (replace)
		return rename(temporary, path) == 0;
	if (link(temporary, path) == 0) {
		unlink(temporary);
		return true;
	}
	if (errno == EEXIST)
		return false;
	if (lstat(path, &there) == 0) {
		errno = EEXIST;
		return false;
	}
	return rename(temporary, path) == 0;
}

static gpul_status failed(const char *path, int error, gpul_error *err)
{
	if (error == EEXIST)
		return gpul_fail(err, GPUL_ESYS, error, "%s is there already; --force replaces it",
				 path);
	return gpul_fail(err, GPUL_ESYS, error, "%s: cannot be written: %s", path,
			 strerror(error));
}

gpul_status new_file_write(const char *path, const void *head, size_t n_head, const void *bytes,
			   size_t n_bytes, bool replace, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	char *temporary = NULL;
	bool written;
	int fd;

	if (asprintf(&temporary, "%s.%ld.part", path, (long)getpid()) < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a file name");
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) {
		st = failed(path, errno, err);
		goto free_name;
	}
	written = write_all(fd, head, n_head) && write_all(fd, bytes, n_bytes);
	if (!written)
		st = failed(path, errno, err);
	if (close(fd) && written) /* some file systems tell of a full disk only now */
		st = failed(path, errno, err);
	if (st == GPUL_OK && !give_name(temporary, path, replace))
		st = failed(path, errno, err);
	if (st)
		unlink(temporary);
free_name:
	free(temporary);
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
