/* place.c — finds the path of a socket, checks the folder of the sockets, and lists the names. */
#include "ipc/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/array.h"

static const char ending[] = ".sock";

static bool is_name(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return name[0] && name[0] != '.' && name[strspn(name, good)] == '\0';
}

/* Find the folder of the sockets.  With secure_getenv(), a set-uid program ignores the environment of the user who started it. */
static bool folder_path(char out[GPUL_IPC_PATH_BYTES])
{
	const char *ours = secure_getenv("GPULOAD_RUNTIME_DIR"), *session = secure_getenv("XDG_RUNTIME_DIR");
	int n;

	if (ours && ours[0])
		n = snprintf(out, GPUL_IPC_PATH_BYTES, "%s", ours);
	else if (session && session[0] == '/')
		n = snprintf(out, GPUL_IPC_PATH_BYTES, "%s/gpuload", session);
	else
		n = snprintf(out, GPUL_IPC_PATH_BYTES, "/tmp/gpuload-%u", (unsigned)geteuid());
	return n > 0 && n < GPUL_IPC_PATH_BYTES;
}

static gpul_status check_folder(int fd, const char *path, gpul_error *err)
{
	struct stat s;

	if (fstat(fd, &s))
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	if (s.st_uid != geteuid())
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s belongs to user %u, but this process is user %u: set "
				 "GPULOAD_RUNTIME_DIR to a folder of your own",
				 path, (unsigned)s.st_uid, (unsigned)geteuid());
	if (s.st_mode & 077)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s is accessible to other users (mode %03o, expected 700): chmod 700 %s", path,
				 (unsigned)s.st_mode & 0777, path);
	return GPUL_OK;
}

/* Open the folder and check that no other user can access it; GPUL_OK with *fd = -1: it does not exist. */
static gpul_status open_folder(const char *path, bool make, int *fd, gpul_error *err)
{
	gpul_status st;

	if (make && mkdir(path, 0700) && errno != EEXIST)
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create %s: %s", path, strerror(errno));
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0 && errno == ENOENT && !make)
		return GPUL_OK;
	if (*fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s is a symbolic link or not a folder, so it is not safe for sockets: remove it, or set "
				 "GPULOAD_RUNTIME_DIR",
				 path);
	if (*fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	st = check_folder(*fd, path, err);
	if (st) {
		close(*fd);
		*fd = -1;
	}
	return st;
}

gpul_status gpul_ipc_place(const char *name, bool make, char out[GPUL_IPC_PATH_BYTES], gpul_error *err)
{
	char folder[GPUL_IPC_PATH_BYTES], path[GPUL_IPC_PATH_BYTES];
	bool is_path = strchr(name, '/') != NULL;
	gpul_status st;
	int fd, n;

	if (!is_path && !is_name(name))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "invalid name '%.64s': expected letters, digits, '.', '_' and '-', not "
				 "starting with '.'",
				 name);
	if (!is_path && !folder_path(folder))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the path of the socket folder is too long: set GPULOAD_RUNTIME_DIR to a "
				 "shorter path");
	n = is_path ? snprintf(path, sizeof path, "%s", name) : snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
	if (n >= GPUL_IPC_PATH_BYTES)
		return gpul_fail(err, GPUL_EINVAL, n,
				 "the socket's path has %d bytes, but at most %d are allowed: use a shorter "
				 "name",
				 n, GPUL_IPC_PATH_BYTES - 1);
	if (!is_path) {
		st = open_folder(folder, make, &fd, err);
		if (st)
			return st;
		if (fd >= 0)
			close(fd);
	}
	memcpy(out, path, (size_t)n + 1);
	return GPUL_OK;
}

typedef GPUL_ARRAY(char *) names_array;

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Add the names in a folder, sorted; false: out of memory. */
static bool collect_names(DIR *folder, names_array *names)
{
	for (struct dirent *e; (e = readdir(folder));) {
		size_t n = strlen(e->d_name), n_ending = sizeof ending - 1;
		char **name;

		if (n <= n_ending || strcmp(e->d_name + n - n_ending, ending) != 0)
			continue;
		e->d_name[n - n_ending] = '\0';
		if (!is_name(e->d_name))
			continue;
		name = gpul_array_push(names);
		if (!name || !(*name = strdup(e->d_name)))
			return false;
	}
	if (names->n)
		qsort(names->at, names->n, sizeof *names->at, by_text);
	return true;
}

gpul_status gpul_ipc_places(char ***names, size_t *n_names, gpul_error *err)
{
	char path[GPUL_IPC_PATH_BYTES];
	names_array found = { 0 };
	gpul_status st;
	DIR *folder;
	bool all;
	int fd;

	if (!folder_path(path))
		return gpul_fail(err, GPUL_EINVAL, 0, "the path of the socket folder is too long");
	st = open_folder(path, false, &fd, err);
	if (st)
		return st;
	folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !folder) {
		close(fd);
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory while listing the folder %s", path);
	}
	all = !folder || collect_names(folder, &found);
	if (folder)
		closedir(folder);
	if (!all) {
		while (found.n)
			free(found.at[--found.n]);
		gpul_array_free(&found);
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory while reading the names in %s", path);
	}
	*names = found.at;
	*n_names = found.n;
	return GPUL_OK;
}
