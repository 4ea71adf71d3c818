/* guard.c — preloaded into programs on a GPU that other users share: refuses multicast, managed memory and settings of the GPU.
 *
 *     dlsym(library, "cu..." or "nvml...") ──┐               ┌── the function itself
 *                                            ├── guarded() ──┼── refuse_*()
 *     cuGetProcAddress("cu...") ─────────────┘               └── checked_*(): refuses managed
 *                                                                memory, or calls the function
 *
 * Python packages, NVIDIA's runtime and ctypes find the functions of libcuda and NVML in these two ways.  A refused call returns "not
 * supported" and appends the line "reason<tab>test" to the file $GPULOAD_GUARD_LOG.  Works only on x86-64, where the first six arguments of
 * a call are in registers: a checked function passes on six arguments, whatever number the real function has.  Must be compiled with -O2,
 * because dlsym() relies on a tail call. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	CU_NOT_SUPPORTED = 801,  /* CUDA_ERROR_NOT_SUPPORTED */
	NVML_NOT_SUPPORTED = 3,  /* NVML_ERROR_NOT_SUPPORTED */
	MANAGED = 2,             /* CU_MEM_ALLOCATION_TYPE_MANAGED, since CUDA 13 */
	NODE_MEM_ALLOC = 10,     /* CU_GRAPH_NODE_TYPE_MEM_ALLOC */
	NODE_PARAMS_OFFSET = 16, /* offset of the union in CUgraphNodeParams */
};

typedef int function(void *a, void *b, void *c, void *d, void *e, void *f);

static void *guarded(const char *name, void *found, int version);

/* ---- functions that take the place of others ---- */

static int refuse(const char *reason, int error)
{
	const char *path = getenv("GPULOAD_GUARD_LOG"), *test = getenv("PYTEST_CURRENT_TEST");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

	if (fd >= 0) {
		dprintf(fd, "%s\t%s\n", reason, test ? test : "(no test)");
		close(fd);
	}
	return error;
}

static int refuse_multicast(void)
{
	return refuse("multicast", CU_NOT_SUPPORTED);
}

static int refuse_managed(void)
{
	return refuse("managed memory", CU_NOT_SUPPORTED);
}

static int refuse_setting(void)
{
	return refuse("setting of the GPU", NVML_NOT_SUPPORTED);
}

/* The argument has 32 bits, so the upper half of its register is undefined. */
static bool is_managed(const void *type)
{
	return (int)(intptr_t)type == MANAGED;
}

/* CUmemPoolProps begins with the type of its memory, CUgraphNodeParams with the type of its node. */
static bool is_managed_pool(const int *props)
{
	return props && *props == MANAGED;
}

static bool is_managed_node(const int *params)
{
	return params && *params == NODE_MEM_ALLOC && is_managed_pool(params + NODE_PARAMS_OFFSET / sizeof *params);
}

/* X(function, condition of its arguments a to f on which it is refused because it would use managed memory) */
#define CHECKED(X) \
	X(cuMemPoolCreate, is_managed_pool(b)) \
	X(cuMemGetDefaultMemPool, is_managed(c)) \
	X(cuMemGetMemPool, is_managed(c)) \
	X(cuMemSetMemPool, is_managed(b)) \
	X(cuGraphAddMemAllocNode, is_managed_pool(e)) \
	X(cuGraphAddNode, is_managed_node(e)) \
	X(cuGraphAddNode_v2, is_managed_node(f))
#define LOOK_UPS(X) X(cuGetProcAddress, 0) X(cuGetProcAddress_v2, 0)

#define X(name, refused) \
	static function *real_##name; \
	static int checked_##name(void *a, void *b, void *c, void *d, void *e, void *f) \
	{ \
		return (refused) ? refuse_managed() : real_##name(a, b, c, d, e, f); \
	}
CHECKED(X)
#undef X

/* Wraps cuGetProcAddress(name, &found, version, ...): replaces the function that it found by guarded(). */
#define X(name, _) \
	static function *real_##name; \
	static int checked_##name(void *a, void *b, void *c, void *d, void *e, void *f) \
	{ \
		int error = real_##name(a, b, c, d, e, f); \
		if (!error && a && b) \
			*(void **)b = guarded(a, *(void **)b, (int)(intptr_t)c); \
		return error; \
	}
LOOK_UPS(X)
#undef X

/* ---- which function is found by a name ---- */

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* True for functions of NVML that only read, or only change settings of the calling thread; all others are refused. */
static bool changes_nothing(const char *name)
{
	static const char *const words[] = {
		"Get",   "Init",     "Shutdown",    "ErrorString", "Event",     "CpuAffinity",
		"Query", "Validate", "OnSameBoard", "IsMig",       "GpmSample", "ReadPRMCounters",
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

#define ADDRESS(f) ((void *)(uintptr_t)(f))

/* Return the function that a look-up returns instead of `found`.  version: CUDA version, as passed to cuGetProcAddress; 0 for dlsym,
 * where the name itself has the suffix of its version. */
static void *guarded(const char *name, void *found, int version)
{
	if (!found)
		return NULL;
	if (begins(name, "nvml"))
		return changes_nothing(name) ? found : ADDRESS(refuse_setting);
	if (begins(name, "cuMulticast"))
		return ADDRESS(refuse_multicast);
	if (begins(name, "cuMemAllocManaged") || begins(name, "cuMemPrefetch") || begins(name, "cuMemAdvise") ||
	    begins(name, "cuMemDiscard"))
		return ADDRESS(refuse_managed);
	if (strcmp(name, "cuGraphAddNode") == 0 && version >= 12030)
		name = "cuGraphAddNode_v2";
	if (strcmp(name, "cuGetProcAddress") == 0 && version >= 12000)
		name = "cuGetProcAddress_v2";
#define X(checked, _) \
	if (strcmp(name, #checked) == 0) { \
		if (found != ADDRESS(checked_##checked)) \
			real_##checked = (function *)(uintptr_t)found; \
		return ADDRESS(checked_##checked); \
	}
	CHECKED(X)
	LOOK_UPS(X)
#undef X
	return found;
}

/* True if the driver's own libraries look up a function; they get the real one. */
static bool is_driver(void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname &&
	       (strstr(info.dli_fname, "/libcuda.so") || strstr(info.dli_fname, "/libcuda-") || strstr(info.dli_fname, "/libnvidia-"));
}

void *dlsym(void *restrict library, const char *restrict name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		real = (__typeof__(real))(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!(begins(name, "cu") || begins(name, "nvml")) || is_driver(__builtin_return_address(0)))
		return real(library, name); /* a tail call, so that RTLD_NEXT refers to dlsym()'s caller */
	return guarded(name, real(library, name), 0);
}
