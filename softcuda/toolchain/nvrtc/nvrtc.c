/* nvrtc.c — libnvrtc.so.12 and .13: NVIDIA's run-time compiler, which gives PTX where a program asks for a cubin.
 *
 *     nvrtcCompileProgram(-arch=sm_90)   NVIDIA's: compiles to PTX, then to machine code, with its own errors and log
 *     nvrtcGetCUBINSize, nvrtcGetCUBIN   the PTX of the same compilation, NUL-terminated, if there is a cubin
 *     all other calls                    NVIDIA's
 *
 * So a program that loads its "cubin" gets code that the software driver runs.  A call that the installed library lacks returns
 * NVRTC_ERROR_INTERNAL_ERROR. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "softcuda/toolchain/real.h"

#define EXPORT __attribute__((visibility("default")))

enum { ERROR_INVALID_INPUT = 3, ERROR_INTERNAL = 11 };  /* nvrtcResult */

/* X(name, parameters, arguments): the calls that are only passed on.  A program is a void *. */
#define PASSED_ON(X)                                                                                  \
	X(nvrtcVersion, (int *major, int *minor), (major, minor))                                     \
	X(nvrtcGetNumSupportedArchs, (int *n), (n))                                                   \
	X(nvrtcGetSupportedArchs, (int *archs), (archs))                                              \
	X(nvrtcCreateProgram, (void **program, const char *source, const char *name, int n_headers,   \
			       const char *const *headers, const char *const *names),                 \
	  (program, source, name, n_headers, headers, names))                                         \
	X(nvrtcDestroyProgram, (void **program), (program))                                           \
	X(nvrtcCompileProgram, (void *program, int n_options, const char *const *options),            \
	  (program, n_options, options))                                                              \
	X(nvrtcGetPTXSize, (void *program, size_t *bytes), (program, bytes))                          \
	X(nvrtcGetPTX, (void *program, char *ptx), (program, ptx))                                    \
	X(nvrtcGetNVVMSize, (void *program, size_t *bytes), (program, bytes))                         \
	X(nvrtcGetNVVM, (void *program, char *nvvm), (program, nvvm))                                 \
	X(nvrtcGetLTOIRSize, (void *program, size_t *bytes), (program, bytes))                        \
	X(nvrtcGetLTOIR, (void *program, char *ir), (program, ir))                                    \
	X(nvrtcGetOptiXIRSize, (void *program, size_t *bytes), (program, bytes))                      \
	X(nvrtcGetOptiXIR, (void *program, char *ir), (program, ir))                                  \
	X(nvrtcGetTileIRSize, (void *program, size_t *bytes), (program, bytes))                       \
	X(nvrtcGetTileIR, (void *program, char *ir), (program, ir))                                   \
	X(nvrtcGetProgramLogSize, (void *program, size_t *bytes), (program, bytes))                   \
	X(nvrtcGetProgramLog, (void *program, char *log), (program, log))                             \
	X(nvrtcAddNameExpression, (void *program, const char *name), (program, name))                 \
	X(nvrtcGetLoweredName, (void *program, const char *name, const char **lowered),               \
	  (program, name, lowered))                                                                   \
	X(nvrtcGetPCHHeapSize, (size_t *bytes), (bytes))                                              \
	X(nvrtcSetPCHHeapSize, (size_t bytes), (bytes))                                               \
	X(nvrtcGetPCHCreateStatus, (void *program), (program))                                        \
	X(nvrtcGetPCHHeapSizeRequired, (void *program, size_t *bytes), (program, bytes))              \
	X(nvrtcSetFlowCallback, (void *program, int (*callback)(void *, void *), void *payload),      \
	  (program, callback, payload))                                                               \
	X(nvrtcInstallBundledHeaders, (const char *folder, unsigned flags, const char **log),         \
	  (folder, flags, log))                                                                       \
	X(nvrtcGetBundledHeadersInfo, (void *info, const char **log), (info, log))                    \
	X(nvrtcRemoveBundledHeaders, (const char *folder, const char **log), (folder, log))

#define ANSWERED(X)                                                                                   \
	X(nvrtcGetCUBINSize, (void *program, size_t *bytes), (program, bytes))                        \
	X(nvrtcGetCUBIN, (void *program, char *cubin), (program, cubin))

static struct {
#define X(name, parameters, arguments) int (*name) parameters;
	PASSED_ON(X) ANSWERED(X)
#undef X
	const char *(*nvrtcGetErrorString)(int result);
} real;

static const toolchain_entry entries[] = {
#define X(name, parameters, arguments) { #name, offsetof(__typeof__(real), name) },
	PASSED_ON(X) ANSWERED(X)
#undef X
	{ "nvrtcGetErrorString", offsetof(__typeof__(real), nvrtcGetErrorString) },
	{ NULL, 0 },
};

/* libnvrtc opens its builtins by file name, which finds them only if their folder is on the loader's path or if they are
 * already open. */
static void open_builtins(void *handle, const char *path)
{
	char builtins[TOOLCHAIN_PATH_BYTES + 64];
	int major = 0, minor = 0, folder = (int)(strrchr(path, '/') - path);

	(void)handle;
	if (!real.nvrtcVersion || real.nvrtcVersion(&major, &minor))
		return;
	snprintf(builtins, sizeof builtins, "%.*s/libnvrtc-builtins.so.%d.%d", folder, path, major, minor);
	dlopen(builtins, RTLD_NOW | RTLD_LOCAL);
}

static toolchain_real nvrtc = {
	.variable = "GPULOAD_NVRTC", .stem = "libnvrtc.so", .wheel = "cuda_nvrtc", .package = "nvidia-cuda-nvrtc",
	.entries = entries, .table = &real, .opened = open_builtins,
};

#define X(name, parameters, arguments)                                                                \
	EXPORT int name parameters;                                                                   \
	int name parameters                                                                           \
	{                                                                                             \
		return toolchain_open(&nvrtc) && real.name ? real.name arguments : ERROR_INTERNAL;    \
	}
PASSED_ON(X)
#undef X

EXPORT const char *nvrtcGetErrorString(int result);
EXPORT int nvrtcGetCUBINSize(void *program, size_t *bytes);
EXPORT int nvrtcGetCUBIN(void *program, char *cubin);

const char *nvrtcGetErrorString(int result)
{
	if (toolchain_open(&nvrtc) && real.nvrtcGetErrorString)
		return real.nvrtcGetErrorString(result);
	return result ? "NVRTC_ERROR_INTERNAL_ERROR: NVIDIA's libnvrtc was not found" : "NVRTC_SUCCESS";
}

int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
	size_t cubin_bytes = 0;
	int r;

	if (!toolchain_open(&nvrtc) || !real.nvrtcGetCUBINSize || !real.nvrtcGetPTXSize)
		return ERROR_INTERNAL;
	if (!bytes)
		return ERROR_INVALID_INPUT;
	r = real.nvrtcGetCUBINSize(program, &cubin_bytes);
	if (!r && cubin_bytes)
		return real.nvrtcGetPTXSize(program, bytes);
	if (!r)
		*bytes = 0;
	return r;
}

int nvrtcGetCUBIN(void *program, char *cubin)
{
	size_t bytes = 0;
	int r = nvrtcGetCUBINSize(program, &bytes);

	if (r || !real.nvrtcGetPTX || !real.nvrtcGetCUBIN)
		return r ? r : ERROR_INTERNAL;
	return bytes ? real.nvrtcGetPTX(program, cubin) : real.nvrtcGetCUBIN(program, cubin);
}
