/* nvidia_nvrtc.c — libnvrtc.so.12 and .13: NVIDIA's run-time compiler, which returns PTX where a program requests a cubin.
 *
 *     nvrtcCompileProgram(-arch=sm_90)   calls NVIDIA's, which compiles to PTX and machine code, with its own errors and log
 *     nvrtcGetCUBINSize, nvrtcGetCUBIN   return the PTX of this compilation, NUL-terminated, if there is a cubin; the limit of
 *                                        -maxrregcount is written into its kernels
 *     all other calls                    call NVIDIA's
 *
 * So a program that loads its "cubin" gets code that the software driver runs.  A call that the installed library lacks returns
 * NVRTC_ERROR_INTERNAL_ERROR. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvidia/real.h"
#include "nvidia/registers.h"

#define EXPORT __attribute__((visibility("default")))

/* Values of nvrtcResult. */
enum { ERROR_INVALID_INPUT = 3, ERROR_INTERNAL = 11 };

/* X(name, parameters, arguments): calls that are passed to NVIDIA's library unchanged.  A program is a void *. */
#define PASSED_ON(X) \
	X(nvrtcVersion, (int *major, int *minor), (major, minor)) \
	X(nvrtcGetNumSupportedArchs, (int *n), (n)) \
	X(nvrtcGetSupportedArchs, (int *archs), (archs)) \
	X(nvrtcCreateProgram, \
	  (void **program, const char *source, const char *name, int n_headers, const char *const *headers, const char *const *names), \
	  (program, source, name, n_headers, headers, names)) \
	X(nvrtcGetPTXSize, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcGetPTX, (void *program, char *ptx), (program, ptx)) \
	X(nvrtcGetNVVMSize, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcGetNVVM, (void *program, char *nvvm), (program, nvvm)) \
	X(nvrtcGetLTOIRSize, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcGetLTOIR, (void *program, char *ir), (program, ir)) \
	X(nvrtcGetOptiXIRSize, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcGetOptiXIR, (void *program, char *ir), (program, ir)) \
	X(nvrtcGetTileIRSize, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcGetTileIR, (void *program, char *ir), (program, ir)) \
	X(nvrtcGetProgramLogSize, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcGetProgramLog, (void *program, char *log), (program, log)) \
	X(nvrtcAddNameExpression, (void *program, const char *name), (program, name)) \
	X(nvrtcGetLoweredName, (void *program, const char *name, const char **lowered), (program, name, lowered)) \
	X(nvrtcGetPCHHeapSize, (size_t *bytes), (bytes)) \
	X(nvrtcSetPCHHeapSize, (size_t bytes), (bytes)) \
	X(nvrtcGetPCHCreateStatus, (void *program), (program)) \
	X(nvrtcGetPCHHeapSizeRequired, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcSetFlowCallback, (void *program, int (*callback)(void *, void *), void *payload), (program, callback, payload)) \
	X(nvrtcInstallBundledHeaders, (const char *folder, unsigned flags, const char **log), (folder, flags, log)) \
	X(nvrtcGetBundledHeadersInfo, (void *info, const char **log), (info, log)) \
	X(nvrtcRemoveBundledHeaders, (const char *folder, const char **log), (folder, log))

#define ANSWERED(X) \
	X(nvrtcDestroyProgram, (void **program), (program)) \
	X(nvrtcCompileProgram, (void *program, int n_options, const char *const *options), (program, n_options, options)) \
	X(nvrtcGetCUBINSize, (void *program, size_t *bytes), (program, bytes)) \
	X(nvrtcGetCUBIN, (void *program, char *cubin), (program, cubin))

