/* redirect.c — patches NVIDIA's runtime inside a program or library: each function becomes a jump to that of gpuload's libcudart.so.
 *
 * nvcc links libcudart_static.a by default. That runtime works with NVIDIA's driver only. This library is an auditor of the dynamic
 * loader (LD_AUDIT): the loader calls it for each object before the first instruction of that object runs, even before the
 * constructors that register kernels. Files are not changed. The program then calls gpuload's libcudart.so, which is preloaded.
 *
 *     cudaMalloc:  jmp *0(%rip)             6 bytes: FF 25 00 00 00 00
 *                  address of ours          8 bytes
 *
 * Each function of the runtime starts at a multiple of 16 bytes, so the 14 bytes fit.
 *
 * Source: rtld-audit(7); Intel SDM, JMP r/m64. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/log.h"
#include "core/own_folder.h"
#include "nvidia/calls/bind.h"
#include "nvidia/loaded.h"
#include "nvidia/redirect/redirect_internal.h"
#include "softcuda/api/cu_refused_table.h"

#define EXPORTED __attribute__((visibility("default")))

enum { JUMP_BYTES = 14, FUNCTION_ALIGNMENT = 16, MAX_PENDING = 256 };

/* No lock is needed: the dynamic loader calls auditors one at a time.  wrappers: the library with the wrappers of `gpuload calls`. */
static struct link_map *pending[MAX_PENDING], *ours_12, *ours_13, *wrappers;
static size_t n_pending;

static const char *path_of(const struct link_map *map)
{
	return *map->l_name ? map->l_name : "/proc/self/exe";
}

/* ---- writing the jumps into the program's runtime -------------------------------------------- */

static bool write_jumps(const struct runtime_call *calls, const uintptr_t *targets, size_t n, uintptr_t loaded_at)
{
	static const uint8_t jump[JUMP_BYTES] = { 0xff, 0x25 };
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), low = UINTPTR_MAX, high = 0;

	for (size_t i = 0; i < n; i++) {
		uintptr_t at = loaded_at + calls[i].address;

		if (!targets[i])
			continue;
		low = at < low ? at : low;
		high = at > high ? at : high;
	}
	low -= low % page;
	if (mprotect((void *)low, high + JUMP_BYTES - low, PROT_READ | PROT_WRITE))
		return false;
	for (size_t i = 0; i < n; i++) {
		uint8_t *at = (uint8_t *)(loaded_at + calls[i].address);

		if (!targets[i])
			continue;
		memcpy(at, jump, sizeof jump);
		memcpy(at + 6, &targets[i], sizeof targets[i]);
	}
	return !mprotect((void *)low, high + JUMP_BYTES - low, PROT_READ | PROT_EXEC);
}

static bool has_call(const struct static_runtime *r, const char *name)
{
	for (size_t i = 0; i < r->n_calls; i++)
		if (!strcmp(r->calls[i].name, name))
			return true;
	return false;
}

static void redirect_calls(const struct link_map *map, struct mapped object, const struct static_runtime *r, const char *path)
{
	/* CUDA 13 removed this call, so a runtime that has it is of CUDA 12 */
	const struct link_map *ours = has_call(r, "cudaGetDeviceProperties_v2") ? ours_12 : ours_13;
	uintptr_t targets[REDIRECT_MAX_CALLS];
	size_t n = 0;

	if (has_call(r, "cudaBindTexture") || !ours) {
		gpul_log(GPUL_LOG_NOTICE, "redirect", "%s contains NVIDIA's CUDA runtime, whose calls will fail: %s", path,
			 ours ? "it is older than CUDA 12" : "no libcudart.so of gpuload for its version is preloaded");
		return;
	}
	for (size_t i = 0; i < r->n_calls; i++) {
		const struct runtime_call *c = &r->calls[i];

		targets[i] = c->address % FUNCTION_ALIGNMENT || !is_code(object, c->address, JUMP_BYTES) ? 0 : find_export(ours, c->name);
		if (targets[i])
			targets[i] = calls_bind(wrappers, ours, c->name, targets[i]);
		n += targets[i] != 0;
	}
	if (!n || !write_jumps(r->calls, targets, r->n_calls, map->l_addr))
		gpul_log(GPUL_LOG_NOTICE, "redirect",
			 "%s contains NVIDIA's CUDA runtime, whose calls will fail: its code cannot be changed", path);
	else
		gpul_log(GPUL_LOG_INFO, "redirect", "%zu of %zu functions of NVIDIA's CUDA runtime in %s jump to %s", n, r->n_calls, path,
			 ours->l_name);
}

/* ---- runtimes for which no archive was found ------------------------------------------------- */

/* A runtime for which no archive was found.  Many libraries contain a runtime that they never use, so it is reported only when it
 * requests private tables from the driver, which each runtime does at its first use. */
struct unknown_runtime {
	const struct link_map *map;
	char version[16]; /* result of toolkit_version() */
	struct unknown_runtime *next;
};

static struct unknown_runtime *unknown;
static pthread_mutex_t unknown_lock = PTHREAD_MUTEX_INITIALIZER; /* needed because the driver may call explain_refused() on any thread */

