/* nvjitlink_open.c — find and open libnvJitLink: see core/toolkit.h for the order. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "core/toolkit.h"
#include "loader/link/link.h"
#include "loader/link/nvjitlink_internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct nvjitlink lib;
static gpul_error why_not; /* .status is GPUL_OK when lib is open */

/* The development link first: it is the version that the toolkit means. */
static const char *const names[] = { "libnvJitLink.so", "libnvJitLink.so.13",
				     "libnvJitLink.so.12", NULL };

/* Fill the table; false: an entry point is missing. */
static bool find_calls(void *handle)
{
	void *p;

	/* POSIX has dlsym() give a void *; memcpy makes a function pointer of it without a cast. */
#define X(name, parameters)              \
	p = dlsym(handle, #name);        \
	memcpy(&lib.name, &p, sizeof p); \
	if (!p)                          \
		return false;
	NVJITLINK_CALLS(X)
#undef X
	return true;
}

static void open_once(void)
{
	gpul_error why = { 0 };
	void *handle;

	if (gpul_toolkit_open("GPULOAD_NVJITLINK", names, &handle, lib.path, &why)) {
		gpul_fail(&why_not, why.status, why.native, "linking needs nvJitLink: %s",
			  why.text);
	} else if (!find_calls(handle)) {
		gpul_fail(&why_not, GPUL_EUNSUPPORTED, 0,
			  "libnvJitLink is too old: CUDA 12.0 or later is needed");
		dlclose(handle);
	} else {
		lib.nvJitLinkVersion(&lib.major, &lib.minor);
	}
}

gpul_status nvjitlink_open(const struct nvjitlink **out, gpul_error *err)
{
	pthread_once(&once, open_once);
	if (why_not.status)
		return gpul_fail(err, why_not.status, why_not.native, "%s", why_not.text);
	*out = &lib;
	return GPUL_OK;
}

bool nvjitlink_locate(char path[PATH_MAX])
{
	return gpul_toolkit_locate("GPULOAD_NVJITLINK", names, path);
}

gpul_status gpul_link_find(const char **path, int *major, int *minor, gpul_error *err)
{
	const struct nvjitlink *found;
	gpul_status st = nvjitlink_open(&found, err);

	if (st)
		return st;
	*path = found->path;
	if (major)
		*major = (int)found->major;
	if (minor)
		*minor = (int)found->minor;
	return GPUL_OK;
}
