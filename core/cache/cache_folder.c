/* cache_folder.c — finds the cache's folder, lists its files, and keeps them within the size limit.
 *
 * Several processes may do this at the same time, so a file that another process has removed is not an error. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/log.h"
#include "core/cache/cache_internal.h"

#define DEFAULT_BOUND_BYTES (UINT64_C(256) << 20)
#define MAX_WRITING_S       60 /* after this time, a temporary file counts as left by a killed process */

/* ---- the folder -------------------------------------------------------------------------- */

static bool no_folder(gpul_cache_where *w, const char *why)
{
	*w->folder = 0;
	snprintf(w->why_not, sizeof w->why_not, "%s", why);
	return false;
}

/* Return the path, or NULL if it is empty or relative, as the XDG specification requires. */
static const char *absolute(const char *path)
{
	return path && *path == '/' ? path : NULL;
}

static bool choose_folder(gpul_cache_where *w)
{
	const char *own = secure_getenv("GPULOAD_CACHE");
	const char *xdg = absolute(secure_getenv("XDG_CACHE_HOME"));
	const char *home = absolute(secure_getenv("HOME"));
	int n;

	*w->why_not = 0;
	if (own && !strcmp(own, "off"))
		return no_folder(w, "GPULOAD_CACHE is off");
	if (own && *own)
		n = snprintf(w->folder, sizeof w->folder, "%s", own);
	else if (xdg)
		n = snprintf(w->folder, sizeof w->folder, "%s/gpuload", xdg);
	else if (home)
		n = snprintf(w->folder, sizeof w->folder, "%s/.cache/gpuload", home);
	else
		return no_folder(w, "neither XDG_CACHE_HOME nor HOME is an absolute path");
	if (n < 0 || (size_t)n >= sizeof w->folder)
		return no_folder(w, "the path of the cache's folder is too long");
	return true;
}

/* Create the folder and its parents with mode 0700, as the XDG specification requires. */
static void make_folders(const char *folder)
{
	char path[PATH_MAX + 1];

	snprintf(path, sizeof path, "%s", folder);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
}

int gpul_cache_open(bool create, gpul_cache_where *w)
{
	struct stat st;
	int fd;

	if (!choose_folder(w))
		return -1;
	fd = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		if (!create)
			return -1;
		make_folders(w->folder);
		fd = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0) {
		snprintf(w->why_not, sizeof w->why_not, "the cache's folder cannot be opened: %s", strerror(errno));
		return -1;
	}
	/* If other users could write to the folder, they could store code that this user would run. */
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH))) {
		close(fd);
		snprintf(w->why_not, sizeof w->why_not,
			 "other users may write to the cache's folder: it must belong to you and have mode 0700");
		return -1;
	}
	return fd;
}

/* Read GPULOAD_CACHE_MAX_BYTES: a number, optionally followed by K, M or G. */
uint64_t gpul_cache_bound(void)
{
	const char *text = secure_getenv("GPULOAD_CACHE_MAX_BYTES");
	char *end;
	unsigned shift = 0;

	if (!text || *text < '0' || *text > '9')
		return DEFAULT_BOUND_BYTES;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (*end && strchr("KMG", *end))
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
	if (*end || errno || n > UINT64_MAX >> shift) {
		gpul_log(GPUL_LOG_INFO, "cache", "GPULOAD_CACHE_MAX_BYTES=%s is not a number of bytes", text);
		return DEFAULT_BOUND_BYTES;
	}
	return (uint64_t)n << shift;
}

/* ---- listing and removing files ---------------------------------------------------------- */

struct entry {
	char name[CACHE_NAME_BYTES];
	uint64_t bytes;
	struct timespec used;
};

typedef struct listing {
	GPUL_ARRAY(struct entry) entries;
	uint64_t bytes; /* total size of all files, including temporary files */
} listing;

static bool is_hex(const char *text, size_t n)
{
	return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

static DIR *open_dir(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

static void list_results(int folder, const char *sub, listing *l)
{
	DIR *d = open_dir(folder, sub);

	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;

		if (!is_hex(e->d_name, CACHE_NAME_BYTES - 4) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		struct entry *row = gpul_array_push(&l->entries);
		if (!row)
			break;
		snprintf(row->name, sizeof row->name, "%.2s/%.62s", sub, e->d_name);
		row->bytes = (uint64_t)st.st_size;
		row->used = st.st_mtim;
		l->bytes += row->bytes;
	}
	if (d)
		closedir(d);
}

/* Count a temporary file, or remove it if it is older than MAX_WRITING_S, because its writer was killed. */
static void list_temporary(int folder, const char *name, listing *l)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (time(NULL) - st.st_mtime > MAX_WRITING_S && !unlinkat(folder, name, 0))
		return;
	l->bytes += (uint64_t)st.st_size;
}

static void list_all(int folder, listing *l)
{
	DIR *d = open_dir(folder, ".");

	for (struct dirent *e; d && (e = readdir(d));) {
		if (!strncmp(e->d_name, CACHE_NEW, strlen(CACHE_NEW)))
			list_temporary(folder, e->d_name, l);
		else if (is_hex(e->d_name, 2))
			list_results(folder, e->d_name, l);
	}
	if (d)
		closedir(d);
}

static int by_last_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used;
	const struct timespec *y = &((const struct entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

void gpul_cache_trim(int folder, uint64_t bound_bytes, uint64_t *n_results, uint64_t *bytes)
{
	listing l = { 0 };
	size_t n_gone = 0;

	list_all(folder, &l);
	if (l.bytes > bound_bytes && l.entries.n)
		qsort(l.entries.at, l.entries.n, sizeof *l.entries.at, by_last_use);
	for (; l.bytes > bound_bytes && n_gone < l.entries.n; n_gone++) {
		const struct entry *e = &l.entries.at[n_gone];

		gpul_log(GPUL_LOG_DEBUG, "cache", "removed %s, least recently used", e->name);
		unlinkat(folder, e->name, 0);
		l.bytes -= e->bytes;
	}
	if (n_results)
		*n_results = l.entries.n - n_gone;
	if (bytes)
		*bytes = l.bytes;
	gpul_array_free(&l.entries);
}

/* ---- query and clear --------------------------------------------------------------------- */

void gpul_cache_query(gpul_cache_status *out)
{
	gpul_cache_where w;
	int folder = gpul_cache_open(false, &w);

	*out = (gpul_cache_status){ .bound_bytes = gpul_cache_bound() };
	memcpy(out->folder, w.folder, sizeof w.folder);
	memcpy(out->why_not, w.why_not, sizeof w.why_not);
	if (folder < 0)
		return;
	gpul_cache_trim(folder, UINT64_MAX, &out->n_results, &out->bytes);
	close(folder);
}

gpul_status gpul_cache_clear(uint64_t *n_removed, gpul_error *err)
{
	gpul_cache_where w;
	int folder = gpul_cache_open(false, &w);
	listing l = { 0 };
	gpul_status st = GPUL_OK;

	*n_removed = 0;
	if (folder < 0)
		return GPUL_OK;
	list_all(folder, &l);
	for (size_t i = 0; i < l.entries.n; i++) {
		char *name = l.entries.at[i].name;

		if (!unlinkat(folder, name, 0))
			++*n_removed;
		else if (errno != ENOENT && !st)
			st = gpul_fail(err, GPUL_ESYS, errno, "%.100s/%s: %s", w.folder, name, strerror(errno));
		name[2] = 0;
		unlinkat(folder, name, AT_REMOVEDIR); /* succeeds only if the folder is now empty */
	}
	gpul_array_free(&l.entries);
	close(folder);
	return st;
}
