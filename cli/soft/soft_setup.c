/* soft_setup.c — sets the variables with which any program finds the software driver and the libraries next to it.
 *
 *     LD_LIBRARY_PATH    the folder of libcuda.so.1 and other libraries, for programs that link to them or open them by name
 *     LD_PRELOAD         the libraries that Python packages open by their path in a wheel, unless one of the same name is loaded
 *     LD_AUDIT           redirects the calls of a CUDA runtime that is linked into a program (nvidia/redirect)
 *     others             variables of particular packages, and those of the software driver
 *
 * A variable that the user has set keeps its value; lists are extended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/soft/soft.h"
#include "cli/soft/soft_internal.h"

static gpul_status set(struct soft_setup *s, const char *name, const char *value, gpul_error *err)
{
	struct soft_variable v = { strdup(name), strdup(value) }, *row;

	row = v.name && v.value ? gpul_array_push(&s->variables) : NULL;
	if (!row) {
		free(v.name);
		free(v.value);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment");
	}
	*row = v;
	return GPUL_OK;
}

static gpul_status set_default(struct soft_setup *s, const char *name, const char *value, gpul_error *err)
{
	const char *given = secure_getenv(name);

	return given && *given ? GPUL_OK : set(s, name, value, err);
}

/* Set a variable to the path of a file or folder next to the driver, if this file exists. */
static gpul_status set_beside(struct soft_setup *s, const char *name, const char *file, gpul_error *err)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", s->folder, file);
	return access(path, F_OK) ? GPUL_OK : set_default(s, name, path, err);
}

/* ---- the lists ------------------------------------------------------------------------------- */

static gpul_status set_library_path(struct soft_setup *s, gpul_error *err)
{
	const char *given = secure_getenv("LD_LIBRARY_PATH");
	char *list = NULL;
	gpul_status st;

	if (asprintf(&list, "%s%s%s", s->folder, given && *given ? ":" : "", given ? given : "") < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment");
	st = set(s, "LD_LIBRARY_PATH", list, err);
	free(list);
	return st;
}

/* Set a list of libraries: those of the user (given; may be NULL), then those in `files` that exist.  The user's come first,
 * because the run time library of a sanitizer must be the first one. */
static gpul_status set_libraries(struct soft_setup *s, const char *name, const char *given, const char *const *files, size_t n_files,
				 gpul_error *err)
{
	char *list = strdup(given ? given : "");
	gpul_status st = GPUL_OK;

	for (size_t i = 0; list && i < n_files; i++) {
		char path[PATH_MAX + 64], *longer = NULL;

		snprintf(path, sizeof path, "%s/%s", s->folder, files[i]);
		if (access(path, F_OK) || strstr(list, path))
			continue;
		if (asprintf(&longer, "%s%s%s", list, *list ? ":" : "", path) < 0)
			longer = NULL;
		free(list);
		list = longer;
	}
	if (!list)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment");
	if (*list)
		st = set(s, name, list, err);
	free(list);
	return st;
}

static gpul_status set_preload(struct soft_setup *s, gpul_error *err)
{
	static const char *const files[] = { "libcudart.so.13",    "libcudart.so.12",    "libnvrtc.so.13",    "libnvrtc.so.12",
					     "libnvJitLink.so.13", "libnvJitLink.so.12", "libnvfatbin.so.13", "libnvfatbin.so.12" };

	return set_libraries(s, "LD_PRELOAD", secure_getenv("LD_PRELOAD"), files, sizeof files / sizeof *files, err);
}

static gpul_status set_audit(struct soft_setup *s, gpul_error *err)
{
	static const char *const files[] = { "libcudart-redirect.so.1" };

	return set_libraries(s, "LD_AUDIT", secure_getenv("LD_AUDIT"), files, 1, err);
}

/* ---- variables of the driver, and of packages that compile kernels ---------------------------- */

static gpul_status set_driver(struct soft_setup *s, gpul_error *err)
{
	gpul_status st = set(s, "GPULOAD_DRIVER", "soft", err);

	if (!st && s->gpus)
		st = set(s, "GPULOAD_SOFT_DEVICES", s->gpus, err);
	if (!st && s->sm)
		st = set(s, "GPULOAD_SOFT_SM", s->sm, err);
	if (!st && s->cuda)
		st = set(s, "GPULOAD_SOFT_CUDA", s->cuda, err);
	if (!st && s->memory)
		st = set(s, "GPULOAD_SOFT_MEMORY", s->memory, err);
	if (!st && s->strict_ptx)
		st = set(s, "GPULOAD_SOFT_STRICT", "1", err);
	if (!st && s->tools)
		st = set(s, "GPULOAD_SOFT_TOOLS", s->tools, err);
	if (!st && s->tools)
		st = set_default(s, "GPULOAD_SOFT_TOOLS_EXIT", "1", err);
	return st;
}

/* Write the path of the cache folder for the kernels that a Python package (client) compiles; false: the user has no cache folder. */
static bool name_cache(char path[PATH_MAX], const char *client)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	bool own = cache && *cache;

	return (own || (home && *home)) &&
	       snprintf(path, PATH_MAX, "%s%s/gpuload/%s", own ? cache : home, own ? "" : "/.cache", client) < PATH_MAX;
}

