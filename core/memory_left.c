/* memory_left.c — reads the memory limits of the machine and of control groups. */
#include "core/memory_left.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKED_BYTES = 4 << 20 };
#define NO_LIMIT (UINT64_MAX / 4) /* cgroup v1 reports "no limit" as a number near 2^63 */

/* The names of the files of a memory control group, in versions 1 and 2 of control groups. */
static const struct version {
	const char *filesystem, *limit, *used, *freeable;
	const char *swap_limit, *swap_used;
	bool swap_has_memory; /* true: the swap files count memory and swap together */
} versions[] = {
	{ "cgroup2", "memory.max", "memory.current", "inactive_file", "memory.swap.max", "memory.swap.current", false },
	{ "cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "memory.memsw.limit_in_bytes",
	  "memory.memsw.usage_in_bytes", true },
};
enum { N_VERSIONS = sizeof versions / sizeof *versions };

/* ---- reading small files ---------------------------------------------------------------------- */

static FILE *open_file(const char *folder, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", folder, name);

	return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* Read a file that contains one number; the text "max" and huge numbers give NO_LIMIT.  Returns false if there is no such file. */
static bool read_number(const char *folder, const char *name, uint64_t *out)
{
	FILE *f = open_file(folder, name);
	char text[32] = "";
	bool found = f && fgets(text, sizeof text, f) && *text;

	if (f)
		fclose(f);
	*out = found ? strtoull(text, NULL, 10) : 0;
	if (strncmp(text, "max", 3) == 0 || *out > NO_LIMIT)
		*out = NO_LIMIT;
	return found;
}

/* Read the numbers that follow n names at line starts, as in "inactive_file 4096" and
 * "MemAvailable: 12 kB", in the order of the lines; 0: no such line. */
static void read_fields(const char *folder, const char *name, const char *const *fields, size_t n, uint64_t *values)
{
	FILE *f = open_file(folder, name);
	char line[256];
	size_t k = 0;

	memset(values, 0, n * sizeof *values);
	while (f && k < n && fgets(line, sizeof line, f)) {
		size_t end = strcspn(line, " :");

		if (strlen(fields[k]) == end && strncmp(line, fields[k], end) == 0)
			values[k++] = strtoull(line + end + 1, NULL, 10);
	}
	if (f)
		fclose(f);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- one control group ------------------------------------------------------------------------ */

/* Return how much swap a control group may still use; NO_LIMIT: as much as the machine has. */
static uint64_t swap_left(const struct version *v, const char *folder, uint64_t memory_left)
{
	uint64_t limit, used;

	if (!read_number(folder, v->swap_limit, &limit) || limit == NO_LIMIT)
		return NO_LIMIT;
	(void)read_number(folder, v->swap_used, &used);
	return less(less(limit, used), v->swap_has_memory ? memory_left : 0);
}

/* If less memory is left in the control group of this folder than in the one in *out, store it in *out.  swap_bytes: free swap of
 * the machine. */
static void consider_group(const struct version *v, const char *root, const char *folder, uint64_t swap_bytes, gpul_memory_left *out)
{
	uint64_t limit, counted, freeable, used, left;
	char where[PATH_MAX];
	size_t n;

	if (!read_number(folder, v->limit, &limit) || limit == NO_LIMIT)
		return;
	(void)read_number(folder, v->used, &counted);
	if (less(limit, counted) >= out->left_bytes)
		return; /* return before memory.stat is read, because reading it takes long */
	read_fields(folder, "memory.stat", &v->freeable, 1, &freeable);
	used = less(counted, freeable);
	left = less(limit, used) + smaller(swap_bytes, swap_left(v, folder, less(limit, counted)));
	if (left >= out->left_bytes)
		return;
	*out = (gpul_memory_left){ .left_bytes = left, .limit_bytes = limit, .used_bytes = used };
	n = (size_t)snprintf(where, sizeof where, "%s/%s", folder + strlen(root), v->limit);
	n = n < sizeof where ? n : sizeof where - 1;
	memcpy(out->where, n < sizeof out->where ? where : where + n - (sizeof out->where - 1),
	       (n < sizeof out->where ? n : sizeof out->where - 1) + 1);
}

/* ---- the control groups that contain the process ------------------------------------------------ */

/* True if text is an element of a list such as "rw,memory". */
static bool list_has(const char *list, const char *text)
{
	size_t n = strlen(text);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strncmp(list, text, n) == 0 && strchr(",\n", list[n]))
			return true;
	return false;
}

/* Find the path of the process's memory control group below the root of its hierarchy, from a line such as "4:memory:/docker/ab" or
 * "0::/ab". */
static bool own_group(const struct version *v, const char *root, char path[PATH_MAX])
{
	FILE *f = open_file(root, "proc/self/cgroup");
	char line[PATH_MAX + 64];
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f)) {
		char *controllers = strchr(line, ':'), *at = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!at)
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		found = v->swap_has_memory ? list_has(controllers + 1, "memory") : !controllers[1];
		snprintf(path, PATH_MAX, "%s", at);
	}
	if (f)
		fclose(f);
	return found;
}

