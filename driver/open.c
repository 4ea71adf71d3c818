/* open.c — chooses a driver and opens it once; it stays open until the process ends. */
#include "driver/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "driver/driver_internal.h"

/* An open driver.  It is never closed, because the driver's own threads would then run unmapped code. */
struct opened {
	bool ready;
	gpul_driver table;
	char *path;
	char *environment[3]; /* settings for child processes ("NAME=value"); table.open_env points to this array */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the variables below */
static struct opened nvidia, soft;
static const gpul_driver *chosen_by_auto;
static bool nvidia_is_absent; /* NVIDIA's driver is not installed; false also if it is broken or finds no device */

static const char *const choice_names[] = { "auto", "nvidia", "soft" };

bool gpul_driver_choice_parse(const char *text, gpul_driver_choice *out)
{
	for (int i = 0; i < 3; i++) {
		if (strcmp(text, choice_names[i]) == 0) {
			*out = (gpul_driver_choice)i;
			return 1;
		}
	}
	return 0;
}

/* Returns "NAME=value", allocated; NULL: out of memory. */
static char *format_setting(const char *name, const char *value)
{
	char *text;

	return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

/* Fill the table from an opened shared object and initialise the driver. */
static gpul_status start_driver(void *handle, const char *path, struct opened *o, gpul_error *err)
{
	gpul_driver table;
	gpul_status st = gpul_driver_fill(handle, path, &table, err);
	int n_devices = 0;
	CUresult r;

	if (st)
		return st;
	r = table.cuInit(0);
	if (r != CUDA_ERROR_NO_DEVICE) {
		st = gpul_cu_status(&table, err, r, "cuInit(0)");
		if (!st)
			st = gpul_cu(&table, err, cuDeviceGetCount(&n_devices));
		if (st)
			return st;
	}
	if (n_devices == 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, CUDA_ERROR_NO_DEVICE, "%s was loaded, but reports no device", path);
	o->path = strdup(path);
	o->environment[0] = format_setting("GPULOAD_DRIVER", table.name);
	if (table.interprets) /* a child process must open the same software driver, of which several may be installed */
		o->environment[1] = format_setting("GPULOAD_SOFT_DRIVER", path);
	if (!o->path || !o->environment[0] || (table.interprets && !o->environment[1]))
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory opening %s", path);
	o->table = table;
	o->table.path = o->path;
	o->table.open_env = (const char *const *)o->environment;
	o->ready = true;
	gpul_log(GPUL_LOG_INFO, "driver", "%s driver %s, CUDA %d.%d, %d device%s", table.name, path, table.version / 1000,
		 table.version % 1000 / 10, n_devices, n_devices == 1 ? "" : "s");
	return GPUL_OK;
}

static bool is_soft_driver(void *handle)
{
	return dlsym(handle, "gpuloadSoftLastFault") != NULL;
}

/* Open libcuda.so.1 by its name, else by its usual paths.  The name can lead to the software driver, which also has
 * the name libcuda.so.1 so that programs linked with NVIDIA's driver find it. */
static gpul_status open_nvidia(gpul_error *err)
{
	static const char *const paths[] = {
		"libcuda.so.1",
		"/usr/lib/x86_64-linux-gnu/libcuda.so.1",
		"/usr/lib/aarch64-linux-gnu/libcuda.so.1",
		"/usr/lib64/libcuda.so.1",
		"/usr/lib/wsl/lib/libcuda.so.1",
	};
	bool shadowed = false;
	char why[128] = "not found";

	for (size_t i = 0; !nvidia.ready && i < sizeof paths / sizeof paths[0]; i++) {
		void *handle = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
		const char *problem = handle ? NULL : dlerror();

		if (handle && !is_soft_driver(handle))
			return start_driver(handle, paths[i], &nvidia, err);
		if (handle) {
			shadowed = true;
			dlclose(handle);
		} else if (i == 0 && problem) {
			strncpy(why, problem, sizeof why - 1);
		}
	}
	if (nvidia.ready)
		return GPUL_OK;
	nvidia_is_absent = shadowed || strstr(why, "No such file") != NULL;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "NVIDIA's driver was not found: %s",
			 shadowed ? "the libcuda.so.1 on the library path is gpuload's software driver, not NVIDIA's driver" : why);
}

/* dlopen() the first candidate that exists.  If dlopen() fails, report that, and try no later candidate, so that a broken
 * installation does not silently use another driver. */
static void *open_first_candidate(char *const paths[], int n, const char **path, gpul_error *err)
{
	for (int i = 0; i < n; i++) {
		bool by_path = strchr(paths[i], '/') != NULL;
		void *handle;

		if (by_path && n > 1 && access(paths[i], F_OK) != 0)
			continue;
		handle = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
		*path = paths[i];
		if (handle)
			return handle;
		if (by_path) {
			gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the software driver cannot be loaded: %s", dlerror());
			return NULL;
		}
	}
	gpul_fail(err, GPUL_EUNSUPPORTED, 0,
		  "the software driver was not found: set GPULOAD_SOFT_DRIVER to the path of libcuda-soft.so, "
		  "which is in softcuda/ of gpuload's build folder or in lib/gpuload/ of its prefix");
	return NULL;
}

static gpul_status open_soft(gpul_error *err)
{
	char *paths[GPUL_MAX_CANDIDATES];
	gpul_status st = GPUL_EUNSUPPORTED;
	const char *path;
	void *handle;
	int n;

	if (soft.ready)
		return GPUL_OK;
	n = gpul_driver_soft_candidates(paths);
	handle = open_first_candidate(paths, n, &path, err);
	if (handle)
		st = start_driver(handle, path, &soft, err);
	while (n > 0)
		free(paths[--n]);
	return st;
}

static gpul_status open_auto(gpul_error *err)
{
	gpul_error why_not = { 0 }, why_neither = { 0 };
	gpul_status st;

	if (chosen_by_auto)
		return GPUL_OK;
	if (open_nvidia(&why_not) == GPUL_OK) {
		chosen_by_auto = &nvidia.table;
		return GPUL_OK;
	}
	st = open_soft(&why_neither);
	if (st == GPUL_EINVAL) /* the value of GPULOAD_SOFT_TOOLS is wrong, so the failure of NVIDIA's driver does not matter */
		return gpul_fail(err, st, why_neither.native, "%s", why_neither.text);
	if (st)
		return gpul_fail(err, GPUL_EUNSUPPORTED, why_not.native, "no CUDA driver can be used: %s; %s",
				 nvidia_is_absent ? GPUL_NO_NVIDIA_DRIVER : why_not.text, why_neither.text);
	chosen_by_auto = &soft.table;
	/* On a machine without NVIDIA's driver, using the software driver is expected: print only a short notice, and write the
	 * message of dlopen() to the log. */
	if (nvidia_is_absent)
		gpul_log(GPUL_LOG_INFO, "driver", "%s", why_not.text);
	gpul_log(GPUL_LOG_NOTICE, "driver", "%s; using the software driver", nvidia_is_absent ? GPUL_NO_NVIDIA_DRIVER : why_not.text);
	return GPUL_OK;
}

static gpul_status open_locked(gpul_driver_choice choice, const gpul_driver **out, gpul_error *err)
{
	gpul_status st;

	switch (choice) {
	case GPUL_DRIVER_NVIDIA:
		st = open_nvidia(err);
		if (!st)
			*out = &nvidia.table;
		return st;
	case GPUL_DRIVER_SOFT:
		st = open_soft(err);
		if (!st)
			*out = &soft.table;
		return st;
	case GPUL_DRIVER_AUTO:
		st = open_auto(err);
		if (!st)
			*out = chosen_by_auto;
		return st;
	}
	return gpul_fail(err, GPUL_EINVAL, (int)choice, "invalid driver choice %d: expected auto, nvidia or soft (gpul_driver_choice)",
			 (int)choice);
}

gpul_status gpul_driver_open(gpul_driver_choice choice, const gpul_driver **out, gpul_error *err)
{
	const char *wish = secure_getenv("GPULOAD_DRIVER");
	gpul_status st;

	if (choice == GPUL_DRIVER_AUTO && wish && *wish && !gpul_driver_choice_parse(wish, &choice))
		return gpul_fail(err, GPUL_EINVAL, 0, "GPULOAD_DRIVER=%s: expected auto, nvidia or soft", wish);
	pthread_mutex_lock(&lock);
	st = open_locked(choice, out, err);
	pthread_mutex_unlock(&lock);
	return st;
}
