/* orphans.c — kills the processes that ranks started and did not wait for.
 *
 * As the "child subreaper" of its descendants, this process becomes the parent of every process whose parent has ended. */
#include "comm/bootstrap/launch/launch_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/array.h"

/* Find the parent of a process; 0: unknown.  The name in /proc/PID/stat may contain any character, so the fields are read after the
 * last ')'. */
static pid_t parent_of(const char *pid)
{
	char path[64], text[512], *end;
	FILE *f;
	size_t n;
	int parent = 0;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
		return 0;
	return parent;
}

static void each_child(void (*found)(struct orphans *o, pid_t child), struct orphans *o)
{
	DIR *d = opendir("/proc");

	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && parent_of(e->d_name) == getpid())
			found(o, pid);
	}
	if (d)
		closedir(d);
}

static void remember_child(struct orphans *o, pid_t child)
{
	if (gpul_array_reserve(&o->known, o->n_known, &o->room, sizeof *o->known))
		o->known[o->n_known++] = child;
}

static bool is_known(const struct orphans *o, pid_t child)
{
	for (size_t i = 0; i < o->n_known; i++)
		if (o->known[i] == child)
			return true;
	return false;
}

static void kill_child(struct orphans *o, pid_t child)
{
	if (is_known(o, child))
		return;
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	o->n_killed++;
}

void gpul_launch_adopt(struct orphans *o)
{
	*o = (struct orphans){ 0 };
	(void)prctl(PR_GET_CHILD_SUBREAPER, &o->was_subreaper);
	each_child(remember_child, o);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void gpul_launch_end_orphans(struct orphans *o)
{
	/* The children of a killed process become children of this process, and are killed in the next round. */
	do {
		o->n_killed = 0;
		each_child(kill_child, o);
	} while (o->n_killed);
	(void)prctl(PR_SET_CHILD_SUBREAPER, o->was_subreaper);
	free(o->known);
}
