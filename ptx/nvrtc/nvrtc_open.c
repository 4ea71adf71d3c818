/* nvrtc_open.c — find and open libnvrtc: see core/toolkit.h for the order. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/toolkit.h"
#include "ptx/nvrtc/nvrtc.h"
#include "ptx/nvrtc/nvrtc_internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ptx_nvrtc lib;
static gpul_error why_not;   /* .status is GPUL_OK when lib is open */

/* The development link first: it is the version that the toolkit means. */
static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
				     "libnvrtc.so.11.2", NULL };

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
static void find_neighbours(void)
{
	char folder[PATH_MAX], builtins[2 * PATH_MAX], *slash;

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

static void open_once(void)
{
	gpul_error why = { 0 };
	void *handle;

	if (gpul_toolkit_open("GPULOAD_NVRTC", names, &handle, lib.path, &why)) {
		gpul_fail(&why_not, why.status, why.native, "CUDA C++ needs NVRTC: %s; or use PTX",
			  why.text);
	} else if (!find_calls(handle)) {
		gpul_fail(&why_not, GPUL_EUNSUPPORTED, 0,
			  "libnvrtc is too old: CUDA 11.1 or later is needed");
		dlclose(handle);
	} else {
		lib.nvrtcVersion(&lib.major, &lib.minor);
		find_neighbours();
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

bool gpul_nvrtc_locate(char path[PATH_MAX])
{
	return gpul_toolkit_locate("GPULOAD_NVRTC", names, path);
}
