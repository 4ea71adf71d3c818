/* search.c — lists the paths where the software driver may be. */
#include "driver/driver_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "core/own_folder.h"

#ifndef GPUL_LIBDIR
#define GPUL_LIBDIR "/usr/local/lib/gpuload"
#endif

static bool add_candidate(char *paths[], int *n, const char *folder, const char *below)
{
	return *n < GPUL_MAX_CANDIDATES && asprintf(&paths[*n], "%s%s", folder, below) >= 0 && ++*n;
}

/* The software driver in gpuload's build folder, for programs that are linked with gpuload's archives and may be in any folder. */
#ifndef GPUL_BUILT_DRIVER
#define GPUL_BUILT_DRIVER ""
#endif

int gpul_driver_soft_candidates(char *paths[GPUL_MAX_CANDIDATES])
{
	const char *chosen = secure_getenv("GPULOAD_SOFT_DRIVER");
	char folder[PATH_MAX];
	int n = 0;

	if (chosen && *chosen) {
		add_candidate(paths, &n, chosen, "");
		return n; /* the user gave this path, so it is the only candidate */
	}
	if (gpul_own_folder(folder, sizeof folder)) {
		/* The possible layouts: a build folder; an installed program; an installed library; one folder that contains all files. */
		add_candidate(paths, &n, folder, "/softcuda/libcuda-soft.so");
		add_candidate(paths, &n, folder, "/../lib/gpuload/libcuda-soft.so");
		add_candidate(paths, &n, folder, "/gpuload/libcuda-soft.so");
		add_candidate(paths, &n, folder, "/libcuda-soft.so");
		add_candidate(paths, &n, folder, "/softcuda/libcuda.so.1"); /* a Python package, which cannot contain links */
	}
	add_candidate(paths, &n, GPUL_LIBDIR, "/libcuda-soft.so");
	if (*GPUL_BUILT_DRIVER && !getauxval(AT_SECURE))
		add_candidate(paths, &n, GPUL_BUILT_DRIVER, "");
	add_candidate(paths, &n, "libcuda-soft.so", "");
	return n;
}
