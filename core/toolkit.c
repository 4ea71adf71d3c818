/* toolkit.c — see toolkit.h. */
#include "core/toolkit.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *open_in(const char *folder, const char *const *names)
{
	char path[PATH_MAX];
	void *handle = NULL;

	for (; *names && !handle; names++) {
		int n = snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", *names);

		if (n > 0 && (size_t)n < sizeof path)
			handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return handle;
}

/* A toolkit keeps its libraries in lib64 or lib. */
static void *open_in_toolkit(const char *home, const char *const *names)
{
	static const char *const folders[] = { "lib64", "lib" };
	char path[PATH_MAX];
	void *handle = NULL;

	for (size_t i = 0; i < sizeof folders / sizeof *folders && !handle; i++) {
		int n = snprintf(path, sizeof path, "%s/%s", home, folders[i]);

		if (n > 0 && (size_t)n < sizeof path)
			handle = open_in(path, names);
	}
	return handle;
}

/* build/cuda-wheels, for a program that lies anywhere below build/. */
static void *open_beside_program(const char *const *names)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "/cuda-wheels");
	void *handle = NULL;

	if (n <= 0)
		return NULL;
	path[n] = 0;
	for (char *slash = strrchr(path, '/'); slash && slash > path && !handle;
	     slash = strrchr(path, '/')) {
		memcpy(slash, "/cuda-wheels", sizeof "/cuda-wheels");
		handle = open_in_toolkit(path, names);
		*slash = 0;
	}
	return handle;
}

static void *open_asked(const char *asked, const char *const *names)
{
	void *handle = dlopen(asked, RTLD_NOW | RTLD_LOCAL);

	return handle ? handle : open_in(asked, names);
}

static void *open_somewhere(const char *const *names)
{
	const char *home = getenv("CUDA_HOME");
	void *handle = home && *home ? open_in_toolkit(home, names) : NULL;

	if (!handle)
		handle = open_in_toolkit("/usr/local/cuda", names);
	if (!handle)
		handle = open_in("", names);
	return handle ? handle : open_beside_program(names);
}

static void find_path(void *handle, char path[PATH_MAX])
{
	struct link_map *map;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, path))
		*path = '\0';
}

gpul_status gpul_toolkit_open(const char *variable, const char *const *names, void **handle,
			      char path[PATH_MAX], gpul_error *err)
{
	const char *asked = getenv(variable);
	int stem = (int)strcspn(names[0], ".");

	if (asked && *asked) {
		*handle = open_asked(asked, names);
		if (!*handle)
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
					 "%s=%.100s: cannot be opened as %.*s", variable, asked,
					 stem, names[0]);
	} else {
		*handle = open_somewhere(names);
		if (!*handle)
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
					 "%.*s is not in $CUDA_HOME, /usr/local/cuda, the loader's "
					 "path or cuda-wheels beside this program: set %s to it",
					 stem, names[0], variable);
	}
	find_path(*handle, path);
	return GPUL_OK;
}
