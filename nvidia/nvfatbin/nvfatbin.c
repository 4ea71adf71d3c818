/* nvfatbin.c — libnvfatbin.so.12 and .13: replaces NVIDIA's library that packs code into fat binaries.
 *
 *     nvFatbinAddCubin   accepts PTX, too, because gpuload's libnvrtc and libnvJitLink return PTX in place of a cubin: adds the PTX, if its
 *                        target is the caller's architecture; for machine code, calls NVIDIA's library
 *     all other calls    call NVIDIA's library
 *
 * A call that the installed library lacks returns NVFATBIN_ERROR_INTERNAL. */
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "nvidia/real.h"

#define EXPORT __attribute__((visibility("default")))

/* values of nvFatbinResult */
enum { ERROR_INTERNAL = 1, ERROR_ELF_ARCH_MISMATCH = 2 };

/* X(name, parameters, arguments): calls that are passed to NVIDIA's library unchanged.  A handle is a void *. */
#define PASSED_ON(X) \
	X(nvFatbinCreate, (void **handle, const char **options, size_t n_options), (handle, options, n_options)) \
	X(nvFatbinDestroy, (void **handle), (handle)) \
	X(nvFatbinAddPTX, (void *handle, const char *code, size_t bytes, const char *arch, const char *name, const char *options), \
	  (handle, code, bytes, arch, name, options)) \
	X(nvFatbinAddLTOIR, (void *handle, const void *code, size_t bytes, const char *arch, const char *name, const char *options), \
	  (handle, code, bytes, arch, name, options)) \
	X(nvFatbinAddIndex, (void *handle, const void *code, size_t bytes, const char *name), (handle, code, bytes, name)) \
	X(nvFatbinAddReloc, (void *handle, const void *code, size_t bytes), (handle, code, bytes)) \
	X(nvFatbinAddTileIR, (void *handle, const void *code, size_t bytes, const char *name, const char *options), \
	  (handle, code, bytes, name, options)) \
	X(nvFatbinSize, (void *handle, size_t *bytes), (handle, bytes)) \
	X(nvFatbinGet, (void *handle, void *buffer), (handle, buffer)) \
	X(nvFatbinVersion, (unsigned *major, unsigned *minor), (major, minor))

#define ANSWERED(X) \
	X(nvFatbinAddCubin, (void *handle, const void *code, size_t bytes, const char *arch, const char *name), \
	  (handle, code, bytes, arch, name))

static struct {
#define X(name, parameters, arguments) int(*name) parameters;
	PASSED_ON(X)
	ANSWERED(X)
#undef X
	const char *(*nvFatbinGetErrorString)(int result);
} real;

static const toolchain_entry entries[] = {
#define X(name, parameters, arguments) { #name, offsetof(__typeof__(real), name) },
	PASSED_ON(X) ANSWERED(X)
#undef X
		{ "nvFatbinGetErrorString", offsetof(__typeof__(real), nvFatbinGetErrorString) },
	{ NULL, 0 },
};

static toolchain_real library = {
	.variable = "GPULOAD_NVFATBIN",
	.stem = "libnvfatbin.so",
	.wheel = "nvfatbin",
	.package = "nvidia-nvfatbin",
	.entries = entries,
	.table = &real,
};

#define X(name, parameters, arguments) \
	EXPORT int name parameters; \
	int name parameters \
	{ \
		return toolchain_open(&library) && real.name ? real.name arguments : ERROR_INTERNAL; \
	}
PASSED_ON(X)
#undef X

EXPORT const char *nvFatbinGetErrorString(int result);
EXPORT int nvFatbinAddCubin(void *handle, const void *code, size_t bytes, const char *arch, const char *name);

const char *nvFatbinGetErrorString(int result)
{
	if (toolchain_open(&library) && real.nvFatbinGetErrorString)
		return real.nvFatbinGetErrorString(result);
	return result ? "ERROR_INTERNAL: NVIDIA's libnvfatbin was not found" : "SUCCESS";
}

/* Return the target name after `.target sm_` in PTX, such as "90a"; NULL: the code is not PTX. */
static const char *ptx_target(const char *code, size_t bytes)
{
	static const char word[] = ".target", prefix[] = "sm_";
	const char *at, *end = code + bytes;

	if (!memmem(code, bytes, ".version", strlen(".version")))
		return NULL;
	at = memmem(code, bytes, word, strlen(word));
	if (!at || end[-1] != '\0')
		return NULL;
	for (at += strlen(word); isspace((unsigned char)*at); at++)
		;
	return strncmp(at, prefix, strlen(prefix)) ? NULL : at + strlen(prefix);
}

int nvFatbinAddCubin(void *handle, const void *code, size_t bytes, const char *arch, const char *name)
{
	static const char elf[] = "\177ELF";
	const char *target = NULL;
	size_t length = 0;

	if (!toolchain_open(&library) || !real.nvFatbinAddCubin)
		return ERROR_INTERNAL;
	if (code && arch && bytes > strlen(elf) && memcmp(code, elf, strlen(elf)) != 0)
		target = ptx_target(code, bytes);
	if (!target || !real.nvFatbinAddPTX)
		return real.nvFatbinAddCubin(handle, code, bytes, arch, name);
	while (isalnum((unsigned char)target[length]))
		length++;
	if (length != strlen(arch) || memcmp(target, arch, length) != 0)
		return ERROR_ELF_ARCH_MISMATCH;
	return real.nvFatbinAddPTX(handle, code, bytes, arch, name, "");
}
