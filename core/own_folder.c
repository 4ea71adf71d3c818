/* own_folder.c — finds the folder of this library with dladdr(). */
#include "core/own_folder.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gpul_own_folder(char *folder, size_t folder_bytes)
{
	static const char here; /* an address inside this library */
	char path[PATH_MAX];
	Dl_info info;
	char *slash;

	if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, path) || !strstr(info.dli_fname, ".so")) {
		/* For a program dli_fname is argv[0], which need not be a path. */
		ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

		if (n <= 0)
			return false;
		path[n] = '\0';
	}
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return snprintf(folder, folder_bytes, "%s", path) < (int)folder_bytes;
}
