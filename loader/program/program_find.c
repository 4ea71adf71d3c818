/* program_find.c — locates nvcc, libgpuload-rt.a, and a libcuda.so to link with. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/own_folder.h"
#include "loader/program/program.h"
#include "ptx/nvrtc/nvrtc.h"

#ifndef GPUL_LIBDIR
#define GPUL_LIBDIR "/usr/local/lib/gpuload"
#endif
#ifndef GPUL_NVCC
#define GPUL_NVCC ""
#endif

/* Set path to folder + tail, if the folder is not empty, and this file can be used. */
static bool try_file(char path[GPUL_PROGRAM_PATH_BYTES], const char *folder, const char *tail, int mode)
{
	int n = snprintf(path, GPUL_PROGRAM_PATH_BYTES, "%s%s", folder, tail);

	return *folder && n > 0 && n < GPUL_PROGRAM_PATH_BYTES && access(path, mode) == 0;
}

static bool search_path(char path[GPUL_PROGRAM_PATH_BYTES])
{
	const char *at = secure_getenv("PATH");

	for (; at && *at; at += strcspn(at, ":"), at += *at == ':') {
		char folder[GPUL_PROGRAM_PATH_BYTES];
		size_t n = strcspn(at, ":");

		if (n == 0 || n >= sizeof folder)
			continue;
		memcpy(folder, at, n);
		folder[n] = '\0';
		if (try_file(path, folder, "/nvcc", X_OK))
			return true;
	}
	return false;
}

/* Find the nvcc in NVIDIA's wheels, which configure.py --install-deps downloads, and ninja install copies. */
static bool find_in_wheels(char path[GPUL_PROGRAM_PATH_BYTES])
{
	char folder[PATH_MAX];

	/* the three paths are those for a build folder, for an installed program, and for an installed library */
	if (gpul_own_folder(folder, sizeof folder) && (try_file(path, folder, "/cuda-wheels/bin/nvcc", X_OK) ||
						       try_file(path, folder, "/../lib/gpuload/cuda-wheels/bin/nvcc", X_OK) ||
						       try_file(path, folder, "/gpuload/cuda-wheels/bin/nvcc", X_OK)))
		return true;
	return try_file(path, GPUL_LIBDIR, "/cuda-wheels/bin/nvcc", X_OK);
}

bool gpul_program_find_nvcc(char path[GPUL_PROGRAM_PATH_BYTES])
{
	const char *chosen = secure_getenv("GPULOAD_NVCC"), *home = secure_getenv("CUDA_HOME");
	char nvrtc[GPUL_TOOLKIT_PATH_BYTES], *slash;

	if (chosen && *chosen) /* the user gave this path, so it is the only candidate */
		return try_file(path, chosen, "", X_OK);
	if ((home && try_file(path, home, "/bin/nvcc", X_OK)) || try_file(path, GPUL_NVCC, "", X_OK) || search_path(path) ||
	    find_in_wheels(path) || try_file(path, "/usr/local/cuda", "/bin/nvcc", X_OK))
		return true;
	if (!gpul_nvrtc_locate(nvrtc) || !(slash = strrchr(nvrtc, '/')))
		return false;
	*slash = '\0';
	return try_file(path, nvrtc, "/../bin/nvcc", X_OK);
}

bool gpul_program_find_runtime(char path[GPUL_PROGRAM_PATH_BYTES])
{
	static const char name[] = "/libgpuload-rt.a";
	const char *chosen = secure_getenv("GPULOAD_RT");
	char folder[PATH_MAX];

	if (chosen && *chosen)
		return try_file(path, chosen, "", R_OK);
	if (gpul_own_folder(folder, sizeof folder)) {
		/* In a build, or for an installed library, the file is in `folder`; for an installed program, it is in ../lib. */
		if (try_file(path, folder, name, R_OK) || try_file(path, folder, "/../lib/libgpuload-rt.a", R_OK))
			return true;
	}
	return try_file(path, GPUL_LIBDIR, "/../libgpuload-rt.a", R_OK);
}

bool gpul_program_find_libcuda(const char *nvcc, char path[GPUL_PROGRAM_PATH_BYTES])
{
	static const char *const stubs[] = { "/../lib64/stubs/libcuda.so", "/../lib/stubs/libcuda.so",
					     "/../targets/x86_64-linux/lib/stubs/libcuda.so" };
	static const char *const ours[] = { "/softcuda/libcuda.so", "/../lib/gpuload/libcuda.so", "/gpuload/libcuda.so" };
	char folder[PATH_MAX], *slash;

	if (realpath(nvcc, folder) && (slash = strrchr(folder, '/'))) {
		*slash = '\0';
		for (size_t i = 0; i < sizeof stubs / sizeof *stubs; i++)
			if (try_file(path, folder, stubs[i], R_OK))
				return true;
	}
	for (size_t i = 0; gpul_own_folder(folder, sizeof folder) && i < sizeof ours / sizeof *ours; i++)
		if (try_file(path, folder, ours[i], R_OK))
			return true;
	return try_file(path, GPUL_LIBDIR, "/libcuda.so", R_OK);
}
