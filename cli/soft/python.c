/* python.c — finds the folder in which a command's Python keeps its packages.
 *
 *     pytest ── PATH ──> /venv/bin/pytest ── "#!/venv/bin/python3" ──> /venv/lib/python3.N/site-packages ──> nvidia/cu13 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/soft/soft_internal.h"

/* Find the path of the file that execvp() would run. */
static bool find_program(const char *command, char path[PATH_MAX])
{
	const char *list = secure_getenv("PATH");

	if (strchr(command, '/'))
		return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX;
	while (list && *list) {
		size_t n = strcspn(list, ":");

		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)n, list, command) < PATH_MAX && !access(path, X_OK))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

/* Replace the path of a script by that of its interpreter; `#!/usr/bin/env python3` is searched for in PATH. */
static void follow_script(char path[PATH_MAX])
{
	char line[PATH_MAX] = "", *word, *end;
	FILE *f = fopen(path, "r");

	if (f) {
		if (!fgets(line, sizeof line, f))
			*line = '\0';
		fclose(f);
	}
	if (strncmp(line, "#!", 2))
		return;
	word = line + 2 + strspn(line + 2, " ");
	end = word + strcspn(word, " \n");
	if (!strncmp(word, "/usr/bin/env ", 13)) {
		word = end + 1;
		word[strcspn(word, " \n")] = '\0';
		find_program(word, path);
	} else {
		*end = '\0';
		snprintf(path, PATH_MAX, "%s", word);
	}
}

/* Find the last path, in alphabetical order, that matches a pattern. */
static bool find_last(const char *pattern, char path[PATH_MAX])
{
	glob_t hits;
	bool ok;

	if (glob(pattern, 0, NULL, &hits))
		return false;
	ok = snprintf(path, PATH_MAX, "%s", hits.gl_pathv[hits.gl_pathc - 1]) < PATH_MAX;
	globfree(&hits);
	return ok;
}

bool soft_find_packages(const char *command, char site_packages[PATH_MAX])
{
	char path[PATH_MAX], pattern[PATH_MAX + 64], *slash;

	if (!command || !find_program(command, path))
		return false;
	follow_script(path);
	slash = strrchr(path, '/');
	if (!slash || strncmp(slash + 1, "python", 6) || slash == path)
		return false;
	*slash = '\0'; /* without realpath(), because the python3 of a virtual environment is a link to the system's python3 */
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	*slash = '\0';
	snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages", path);
	return find_last(pattern, site_packages);
}

bool soft_find_toolkit(const char *site_packages, char folder[PATH_MAX])
{
	static const char *const folders[] = { "cu13", "cu12", "cuda_nvcc", "cuda_nvrtc" };
	struct stat st;

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (snprintf(folder, PATH_MAX, "%s/nvidia/%s", site_packages, folders[i]) < PATH_MAX && !stat(folder, &st))
			return true;
	*folder = '\0';
	return false;
}
