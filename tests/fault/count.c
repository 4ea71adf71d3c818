/* count.c — count descriptors, mappings and names, by reading /proc and folders. */
#include "tests/fault/count.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/fault/ledger.h"

static bool is_number(const char *name)
{
	return isdigit((unsigned char)name[0]);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = -1; /* do not count the descriptor of /proc/self/fd itself */

	for (struct dirent *e; d && (e = readdir(d));)
		n += is_number(e->d_name);
	if (d)
		closedir(d);
	return n;
}

/* Parse a line of /proc/PID/maps; true: it has a file, whose device and inode are stored. */
static bool mapped_file(const char *line, unsigned long *device, unsigned long *inode, const char **name)
{
	unsigned major, minor;
	int at = 0;

	if (sscanf(line, "%*s %*s %*s %x:%x %lu %n", &major, &minor, inode, &at) < 3 || *inode == 0)
		return false;
	*device = makedev(major, minor);
	*name = line + at;
	return true;
}

static bool is_shared_memory(const char *name)
{
	return strncmp(name, "/memfd:", 7) == 0 || strncmp(name, "/dev/", 5) == 0 || strncmp(name, "/SYSV", 5) == 0;
}

static void count_maps(struct counts *c)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long device, inode;
	const char *name;
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		if (!mapped_file(line, &device, &inode, &name))
			continue;
		c->n_mapped_files++;
		c->n_shared += is_shared_memory(name);
	}
	free(line);
	if (f)
		fclose(f);
}

void counts_take(struct counts *out)
{
	*out = (struct counts){ .n_fds = count_fds(), .n_held = ledger_total() };
	count_maps(out);
}

/* List the targets of the open descriptors, shortened to fit. */
static void list_fds(char text[FAULT_TEXT])
{
	DIR *d = opendir("/proc/self/fd");

	for (struct dirent *e; d && (e = readdir(d));) {
		char path[300], target[80];
		size_t n = strlen(text);
		ssize_t got;

		snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
		got = readlink(path, target, sizeof target - 1);
		if (!is_number(e->d_name) || got < 0)
			continue;
		target[got] = '\0';
		snprintf(text + n, FAULT_TEXT - n, " %s", target);
	}
	if (d)
		closedir(d);
}

bool counts_same(const struct counts *before, char text[FAULT_TEXT])
{
	struct counts now;

	counts_take(&now);
	if (now.n_fds > before->n_fds) {
		snprintf(text, FAULT_TEXT, "%d descriptors instead of %d:", now.n_fds, before->n_fds);
		list_fds(text);
	} else if (now.n_shared > before->n_shared || now.n_mapped_files > before->n_mapped_files) {
		snprintf(text, FAULT_TEXT, "%d file mappings (%d of shared memory) instead of %d (%d)", now.n_mapped_files, now.n_shared,
			 before->n_mapped_files, before->n_shared);
	} else if (now.n_held > before->n_held) {
		snprintf(text, FAULT_TEXT, "%d driver objects instead of %d", now.n_held, before->n_held);
	} else {
		return true;
	}
	return false;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), e = strlen(end);

	return n > e && strcmp(name + n - e, end) == 0;
}

static bool shm_is_ours;

void names_private(void)
{
	shm_is_ours = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		      mount("gpuload-fault", "/dev/shm", "tmpfs", 0, NULL) == 0;
}

/* True when all names in the folder are allowed.  False: text has the first name that is not allowed. */
static bool all_names(const char *folder, bool allowed(const char *), char text[FAULT_TEXT])
{
	DIR *d = opendir(folder);
	bool clean = d != NULL;

	for (struct dirent *e; d && clean && (e = readdir(d));) {
		clean = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || allowed(e->d_name);
		if (!clean)
			snprintf(text, FAULT_TEXT, "%s/%s was left behind", folder, e->d_name);
	}
	if (d)
		closedir(d);
	return clean;
}

static bool is_socket_or_lock(const char *name)
{
	return ends_in(name, ".sock") || ends_in(name, ".lock");
}

static bool is_never_allowed(const char *name)
{
	(void)name;
	return false;
}

bool names_clean(const char *folder, char text[FAULT_TEXT])
{
	return all_names(folder, is_socket_or_lock, text) && (!shm_is_ours || all_names("/dev/shm", is_never_allowed, text));
}

static bool maps_file(const char *pid, dev_t device, ino_t inode)
{
	unsigned long dev, ino;
	const char *name;
	char path[300], *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%s/maps", pid);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &room, f) > 0)
		found = mapped_file(line, &dev, &ino, &name) && dev == device && ino == inode;
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool opens_file(const char *pid, dev_t device, ino_t inode)
{
	char path[300];
	bool found = false;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	d = opendir(path);
	for (struct dirent *e; d && !found && (e = readdir(d));) {
		struct stat s;

		found = is_number(e->d_name) && fstatat(dirfd(d), e->d_name, &s, 0) == 0 && s.st_dev == device && s.st_ino == inode;
	}
	if (d)
		closedir(d);
	return found;
}

int holders_of(dev_t device, ino_t inode)
{
	DIR *d = opendir("/proc");
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		if (is_number(e->d_name))
			n += opens_file(e->d_name, device, inode) || maps_file(e->d_name, device, inode);
	if (d)
		closedir(d);
	return n;
}