/* Consider the control group and all its ancestors, up to the mount point.  In a container, the mount may show only a part of the
 * hierarchy: if the path does not begin with the root of this part, the mount point is the process's own group. */
static void consider_ancestors(const struct version *v, const char *root, const char *mount_point, const char *mount_root, const char *path,
			       uint64_t swap_bytes, gpul_memory_left *out)
{
	char folder[2 * PATH_MAX];
	size_t n_root = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root), n_mount;

	if (strncmp(path, mount_root, n_root) != 0 || !strchr("/", path[n_root]) || strstr(path, "/.."))
		path = "/", n_root = 0;
	n_mount = (size_t)snprintf(folder, sizeof folder, "%s%s", root, mount_point);
	snprintf(folder + n_mount, sizeof folder - n_mount, "%s", path + n_root);
	for (size_t n = strlen(folder); n >= n_mount; n--) {
		if (folder[n] && folder[n] != '/')
			continue;
		folder[n] = '\0';
		consider_group(v, root, folder, swap_bytes, out);
	}
}

/* Return the version of control groups whose memory hierarchy is mounted by a line of /proc/self/mountinfo; N_VERSIONS: none. */
static size_t version_of(const char *line)
{
	char type[32], options[256] = "";
	const char *behind = strstr(line, " - cgroup");

	if (!behind || sscanf(behind, " - %31s %*s %255s", type, options) < 1)
		return N_VERSIONS;
	for (size_t i = 0; i < N_VERSIONS; i++)
		if (strcmp(type, versions[i].filesystem) == 0 && (!versions[i].swap_has_memory || list_has(options, "memory")))
			return i;
	return N_VERSIONS;
}

/* Find the mounts of control groups in /proc/self/mountinfo, in lines such as "35 31 0:32 /docker/ab /sys/fs/cgroup/memory
 * rw,nosuid - cgroup cgroup rw,memory". */
static void consider_mounts(const char *root, uint64_t swap_bytes, gpul_memory_left *out)
{
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	FILE *f = open_file(root, "proc/self/mountinfo");

	while (f && getline(&line, &room, f) > 0) {
		char mount_root[PATH_MAX], mount_point[PATH_MAX];
		size_t v = version_of(line);

		if (v < N_VERSIONS && own_group(&versions[v], root, path) &&
		    sscanf(line, "%*s %*s %*s %4095s %4095s", mount_root, mount_point) == 2)
			consider_ancestors(&versions[v], root, mount_point, mount_root, path, swap_bytes, out);
	}
	free(line);
	if (f)
		fclose(f);
}

bool gpul_memory_find_left(const char *root, gpul_memory_left *out)
{
	char folder[PATH_MAX];
	uint64_t kib[3]; /* the values, in the order of the lines in /proc/meminfo */
	const uint64_t *const total_kib = &kib[0], *const free_kib = &kib[1], *const swap_kib = &kib[2];

	*out = (gpul_memory_left){ .left_bytes = UINT64_MAX };
	read_fields(root, "proc/meminfo", (const char *const[]){ "MemTotal", "MemAvailable", "SwapFree" }, 3, kib);
	if (*free_kib)
		*out = (gpul_memory_left){ .left_bytes = (*free_kib + *swap_kib) << 10,
					   .limit_bytes = *total_kib << 10,
					   .used_bytes = less(*total_kib, *free_kib) << 10,
					   .is_machine = true,
					   .where = "/proc/meminfo" };
	consider_mounts(root, *swap_kib << 10, out);
	/* if /proc hides the mounts, the control group of a container is usually mounted here */
	snprintf(folder, sizeof folder, "%s/sys/fs/cgroup", root);
	consider_group(&versions[0], root, folder, *swap_kib << 10, out);
	return out->left_bytes != UINT64_MAX;
}

gpul_status gpul_memory_check(const char *what, size_t bytes, gpul_error *err)
{
	gpul_memory_left m;

	if (bytes < CHECKED_BYTES || !gpul_memory_find_left("", &m) || bytes <= m.left_bytes)
		return GPUL_OK;
	if (m.is_machine)
		return gpul_fail(err, GPUL_ENOMEM, ENOMEM,
				 "%s: %zu bytes were requested, but this machine has only %" PRIu64 " bytes available", what, bytes,
				 m.left_bytes);
	return gpul_fail(err, GPUL_ENOMEM, ENOMEM,
			 "%s: %zu bytes were requested, but this process has a memory limit of %" PRIu64 " bytes, of which %" PRIu64
			 " bytes are in use: %s",
			 what, bytes, m.limit_bytes, m.used_bytes, m.where);
}