/* Set separate caches for compiled kernels, because the default caches contain machine code from programs that ran on a GPU. */
static gpul_status set_caches(struct soft_setup *s, gpul_error *err)
{
	static const char *const caches[][2] = {
		{ "CUPY_CACHE_DIR", "cupy" },
		{ "TRITON_CACHE_DIR", "triton" },
		{ "WARP_CACHE_PATH", "warp" },
	};
	gpul_status st = GPUL_OK;

	for (size_t i = 0; i < sizeof caches / sizeof *caches && !st; i++) {
		char path[PATH_MAX];

		if (name_cache(path, caches[i][1]))
			st = set_default(s, caches[i][0], path, err);
	}
	return st;
}

static bool make_folders(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		mkdir(part, 0700); /* a failure is ignored, because the folder may exist */
	}
	return !mkdir(path, 0700) || errno == EEXIST;
}

/* Create a cache folder, because PyCUDA does not create it, and set PYCUDA_CACHE_DIR to its path. */
static gpul_status set_pycuda_cache(struct soft_setup *s, gpul_error *err)
{
	char path[PATH_MAX];

	if (name_cache(path, "pycuda") && make_folders(path))
		return set_default(s, "PYCUDA_CACHE_DIR", path, err);
	return set_default(s, "PYCUDA_DISABLE_CACHE", "1", err);
}

