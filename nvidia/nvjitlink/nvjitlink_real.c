/* nvjitlink_real.c — opens NVIDIA's libnvJitLink. */
#include <stdio.h>

#include "nvidia/nvjitlink/nvidia_nvjitlink_internal.h"
#include "nvidia/real.h"

static struct jl_real real;

/* The functions without a version in their names, which are those of the newest version. */
static const toolchain_entry entries[] = {
#define X(name, parameters, arguments) { "nvJitLink" #name, offsetof(struct jl_real, name) },
	JL_CALLS(X)
#undef X
		{ "nvJitLinkVersion", offsetof(struct jl_real, Version) },
	{ NULL, 0 },
};

static toolchain_real library = {
	.variable = "GPULOAD_NVJITLINK",
	.stem = "libnvJitLink.so",
	.wheel = "nvjitlink",
	.package = "nvidia-nvjitlink",
	.entries = entries,
	.table = &real,
};

const struct jl_real *jl_open(void)
{
	bool open = toolchain_open(&library);

	return open && real.Create && real.Destroy && real.AddData && real.Complete ? &real : NULL;
}
