/* explain.c — why a host stub leads to no kernel, from what this process and its files show.
 *
 *     stub ── which object is it in? ──┬─ none: no address of host code
 *                                      ├─ not the caller's: two runtimes, each knows its own stubs
 *                                      └─ has it device code? which kernels?  for which devices? */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/advice.h"
#include "loader/demangle.h"
#include "loader/host_symbols_internal.h"
#include "loader/loader_internal.h"
#include "loader/symbol.h"

struct answer { /* of the runtime */
	int native;
	const char *name;
};

struct place { /* where an address of this process lies */
	char path[200];
	uint64_t address; /* as the file has it */
	const void *base; /* of the object: one object, one base */
};

static bool find_place(const void *address, struct place *out)
{
	struct link_map *map = NULL;
	Dl_info info;

	*out = (struct place){ 0 };
	if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return false;
	out->base = info.dli_fbase;
	out->address = (uint64_t)((uintptr_t)address - (uintptr_t)map->l_addr);
	/* The program's own name may be anything; this is the file. */
	snprintf(out->path, sizeof out->path, "%s", *map->l_name ? map->l_name : "/proc/self/exe");
	return true;
}

static const char *base_name(const struct place *p)
{
	const char *slash = strrchr(p->path, '/');

	return strcmp(p->path, "/proc/self/exe") == 0 ? "this program"
	       : slash				      ? slash + 1
						      : p->path;
}

/* The runtime found no driver that it works with; which function was asked for does not matter. */
static bool no_driver(int runtime_error)
{
	switch (runtime_error) {
	case cudaErrorInsufficientDriver:
	case cudaErrorStubLibrary:
	case cudaErrorNoDevice:
	case cudaErrorInitializationError:
	case cudaErrorSystemDriverMismatch:
		return true;
	default:
		return false;
	}
}

/* NVIDIA's runtime answers "invalid argument" to everything where libcuda is not NVIDIA's. */
static bool software_driver_is_loaded(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	bool soft = lib && dlsym(lib, "gpuloadSoftLastFault");

	if (lib)
		dlclose(lib);
	return soft;
}

static gpul_status explain_object(const struct place *at, const gpul_host_object *o,
				  const char *name, const struct answer *a, gpul_error *err)
{
	const char *file = base_name(at);

	if (!o->has_device_code)
		return gpul_fail(err, GPUL_EINVAL, a->native,
				 "%.60s is in %.60s, which has no device code: was its .cu compiled "
				 "by nvcc, and its object linked?  From an archive, "
				 "-Wl,--whole-archive brings objects that nothing refers to",
				 name, file);
	if (o->relocatable_only)
		return gpul_fail(err, GPUL_EINVAL, a->native,
				 "%.60s is in %.60s, whose device code waits for its link (nvcc -dc): "
				 "nvcc -dlink OBJECTS -o dlink.o, and link dlink.o too",
				 name, file);
	if (o->device_linked)
		return gpul_fail(err, GPUL_EINVAL, a->native,
				 "the runtime knows no kernel for %.60s of %.60s (%s): nvcc -dlink "
				 "drops kernels that no host code in its inputs refers to: "
				 "-Xnvlink -ignore-host-info keeps them",
				 name, file, a->name);
	return gpul_fail(err, GPUL_EINVAL, a->native,
			 "the runtime knows no kernel for %.60s of %.60s (%s): it is no __global__ "
			 "function, or there is no code for this device: gpuload ls shows which there "
			 "are",
			 name, file, a->name);
}

static gpul_status explain_place(const struct place *at, const struct place *caller,
				 const struct answer *a, gpul_error *err)
{
	gpul_host_object o = { 0 };
	bool read = gpul_host_open(at->path, &o);
	const char *symbol = read ? gpul_host_function_at(&o, at->address) : NULL;
	char *demangled = symbol ? gpul_demangle(symbol) : NULL;
	const char *name = demangled ? demangled : symbol ? symbol : "that address";
	gpul_status st;

	if (read && o.has_device_code && at->base != caller->base &&
	    !gpul_host_imports(&o, "__cudaRegisterFunction"))
		st = gpul_fail(err, GPUL_EINVAL, a->native,
			       "%.60s is a stub of %.50s, which registered it with a CUDA runtime of "
			       "its own: link both with the shared runtime (nvcc -cudart shared), or "
			       "call a function there that launches it",
			       name, base_name(at));
	else
		st = explain_object(at, &o, name, a, err);
	free(demangled);
	if (read)
		gpul_host_close(&o);
	return st;
}

gpul_status gpul_symbol_explain(const void *stub, int runtime_error, const char *name,
				gpul_error *err)
{
	struct place at, caller;

	if (!stub)
		return gpul_fail(err, GPUL_EINVAL, runtime_error,
				 "the host stub is NULL: dlsym() found none?  Since CUDA 13 shared "
				 "libraries hide their stubs: link the archive (-l:libNAME.a), or "
				 "build with nvcc --device-entity-has-hidden-visibility=false");
	if (no_driver(runtime_error) ||
	    (runtime_error == cudaErrorInvalidValue && software_driver_is_loaded()))
		return gpul_fail(err, GPUL_EINVAL, runtime_error,
				 "%.60s: NVIDIA's CUDA runtime works with NVIDIA's driver alone, at "
				 "least as new as itself; for the software driver build with nvcc "
				 "-cudart none and link libgpuload-rt.a",
				 name);
	if (!find_place(stub, &at))
		return gpul_fail(err, GPUL_EINVAL, runtime_error,
				 "%p is in no program or library of this process: a host stub is the "
				 "address of a __global__ function, taken in host code",
				 stub);
	find_place(__builtin_return_address(0), &caller);
	return explain_place(&at, &caller, &(struct answer){ runtime_error, name }, err);
}