/* Make nvcc add line information: ptxas then also stores the PTX in the cubin, and the software driver needs the PTX. */
static gpul_status set_nvcc(struct soft_setup *s, gpul_error *err)
{
	static const char flag[] = "-lineinfo";
	const char *given = secure_getenv("NVCC_APPEND_FLAGS");
	char *list = NULL;
	gpul_status st;

	if (given && strstr(given, flag))
		return GPUL_OK;
	if (asprintf(&list, "%s%s%s", given ? given : "", given && *given ? " " : "", flag) < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment");
	st = set(s, "NVCC_APPEND_FLAGS", list, err);
	free(list);
	return st;
}

static gpul_status set_clients(struct soft_setup *s, gpul_error *err)
{
	gpul_status st = set_beside(s, "NUMBA_CUDA_DRIVER", "libcuda.so.1", err);

	if (!st)
		st = set_default(s, "TRITON_LIBCUDA_PATH", s->folder, err);
	if (!st)
		st = set_beside(s, "TRITON_PTXAS_PATH", "bin/ptxas", err);
	if (!st)
		st = set_beside(s, "TRITON_PTXAS_BLACKWELL_PATH", "bin/ptxas", err);
	if (!st) /* make CuPy compile to PTX, not to machine code */
		st = set_default(s, "CUPY_COMPILE_WITH_PTX", "1", err);
	if (!st && *s->wheels)
		st = set_default(s, "GPULOAD_SITE_PACKAGES", s->wheels, err);
	if (!st && *s->toolkit)
		st = set_default(s, "CUDA_HOME", s->toolkit, err);
	if (!st)
		st = set_nvcc(s, err);
	if (!st)
		st = set_caches(s, err);
	return st ? st : set_pycuda_cache(s, err);
}

/* Find the CUDA toolkit: the one in $CUDA_HOME, else the one in the command's Python packages, else the system's. */
static void find_toolkit(struct soft_setup *s, const char *command)
{
	static const char system[] = "/usr/local/cuda";
	const char *given = secure_getenv("CUDA_HOME");

	if (!soft_find_packages(command, s->wheels))
		*s->wheels = '\0';
	if (given && *given)
		snprintf(s->toolkit, sizeof s->toolkit, "%s", given);
	else if (!(*s->wheels && soft_find_toolkit(s->wheels, s->toolkit)) && !access(system, F_OK))
		strcpy(s->toolkit, system);
}

gpul_status soft_setup(struct soft_setup *s, const char *command, gpul_error *err)
{
	const gpul_driver *drv;
	gpul_status st = soft_open_driver(GPUL_DRIVER_SOFT, &drv, err);
	char *slash;

	if (!st)
		st = soft_check_tools(drv, s->tools, err);
	if (st)
		return st;
	if (!drv->path || !realpath(drv->path, s->folder) || !(slash = strrchr(s->folder, '/')))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the folder of the software driver is unknown: set GPULOAD_SOFT_DRIVER to the path "
				 "of libcuda-soft.so");
	*slash = '\0';
	find_toolkit(s, command);
	st = set_library_path(s, err);
	if (!st)
		st = set_preload(s, err);
	if (!st)
		st = set_audit(s, err);
	if (!st)
		st = set_driver(s, err);
	return st ? st : set_clients(s, err);
}

gpul_status soft_setup_apply(const struct soft_setup *s, gpul_error *err)
{
	for (size_t i = 0; i < s->variables.n; i++)
		if (setenv(s->variables.at[i].name, s->variables.at[i].value, 1))
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment");
	return GPUL_OK;
}

gpul_status soft_set_environment(const char *command, gpul_error *err)
{
	struct soft_setup s = { 0 };
	gpul_status st = soft_setup(&s, command, err);

	if (!st)
		st = soft_setup_apply(&s, err);
	soft_setup_free(&s);
	return st;
}

void soft_setup_free(struct soft_setup *s)
{
	for (size_t i = 0; i < s->variables.n; i++) {
		free(s->variables.at[i].name);
		free(s->variables.at[i].value);
	}
	gpul_array_free(&s->variables);
}

/* ---- opening the driver in a process that later executes a program; only the program starts the tools of GPULOAD_SOFT_TOOLS ---- */
gpul_status soft_check_tools(const gpul_driver *drv, const char *list, gpul_error *err)
{
	const char *why = list && drv->check_tools ? drv->check_tools(list) : "";

	return *why ? gpul_fail(err, GPUL_EINVAL, 0, "%s", why) : GPUL_OK;
}

gpul_status soft_open_driver(gpul_driver_choice choice, const gpul_driver **out, gpul_error *err)
{
	const char *given = secure_getenv("GPULOAD_SOFT_TOOLS");
	char *list = given ? strdup(given) : NULL;
	gpul_status st;

	if (given && !list)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of the tools");
	unsetenv("GPULOAD_SOFT_TOOLS");
	st = gpul_driver_open(choice, out, err);
	if (!st)
		st = soft_check_tools(*out, list, err);
	if (list && setenv("GPULOAD_SOFT_TOOLS", list, 1))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of the tools");
	free(list);
	return st;
}
