/* sysfs.c — reads small files and resolves links below the root of sysfs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/nic/topology_internal.h"

/* Write the path root/fmt...; returns false if the path is too long. */
static bool format_path(char path[PATH_MAX], const char *root, const char *fmt, va_list args)
{
	int n = snprintf(path, PATH_MAX, "%s/", root), m;

	if (n < 0 || n >= PATH_MAX)
		return false;
	m = vsnprintf(path + n, (size_t)(PATH_MAX - n), fmt, args);
	return m >= 0 && m < PATH_MAX - n;
}

/* Read the first line of a file.  In a recorded copy of sysfs a file could be a named pipe: O_NONBLOCK prevents open() from
 * blocking on it. */
static bool read_line(const char *path, char *line, size_t line_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	line[0] = '\0';
	if (fd < 0)
		return false;
	n = read(fd, line, line_bytes - 1);
	close(fd);
	if (n < 0)
		n = 0;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	return n > 0;
}

bool gpul_sysfs_line(const char *root, char *line, size_t line_bytes, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	bool fits;

	line[0] = '\0';
	va_start(args, fmt);
	fits = format_path(path, root, fmt, args);
	va_end(args);
	return fits && read_line(path, line, line_bytes);
}

int gpul_sysfs_int(const char *root, int otherwise, const char *fmt, ...)
{
	char path[PATH_MAX], line[64], *end;
	va_list args;
	bool fits;
	long value;

	va_start(args, fmt);
	fits = format_path(path, root, fmt, args);
	va_end(args);
	if (!fits || !read_line(path, line, sizeof line))
		return otherwise;
	errno = 0;
	value = strtol(line, &end, 0);
	return end == line || errno || value < INT_MIN || value > INT_MAX ? otherwise : (int)value;
}

bool gpul_sysfs_resolve(const char *root, char resolved[PATH_MAX], const char *fmt, ...)
{
	char path[PATH_MAX], whole[PATH_MAX];
	size_t n_root = strlen(root);
	va_list args;
	bool fits;

	va_start(args, fmt);
	fits = format_path(path, root, fmt, args);
	va_end(args);
	if (!fits || !realpath(path, whole) || strncmp(whole, root, n_root) != 0 || whole[n_root] != '/')
		return false;
	memcpy(resolved, whole + n_root + 1, strlen(whole + n_root + 1) + 1);
	return true;
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* Compare names so that mlx5_2 comes before mlx5_10. */
static int by_version(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

bool gpul_sysfs_each(const char *root, gpul_sysfs_visit *visit, void *user, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct dirent **entries = NULL;
	bool goes_on = true, fits;
	va_list args;
	int n;

	va_start(args, fmt);
	fits = format_path(path, root, fmt, args);
	va_end(args);
	n = fits ? scandir(path, &entries, is_visible, by_version) : 0;
	for (int i = 0; i < n; i++) {
		goes_on = goes_on && visit(user, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return goes_on;
}
