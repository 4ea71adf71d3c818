/* nvjitlink_open.c — finds and opens libnvJitLink; core/toolkit.h describes the search. */
#include <stdbool.h>
#include <stddef.h>

#include "core/toolkit.h"
#include "loader/link/link.h"
#include "loader/link/nvjitlink_internal.h"

static struct nvjitlink lib;

/* The name without a version comes first, because in a toolkit it is a link to the toolkit's library. */
static const char *const names[] = { "libnvJitLink.so", "libnvJitLink.so.13", "libnvJitLink.so.12", NULL };

static const gpul_toolkit_entry entries[] = {
#define X(name, parameters) { #name, offsetof(struct nvjitlink, name) },
	NVJITLINK_CALLS(X)
#undef X
		{ NULL, 0 },
};

/* clang-format off */
static void read_version(void);
static gpul_toolkit_library nvjitlink = {
	.variable = "GPULOAD_NVJITLINK", .names = names, .entries = entries, .table = &lib, .opened = read_version,
	.needed_for = "linking needs nvJitLink", .otherwise = "", .oldest = "CUDA 12.0",
};
/* clang-format on */

static void read_version(void)
{
	lib.nvJitLinkVersion(&lib.major, &lib.minor);
	lib.path = nvjitlink.path;
}

gpul_status nvjitlink_open(const struct nvjitlink **out, gpul_error *err)
{
	gpul_status st = gpul_toolkit_open(&nvjitlink, err);

	if (!st)
		*out = &lib;
	return st;
}

bool nvjitlink_locate(char path[PATH_MAX])
{
	return gpul_toolkit_locate(&nvjitlink, path);
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
