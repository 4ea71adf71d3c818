/* run_program.c — gpuload run of a .cu file with main(): builds it with nvcc, links it with libgpuload-rt, and executes it. */
#include "cli/run/run_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/lib/message.h"
#include "cli/soft/soft.h"
#include "loader/program/program.h"
#include "ptx/nvrtc/nvrtc.h"

extern char **environ;

/* Find the line of main() in CUDA C++; 0: there is no main(), or the file is not CUDA C++. */
static unsigned main_line(gpul_source *source)
{
	const char *text;

	if (gpul_source_content(source) != GPUL_CONTENT_CUDA || gpul_source_text(source, &text, NULL))
		return 0;
	return gpul_nvrtc_main_line(text);
}

bool run_program_wanted(const struct cli_args *args, gpul_source *source)
{
	char nvcc[GPUL_PROGRAM_PATH_BYTES];
	bool for_program = args->n_operands > 1 && args->n_before_dashes == 1;
	unsigned line;

	/* Arguments or options of a kernel mean that the user wants to run a kernel, not the program. */
	if (!source || args->n_before_dashes != 1 || !run_program_has_options_only(args))
		return false;
	line = main_line(source);
	if (line == 0 || (!for_program && run_line_exists(source)))
		return false;
	if (for_program || gpul_program_find_nvcc(nvcc))
		return true;
	cli_message("run",
		    "%s is a program (main() in line %u), and nvcc, which could build it, was not found: running its kernel alone. "
		    "To run the program, install the CUDA toolkit or set GPULOAD_NVCC",
		    gpul_source_name(source), line);
	return false;
}

/* Set LD_LIBRARY_PATH, so that a program that calls cu* functions directly finds the libcuda.so.1 of the chosen driver. */
static gpul_status set_library_path(const gpul_driver *drv, gpul_error *err)
{
	const char *given = secure_getenv("LD_LIBRARY_PATH"), *slash = drv->interprets && drv->path ? strrchr(drv->path, '/') : NULL;
	char *list = NULL;

	if (!slash)
		return GPUL_OK;
	if (asprintf(&list, "%.*s%s%s", (int)(slash - drv->path), drv->path, given && *given ? ":" : "", given ? given : "") < 0 ||
	    setenv("LD_LIBRARY_PATH", list, 1))
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment of the program");
	free(list);
	return GPUL_OK;
}

/* Let the program use the driver and the device that the options of gpuload select. */
static gpul_status set_environment(const gpul_driver *drv, int device, gpul_error *err)
{
	char number[16];

	snprintf(number, sizeof number, "%d", device);
	for (size_t i = 0; drv->open_env && drv->open_env[i]; i++) {
		char *setting = strdup(drv->open_env[i]), *equals = setting ? strchr(setting, '=') : NULL;

		if (!equals)
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment of the program");
		*equals = '\0';
		setenv(setting, equals + 1, 1);
		free(setting);
	}
	if (device > 0)
		setenv("CUDA_VISIBLE_DEVICES", number, 1);
	return set_library_path(drv, err);
}

static gpul_status write_all(int file, const char *bytes, size_t n_bytes, gpul_error *err)
{
	while (n_bytes > 0) {
		ssize_t n = write(file, bytes, n_bytes);

		if (n < 0 && errno != EINTR)
			return gpul_fail(err, GPUL_ESYS, errno, "cannot write the program to memory: %s", strerror(errno));
		bytes += n > 0 ? n : 0;
		n_bytes -= n > 0 ? (size_t)n : 0;
	}
	return GPUL_OK;
}

/* Replace this process by the program, with the name of the .cu file as its name; returns only after a failure. */
static gpul_status execute(const void *program, size_t n_bytes, const struct cli_args *args, gpul_error *err)
{
	const char *path = args->operands[0];
	size_t n = strlen(path);
	char **argv = calloc(args->n_operands + 1, sizeof *argv);
	int file = memfd_create("program", MFD_CLOEXEC);
	gpul_status st = GPUL_OK;

	if (file < 0)
		st = gpul_fail(err, GPUL_ESYS, errno, "cannot create a file in memory: %s", strerror(errno));
	else if (!argv || !(argv[0] = strndup(path, n > 3 && !strcmp(path + n - 3, ".cu") ? n - 3 : n)))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the arguments of the program");
	else
		st = write_all(file, program, n_bytes, err);
	for (size_t i = 1; !st && i < args->n_operands; i++)
		argv[i] = (char *)(uintptr_t)args->operands[i];
	if (!st) {
		fflush(stdout);
		fexecve(file, argv, environ);
		st = gpul_fail(err, GPUL_ESYS, errno, "cannot execute the program: %s", strerror(errno));
	}
	if (argv)
		free(argv[0]);
	free(argv);
	if (file >= 0)
		close(file);
	return st;
}

static gpul_status device_cc(const gpul_driver *drv, int device, uint32_t *cc, gpul_error *err)
{
	int major = 0, minor = 0;
	CUdevice handle = 0;
	gpul_status st = gpul_cu(drv, err, cuDeviceGet(&handle, device));

	if (!st)
		st = gpul_cu(drv, err, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle));
	if (!st)
		st = gpul_cu(drv, err, cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle));
	*cc = (uint32_t)(major * 10 + minor);
	return st;
}

gpul_status run_program(const struct cli_args *args, gpul_source *source, gpul_error *err)
{
	struct run_program_options o = { 0 };
	const gpul_driver *drv;
	const char *text;
	void *program = NULL;
	size_t n_bytes = 0;
	uint32_t cc = 0;
	gpul_status st = run_program_options(args, &o, err);

	if (!st)
		st = gpul_source_text(source, &text, err);
	if (!st && args->n_operands == 1)
		run_line_tell_misspelt(source); /* a misspelt `// gpuload run:` line would have selected a kernel, so report it */
	if (!st)
		st = run_tools_select(args, NULL, &o.driver, err);
	if (!st)
		st = soft_open_driver(o.driver, &drv, err);
	if (!st)
		st = device_cc(drv, o.device, &cc, err);
	if (!st)
		st = gpul_program_build(text, gpul_source_name(source), (const char *const *)o.nvcc.words, cc, o.no_cache, &program,
					&n_bytes, err);
	if (!st)
		st = set_environment(drv, o.device, err);
	if (!st)
		st = execute(program, n_bytes, args, err);
	free(program);
	nvrtc_args_free(&o.nvcc);
	return st;
}
