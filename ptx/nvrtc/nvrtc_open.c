/* nvrtc_open.c — finds and opens libnvrtc, and finds its headers; core/toolkit.h describes the search. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/toolkit.h"
#include "ptx/nvrtc/nvrtc.h"
#include "ptx/nvrtc/nvrtc_internal.h"

static struct ptx_nvrtc lib;

/* The name without a version comes first: in a toolkit, it is a symbolic link to the toolkit's own version. */
static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL };

static const gpul_toolkit_entry entries[] = {
#define X(name, parameters) { #name, offsetof(struct ptx_nvrtc, name) },
	PTX_NVRTC_CALLS(X)
#undef X
		{ "nvrtcGetErrorString", offsetof(struct ptx_nvrtc, nvrtcGetErrorString) },
	{ NULL, 0 },
};

/* clang-format off */
static void find_neighbours(void);
static gpul_toolkit_library nvrtc = {
	.variable = "GPULOAD_NVRTC", .names = names, .entries = entries, .table = &lib, .opened = find_neighbours,
	.needed_for = "CUDA C++ needs NVRTC", .otherwise = "; or use PTX", .oldest = "CUDA 11.1",
};
/* clang-format on */

/* Set `to` to folder + tail if that folder contains the file `sign`, else to "". */
static bool find_folder(char to[PATH_MAX], const char *folder, const char *tail, const char *sign)
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

/* Called after libnvrtc has been opened: find its headers, and open its builtins library. */
static void find_neighbours(void)
{
	char folder[PATH_MAX], builtins[2 * PATH_MAX], *slash;

	lib.nvrtcVersion(&lib.major, &lib.minor);
	lib.path = nvrtc.path;
	strcpy(folder, lib.path);
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	*slash = 0;
	/* The library is in lib, lib64 or targets/<machine>/lib of the toolkit, so the headers are in a folder beside that; Debian
	 * has them in /usr/include. */
	if (!find_folder(lib.include, folder, "/../include", "cuda_fp16.h"))
		find_folder(lib.include, folder, "/../../include", "cuda_fp16.h");
	if (*lib.include)
		find_folder(lib.cccl, lib.include, "/cccl", "cuda");
	/* libnvrtc opens its builtins library by file name without a folder.  If the folder is not on the loader's path, dlopen()
	 * finds the library only if it is already open.  So open it here, by its path.  Like libnvrtc, it is never closed. */
	snprintf(builtins, sizeof builtins, "%s/libnvrtc-builtins.so.%d.%d", folder, lib.major, lib.minor);
	dlopen(builtins, RTLD_NOW | RTLD_LOCAL);
}

gpul_status ptx_nvrtc_open(const struct ptx_nvrtc **out, gpul_error *err)
{
	gpul_status st = gpul_toolkit_open(&nvrtc, err);

	if (!st)
		*out = &lib;
	return st;
}

bool gpul_nvrtc_locate(char path[PATH_MAX])
{
	return gpul_toolkit_locate(&nvrtc, path);
}