static void add_unknown(const struct link_map *map, struct mapped object, const char *path)
{
	struct unknown_runtime *u = calloc(1, sizeof *u);

	gpul_log(GPUL_LOG_INFO, "redirect",
		 "%s contains NVIDIA's CUDA runtime without symbols, and no libcudart_static.a of the same version was found", path);
	if (!u)
		return;
	u->map = map;
	toolkit_version(object, u->version);
	pthread_mutex_lock(&unknown_lock);
	u->next = unknown;
	unknown = u;
	pthread_mutex_unlock(&unknown_lock);
}

/* Remove the unknown runtime of an object from the list; the caller frees it.  NULL: the runtime is known, or was already reported. */
static struct unknown_runtime *take_unknown(uintptr_t map)
{
	struct unknown_runtime *u;

	pthread_mutex_lock(&unknown_lock);
	for (struct unknown_runtime **at = &unknown; (u = *at); at = &u->next)
		if ((uintptr_t)u->map == map) {
			*at = u->next;
			break;
		}
	pthread_mutex_unlock(&unknown_lock);
	return u;
}

/* The driver calls this when it refuses a private table (gpuload_soft_refused_table). */
static void explain_refused(const void *caller)
{
	struct unknown_runtime *u;
	struct link_map *map;
	char folder[PATH_MAX];
	Dl_info info;

	if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !(u = take_unknown((uintptr_t)map)))
		return;
	gpul_log(GPUL_LOG_NOTICE, "redirect",
		 "%s contains a copy of NVIDIA's CUDA runtime without symbols, whose calls fail on the software "
		 "driver; with libcudart_static.a of the same version its functions can be found:",
		 path_of(map));
	if (archive_folder(folder))
		gpul_log(GPUL_LOG_NOTICE, "redirect", "python3 -m pip install --no-deps --target '%s/%s' nvidia-cuda-runtime%s%s%s", folder,
			 *u->version ? u->version : "VERSION", strncmp(u->version, "12.", 3) ? "" : "-cu12",
			 *u->version ? "==" : "==VERSION", u->version);
	else
		gpul_log(GPUL_LOG_NOTICE, "redirect", "set GPULOAD_CUDART_STATIC to the path of libcudart_static.a");
	free(u);
}

/* ---- loaded objects -------------------------------------------------------------------------- */

static void redirect_object(const struct link_map *map)
{
	static struct static_runtime r; /* static, because it is large */
	const char *path = path_of(map);
	struct mapped object = { 0 };

	r.n_calls = 0;
	if (!map_file(path, &object))
		return;
	add_symbols(object, SHT_SYMTAB, 0, 0, &r);
	if (!r.n_calls && has_runtime(object)) {
		add_symbols(object, SHT_DYNSYM, 0, 0, &r);
		if (!r.n_calls && !find_by_archive(object, path, &r))
			add_unknown(map, object, path);
	}
	if (r.n_calls)
		redirect_calls(map, object, &r, path);
	unmap_file(&r.names);
	unmap_file(&object);
}

/* ---- the dynamic loader's calls -------------------------------------------------------------- */

EXPORTED unsigned la_version(unsigned version);
EXPORTED unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie);
EXPORTED void la_activity(uintptr_t *cookie, unsigned flag);
EXPORTED unsigned la_objclose(uintptr_t *cookie);

unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

static bool is_ours(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX], real[PATH_MAX];
	size_t n;

	if (!slash || strcmp(slash + 1, name) || !gpul_own_folder(folder, sizeof folder) || !realpath(path, real))
		return false;
	n = strlen(folder);
	return !strncmp(real, folder, n) && real[n] == '/' && !strchr(real + n + 1, '/');
}

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	gpuload_soft_refused_table **refused;

	*cookie = (uintptr_t)map;
	if (namespace != LM_ID_BASE)
		return 0;
	refused = (gpuload_soft_refused_table **)find_export(map, "gpuloadSoftRefusedTable");
	if (refused)
		*refused = explain_refused;
	else if (calls_are_in(map))
		wrappers = map;
	else if (is_ours(map->l_name, "libcudart.so.13"))
		ours_13 = map;
	else if (is_ours(map->l_name, "libcudart.so.12"))
		ours_12 = map;
	/* probably a CUDA runtime, which imports both functions; few other objects do */
	else if (n_pending < MAX_PENDING && imports(map, "__getdelim") && imports(map, "shm_open"))
		pending[n_pending++] = map;
	return 0;
}

void la_activity(uintptr_t *cookie, unsigned flag)
{
	(void)cookie;
	if (flag != LA_ACT_CONSISTENT)
		return;
	for (size_t i = 0; i < n_pending; i++)
		redirect_object(pending[i]);
	n_pending = 0;
}

unsigned la_objclose(uintptr_t *cookie)
{
	for (size_t i = 0; i < n_pending; i++)
		if ((uintptr_t)pending[i] == *cookie)
			pending[i] = pending[--n_pending];
	free(take_unknown(*cookie));
	return 0;
}
