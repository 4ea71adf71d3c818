/* search.c — where the software driver may be. */
#include "driver/driver_internal.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef GPUL_LIBDIR
#define GPUL_LIBDIR "/usr/local/lib/gpuload"
#endif

static bool add(char *paths[], int *n, const char *folder, const char *below)
{
	return *n < GPUL_MAX_CANDIDATES && asprintf(&paths[*n], "%s%s", folder, below) >= 0 &&
	       ++*n;
}

/* The folder of the library or program that this code is in; false: cannot be told. */
static bool own_folder(char *folder, size_t folder_bytes)
{
	static const char here;  /* any address inside */
	char path[PATH_MAX];
	Dl_info info;
	char *slash;

	if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, path) ||
	    !strstr(info.dli_fname, ".so")) {
		/* In a program the name is argv[0], which need not be a path. */
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

int gpul_driver_soft_candidates(char *paths[GPUL_MAX_CANDIDATES])
{
	const char *chosen = secure_getenv("GPULOAD_SOFT_DRIVER");
	char folder[PATH_MAX];
	int n = 0;

	if (chosen && *chosen) {
		add(paths, &n, chosen, "");
		return n;  /* asked for by name: nothing else would do */
	}
	if (own_folder(folder, sizeof folder)) {
		/* In the build tree; of an installed program, library; copied together. */
		add(paths, &n, folder, "/softcuda/libcuda-soft.so");
		add(paths, &n, folder, "/../lib/gpuload/libcuda-soft.so");
		add(paths, &n, folder, "/gpuload/libcuda-soft.so");
		add(paths, &n, folder, "/libcuda-soft.so");
	}
	add(paths, &n, GPUL_LIBDIR, "/libcuda-soft.so");
	add(paths, &n, "libcuda-soft.so", "");
	return n;
}