static struct {
#define X(name, parameters, arguments) int(*name) parameters;
	PASSED_ON(X)
	ANSWERED(X)
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

/* Open libnvrtc's builtins library by its path: libnvrtc opens it by its file name, which works only if the folder is on the
 * loader's path, or if the library is already open. */
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

/* clang-format off */
static toolchain_real nvrtc = {
	.variable = "GPULOAD_NVRTC", .stem = "libnvrtc.so", .wheel = "cuda_nvrtc", .package = "nvidia-cuda-nvrtc",
	.entries = entries, .table = &real, .opened = open_builtins,
};
/* clang-format on */

#define X(name, parameters, arguments) \
	EXPORT int name parameters; \
	int name parameters \
	{ \
		return toolchain_open(&nvrtc) && real.name ? real.name arguments : ERROR_INTERNAL; \
	}
PASSED_ON(X)
#undef X

EXPORT const char *nvrtcGetErrorString(int result);
EXPORT int nvrtcDestroyProgram(void **program);
EXPORT int nvrtcCompileProgram(void *program, int n_options, const char *const *options);
EXPORT int nvrtcGetCUBINSize(void *program, size_t *bytes);
EXPORT int nvrtcGetCUBIN(void *program, char *cubin);

const char *nvrtcGetErrorString(int result)
{
	if (toolchain_open(&nvrtc) && real.nvrtcGetErrorString)
		return real.nvrtcGetErrorString(result);
	return result ? "NVRTC_ERROR_INTERNAL_ERROR: NVIDIA's libnvrtc was not found" : "NVRTC_SUCCESS";
}

/* ---- register limits (-maxrregcount) of programs ------------------------------------------------ */

struct limited {
	void *program;
	unsigned registers;
	struct limited *next;
};
static struct limited *limited;
static pthread_mutex_t limited_lock = PTHREAD_MUTEX_INITIALIZER;

/* Set the register limit of a program; 0: it no longer has a limit. */
static void set_limit(void *program, unsigned registers)
{
	struct limited **at = &limited, *one;

	pthread_mutex_lock(&limited_lock);
	while (*at && (*at)->program != program)
		at = &(*at)->next;
	one = *at;
	if (one && !registers) {
		*at = one->next;
		free(one);
	} else if (registers) {
		if (!one)
			one = *at = calloc(1, sizeof *one);
		if (one)
			*one = (struct limited){ program, registers, one->next };
	}
	pthread_mutex_unlock(&limited_lock);
}

static unsigned limit_of(void *program)
{
	unsigned registers = 0;

	pthread_mutex_lock(&limited_lock);
	for (struct limited *one = limited; one; one = one->next)
		if (one->program == program)
			registers = one->registers;
	pthread_mutex_unlock(&limited_lock);
	return registers;
}

int nvrtcCompileProgram(void *program, int n_options, const char *const *options)
{
	if (!toolchain_open(&nvrtc) || !real.nvrtcCompileProgram)
		return ERROR_INTERNAL;
	set_limit(program, options ? toolchain_max_registers(n_options, options) : 0);
	return real.nvrtcCompileProgram(program, n_options, options);
}

int nvrtcDestroyProgram(void **program)
{
	if (!toolchain_open(&nvrtc) || !real.nvrtcDestroyProgram)
		return ERROR_INTERNAL;
	if (program)
		set_limit(*program, 0);
	return real.nvrtcDestroyProgram(program);
}

/* Return the PTX with the program's register limit in its kernels, which the caller frees; NULL: there is no limit. */
static char *limited_ptx(void *program)
{
	const unsigned registers = limit_of(program);
	size_t bytes = 0;
	char *ptx, *out = NULL;

	if (!registers || real.nvrtcGetPTXSize(program, &bytes) || !bytes)
		return NULL;
	ptx = malloc(bytes);
	if (ptx && !real.nvrtcGetPTX(program, ptx))
		out = toolchain_limit_registers(ptx, bytes - 1, registers);
	free(ptx);
	return out;
}

/* ---- PTX in place of a cubin ------------------------------------------------------------------------ */

int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
	char *ptx;
	size_t cubin_bytes = 0;
	int r;

	if (!toolchain_open(&nvrtc) || !real.nvrtcGetCUBINSize || !real.nvrtcGetPTXSize || !real.nvrtcGetPTX)
		return ERROR_INTERNAL;
	if (!bytes)
		return ERROR_INVALID_INPUT;
	r = real.nvrtcGetCUBINSize(program, &cubin_bytes);
	if (r)
		return r;
	*bytes = 0;
	if (!cubin_bytes)
		return 0;
	ptx = limited_ptx(program);
	if (!ptx)
		return real.nvrtcGetPTXSize(program, bytes);
	*bytes = strlen(ptx) + 1;
	free(ptx);
	return 0;
}

int nvrtcGetCUBIN(void *program, char *cubin)
{
	size_t bytes = 0;
	int r = nvrtcGetCUBINSize(program, &bytes);
	char *ptx;

	if (r || !real.nvrtcGetCUBIN)
		return r ? r : ERROR_INTERNAL;
	ptx = bytes && cubin ? limited_ptx(program) : NULL;
	if (!ptx)
		return bytes ? real.nvrtcGetPTX(program, cubin) : real.nvrtcGetCUBIN(program, cubin);
	memcpy(cubin, ptx, strlen(ptx) + 1);
	free(ptx);
	return 0;
}
