/* toolkit.c — searches for NVIDIA's toolkit libraries and opens them. */
#include "core/toolkit.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/own_folder.h"

#ifndef GPUL_LIBDIR
#define GPUL_LIBDIR "/usr/local/lib/gpuload"
#endif

/* Called for each place where a library may be, in order; true ends the search.  For a path without a slash, dlopen() searches
 * LD_LIBRARY_PATH and the folders of ldconfig. */
typedef bool visitor(const char *path, void *found);

static bool try_folder(const char *folder, const char *const *names, visitor *visit, void *found)
{
	char path[PATH_MAX];

	for (; *names; names++) {
		int n = snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", *names);

		if (n > 0 && (size_t)n < sizeof path && visit(path, found))
			return true;
	}
	return false;
}

/* Try the folders of a toolkit in which its libraries may be: lib64 and lib. */
static bool try_toolkit(const char *home, const char *const *names, visitor *visit, void *found)
{
	static const char *const folders[] = { "lib64", "lib" };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		int n = snprintf(path, sizeof path, "%s/%s", home, folders[i]);

		if (n > 0 && (size_t)n < sizeof path && try_folder(path, names, visit, found))
			return true;
	}
	return false;
}

/* Try cuda-wheels in each parent folder of this program or library, for example build/cuda-wheels, and below lib/gpuload
 * there, for example /usr/local/lib/gpuload/cuda-wheels. */
static bool try_beside_program(const char *const *names, visitor *visit, void *found)
{
	static const char *const places[] = { "/cuda-wheels", "/lib/gpuload/cuda-wheels" };
	char parent[PATH_MAX], path[PATH_MAX];

	if (!gpul_own_folder(parent, sizeof parent))
		return false;
	while (*parent) {
		for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
			int n = snprintf(path, sizeof path, "%s%s", parent, places[i]);

			if (n > 0 && (size_t)n < sizeof path && try_toolkit(path, names, visit, found))
				return true;
		}
		*strrchr(parent, '/') = '\0';
	}
	return false;
}

static bool try_places(const char *asked, const char *const *names, visitor *visit, void *found)
{
	const char *home = secure_getenv("CUDA_HOME");

	if (asked && *asked)
		return visit(asked, found) || try_folder(asked, names, visit, found);
	return (home && *home && try_toolkit(home, names, visit, found)) || try_toolkit("/usr/local/cuda", names, visit, found) ||
	       try_folder("", names, visit, found) || try_beside_program(names, visit, found) ||
	       try_toolkit(GPUL_LIBDIR "/cuda-wheels", names, visit, found);
}

static bool open_candidate(const char *path, void *found)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	*(void **)found = handle;
	return handle != NULL;
}

/* Store the real path of an existing file.  A name without a slash also ends the search: only dlopen() can find it. */
static bool locate_candidate(const char *path, void *found)
{
	struct stat st;

	if (!strchr(path, '/'))
		return true;
	return !stat(path, &st) && S_ISREG(st.st_mode) && realpath(path, found);
}

bool gpul_toolkit_locate(const gpul_toolkit_library *l, char path[PATH_MAX])
{
	char found[PATH_MAX] = "";

	if (!try_places(secure_getenv(l->variable), l->names, locate_candidate, found) || !*found)
		return false;
	strcpy(path, found);
	return true;
}

static gpul_status open_library(const gpul_toolkit_library *l, void **handle, gpul_error *err)
{
	const char *asked = secure_getenv(l->variable);
	int stem = (int)strcspn(l->names[0], ".");

	if (try_places(asked, l->names, open_candidate, handle))
		return GPUL_OK;
	if (asked && *asked)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s: the file given by %s=%s cannot be loaded as %.*s%s", l->needed_for,
				 l->variable, asked, stem, l->names[0], l->otherwise);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "%s: %.*s was not found in $CUDA_HOME, in /usr/local/cuda, on the library path of the dynamic "
			 "loader, or in cuda-wheels beside this program: set %s to its path%s",
			 l->needed_for, stem, l->names[0], l->variable, l->otherwise);
}

static gpul_status find_entries(const gpul_toolkit_library *l, void *handle, gpul_error *err)
{
	for (const gpul_toolkit_entry *e = l->entries; e->name; e++) {
		void *p = dlsym(handle, e->name);

		if (!p)
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%.*s is too old: %s or later is needed",
					 (int)strcspn(l->names[0], "."), l->names[0], l->oldest);
		/* dlsym() returns a void *; memcpy turns it into a function pointer without a cast. */
		memcpy((char *)l->table + e->offset, &p, sizeof p);
	}
	return GPUL_OK;
}

static void open_once(gpul_toolkit_library *l)
{
	void *handle = NULL;
	struct link_map *map;

	l->tried = true;
	if (open_library(l, &handle, &l->why_not))
		return;
	if (find_entries(l, handle, &l->why_not)) {
		dlclose(handle);
		return;
	}
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, l->path))
		*l->path = '\0';
	l->opened();
}

gpul_status gpul_toolkit_open(gpul_toolkit_library *l, gpul_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!l->tried)
		open_once(l);
	pthread_mutex_unlock(&lock);
	return l->why_not.status ? gpul_fail(err, l->why_not.status, l->why_not.native, "%s", l->why_not.text) : GPUL_OK;
}
