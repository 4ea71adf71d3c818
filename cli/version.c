/* version.c — gpuload version: prints the versions of gpuload, CUDA, the drivers and the libraries that it finds. */
#include "cli/commands.h"

#include <stdio.h>

#include "driver/driver.h"
#include "loader/link/link.h"
#include "ptx/nvrtc/nvrtc.h"

/* Print a line with the version and path of a driver, or why it cannot be used. */
static void print_driver(const char *label, gpul_driver_choice choice)
{
	const gpul_driver *drv;
	gpul_error why = { 0 };

	if (gpul_driver_open(choice, &drv, &why) == GPUL_OK)
		printf("%-16s CUDA %d.%d, %s\n", label, drv->version / 1000, drv->version % 1000 / 10, drv->path);
	else
		printf("%-16s %s\n", label, why.text);
}

/* Print a line with the version and path of a library, or why it cannot be used. */
static void print_library(const char *label, gpul_status find(const char **, int *, int *, gpul_error *))
{
	const char *path;
	int major, minor;
	gpul_error why = { 0 };

	if (find(&path, &major, &minor, &why) == GPUL_OK)
		printf("%-16s %d.%d, %s\n", label, major, minor, path);
	else
		printf("%-16s %s\n", label, why.text);
}

static int cmd_version(const struct cli_args *args, gpul_error *err)
{
	(void)args, (void)err;
	printf("gpuload " GPUL_VERSION "\n");
	printf("%-16s %d.%d\n", "built with CUDA", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
	print_driver("NVIDIA's driver", GPUL_DRIVER_NVIDIA);
	print_driver("software driver", GPUL_DRIVER_SOFT);
	print_library("NVRTC", gpul_nvrtc_find);
	print_library("nvJitLink", gpul_link_find);
	return CLI_DONE;
}

const struct cli_cmd cli_version = {
	"version", "", "print the versions of gpuload, the drivers and the libraries", NULL, cli_no_opts, cmd_version, NULL, NULL,
};
