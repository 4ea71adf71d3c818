/* nvrtc_open.c — find and open libnvrtc: see nvrtc.h for the order. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ptx/nvrtc_internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ptx_nvrtc lib;
static gpul_error why_not;   /* .status is GPUL_OK when lib is open */

/* The development link first: it is the version that the toolkit means. */
static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
				     "libnvrtc.so.11.2" };

static void *open_in(const char *folder)
{
	char path[PATH_MAX];
	void *handle = NULL;

	for (size_t i = 0; i < sizeof names / sizeof *names && !handle; i++) {
		int n = snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "",
				 names[i]);

		if (n > 0 && (size_t)n < sizeof path)
			handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return handle;
}

/* A toolkit keeps its libraries in lib64 or lib. */
static void *open_in_toolkit(const char *home)
{
	static const char *const folders[] = { "lib64", "lib" };
	char path[PATH_MAX];
	void *handle = NULL;

	for (size_t i = 0; i < sizeof folders / sizeof *folders && !handle; i++) {
		int n = snprintf(path, sizeof path, "%s/%s", home, folders[i]);

		if (n > 0 && (size_t)n < sizeof path)
			handle = open_in(path);
	}
	return handle;
}

/* build/cuda-wheels, for a program that lies anywhere below build/. */
static void *open_beside_program(void)
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
		handle = open_in_toolkit(path);
		*slash = 0;
	}
	return handle;
}

static void *open_somewhere(void)
{
	const char *asked = getenv("GPULOAD_NVRTC"), *home = getenv("CUDA_HOME");
	void *handle;

	if (asked && *asked) {   /* asked for by name: nothing else will do */
		handle = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
		return handle ? handle : open_in(asked);
	}
	handle = home && *home ? open_in_toolkit(home) : NULL;
	if (!handle)
		handle = open_in_toolkit("/usr/local/cuda");
	if (!handle)
		handle = open_in("");
	return handle ? handle : open_beside_program();
}

/* Fill the table; false: an entry point is missing. */
static bool find_calls(void *handle)
{
	void *p;

	/* POSIX has dlsym() give a void *; memcpy makes a function pointer of it without a cast. */
#define X(name, parameters)                          \
	p = dlsym(handle, #name);                    \
	memcpy(&lib.name, &p, sizeof p);             \
	if (!p)                                      \
		return false;
	PTX_NVRTC_CALLS(X)
#undef X
	p = dlsym(handle, "nvrtcGetErrorString");
	memcpy(&lib.nvrtcGetErrorString, &p, sizeof p);
	return p != NULL;
}

/* to = folder + tail if that exists, else "". */
static bool existing(char to[PATH_MAX], const char *folder, const char *tail, const char *sign)
{
	char probe[2 * PATH_MAX];
	struct stat st;

	snprintf(probe, sizeof probe, "%s%s/%s", folder, tail, sign);
	*to = 0;
	if (strlen(folder) + strlen(tail) >= PATH_MAX || stat(probe, &st))
		return false;
	strcat(strcpy(to, folder), tail);
	return true;
}

/* From where the library lies: its headers, and the builtins that it will want to open. */
static void find_neighbours(void *handle)
{
	struct link_map *map;
	char folder[PATH_MAX], builtins[2 * PATH_MAX], *slash;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, folder))
		return;
	strcpy(lib.path, folder);
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	*slash = 0;
	/* The toolkit's lib, or its targets/<machine>/lib, or lib64; Debian has /usr/include. */
	if (!existing(lib.include, folder, "/../include", "cuda_fp16.h"))
		existing(lib.include, folder, "/../../include", "cuda_fp16.h");
	if (*lib.include)
		existing(lib.cccl, lib.include, "/cccl", "cuda");
	/* libnvrtc opens its builtins by their bare name, which finds only what is open already when
	 * its folder is on no path: open them here, by their full one.  Never closed, like libnvrtc. */
	snprintf(builtins, sizeof builtins, "%s/libnvrtc-builtins.so.%d.%d", folder, lib.major,
		 lib.minor);
	dlopen(builtins, RTLD_NOW | RTLD_LOCAL);
}

static void open_once(void)
{
	const char *asked = getenv("GPULOAD_NVRTC");
	void *handle = open_somewhere();

	if (!handle && asked && *asked) {
		gpul_fail(&why_not, GPUL_EUNSUPPORTED, 0,
			  "GPULOAD_NVRTC=%s: cannot be opened as libnvrtc", asked);
	} else if (!handle) {
		gpul_fail(
			&why_not, GPUL_EUNSUPPORTED, 0,
			"CUDA C++ needs libnvrtc, which is not in $CUDA_HOME, /usr/local/cuda, "
			"the loader's path or "
			"cuda-wheels beside this program: set GPULOAD_NVRTC to it, or use PTX");
	} else if (!find_calls(handle)) {
		gpul_fail(&why_not, GPUL_EUNSUPPORTED, 0,
			  "libnvrtc is too old: CUDA 11.1 or later is needed");
		dlclose(handle);
	} else {
		lib.nvrtcVersion(&lib.major, &lib.minor);
		find_neighbours(handle);
	}
}

gpul_status ptx_nvrtc_open(const struct ptx_nvrtc **out, gpul_error *err)
{
	pthread_once(&once, open_once);
	if (why_not.status)
		return gpul_fail(err, why_not.status, why_not.native, "%s", why_not.text);
	*out = &lib;
	return GPUL_OK;
}
