/* nvrtc_open.c — find and open libnvrtc: see core/toolkit.h for the order. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/toolkit.h"
#include "ptx/nvrtc/nvrtc.h"
#include "ptx/nvrtc/nvrtc_internal.h"

static struct ptx_nvrtc lib;

/* The development link first: it is the version that the toolkit means. */
static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL };

static const gpul_toolkit_entry entries[] = {
#define X(name, parameters) { #name, offsetof(struct ptx_nvrtc, name) },
	PTX_NVRTC_CALLS(X)
#undef X
	{ "nvrtcGetErrorString", offsetof(struct ptx_nvrtc, nvrtcGetErrorString) },
	{ NULL, 0 },
};

static void find_neighbours(void);
static gpul_toolkit_library nvrtc = {
	.variable = "GPULOAD_NVRTC", .names = names, .entries = entries, .table = &lib, .opened = find_neighbours,
	.needed_for = "CUDA C++ needs NVRTC", .otherwise = "; or use PTX", .oldest = "CUDA 11.1",
};

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
