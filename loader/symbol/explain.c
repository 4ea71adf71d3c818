/* explain.c — explains why the runtime finds no kernel for a host stub, by examining this process and its files.
 *
 *     stub ── which object contains it? ──┬─ none: it is not an address of host code
 *                                         ├─ another object, which registered it with its own runtime
 *                                         └─ this object: its device code, its kernels, their devices */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/advice/advice.h"
#include "core/demangle.h"
#include "loader/names/host_symbols_internal.h"
#include "loader/image/kernels/kernels.h"
#include "loader/image/source.h"
#include "loader/loader_internal.h"
#include "loader/symbol/symbol.h"

struct runtime_error { /* the error that cudaGetFuncBySymbol returned */
	int native;
	const char *name;
};

struct place { /* the object that contains an address of this process */
	char path[200];
	uint64_t address; /* the address relative to the load address of the object */
	const void *base; /* where the object is mapped */
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
	/* the name of the program is empty; its file is /proc/self/exe */
	snprintf(out->path, sizeof out->path, "%s", *map->l_name ? map->l_name : "/proc/self/exe");
	return true;
}

static const char *base_name(const struct place *p)
{
	const char *slash = strrchr(p->path, '/');

	return strcmp(p->path, "/proc/self/exe") == 0 ? "this program" : slash ? slash + 1 : p->path;
}

/* True if the runtime found no driver that it supports, so that no stub works. */
static bool is_driver_error(int runtime_error)
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

/* True if the loaded libcuda is not NVIDIA's: NVIDIA's runtime then returns "invalid argument" for every call. */
static bool software_driver_is_loaded(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	bool soft = lib && dlsym(lib, "gpuloadSoftLastFault");

	if (lib)
		dlclose(lib);
	return soft;
}

/* ---- the device code of the stub's object ------------------------------------------- */

struct search {
	const char *mangled, *demangled; /* names of the stub; a static kernel may have another mangled name in the device code */
	bool found;
};

/* True if the runtime can load an image; false if the image must be device-linked first. */
static bool can_be_loaded(const gpul_image *image, void *context)
{
	(void)context;
	return !image->relocatable;
}

static gpul_status find_kernel(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
			       gpul_error *err)
{
	struct search *s = context;

	(void)image, (void)failed, (void)err;
	for (size_t i = 0; i < table->n && !s->found; i++) {
		char *name = gpul_demangle(table->at[i].name);

		s->found = strcmp(table->at[i].name, s->mangled) == 0 || (name && strcmp(name, s->demangled) == 0);
		free(name);
	}
	return GPUL_OK;
}

/* List the targets of a file's code, as many as fit: "sm_80, sm_90, PTX for sm_75". */
static void list_targets(const gpul_images *images, char *out, size_t out_bytes)
{
	size_t n, used = 0;
	const gpul_image *all = gpul_images_all(images, &n);

	out[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		char arch[16], text[32];

		snprintf(text, sizeof text, "%s%s", all[i].kind == GPUL_IMAGE_PTX ? "PTX for " : "", gpul_image_arch(&all[i], arch));
		if (all[i].relocatable || strstr(out, text) || used + strlen(text) + 3 > out_bytes)
			continue;
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "", text);
	}
}

static gpul_status explain_code(const struct place *at, gpul_source *source, const gpul_host_object *o, const struct search *s,
				const struct runtime_error *a, gpul_error *err)
{
	const gpul_images *images = NULL;
	struct search search = *s;
	char targets[80] = "";

	if (gpul_source_images(source, NULL, &images, NULL) == GPUL_OK) {
		(void)gpul_kernels_visit(images, can_be_loaded, find_kernel, &search, NULL, NULL);
		list_targets(images, targets, sizeof targets);
	}
	if (!images || search.found)
		return gpul_fail(err, GPUL_EINVAL, a->native,
				 "%s: %.50s has the code of %s for %s; if this device is a different one, add code for it with nvcc "
				 "-gencode",
				 a->name, base_name(at), s->demangled, *targets ? targets : "?");
	if (o->device_linked)
		return gpul_fail(err, GPUL_EINVAL, a->native,
				 "%.60s has a stub in %.60s, but no kernel: nvcc -dlink drops "
				 "kernels that no host code in its inputs refers to; -Xnvlink "
				 "-ignore-host-info keeps them",
				 s->demangled, base_name(at));
	return gpul_fail(err, GPUL_EINVAL, a->native,
			 "%.60s of %.60s is not a __global__ function: its device code has no kernel "
			 "of that name; gpuload ls lists the kernels",
			 s->demangled, base_name(at));
}

static gpul_status explain_object(const struct place *at, gpul_source *source, const gpul_host_object *o, const struct search *s,
				  const struct runtime_error *a, gpul_error *err)
{
	if (!o->has_device_code)
		return gpul_fail(err, GPUL_EINVAL, a->native,
				 "%.60s is in %.60s, which has no device code: compile its .cu with "
				 "nvcc and link the object; from an archive, link with "
				 "-Wl,--whole-archive if nothing refers to it",
				 s->demangled, base_name(at));
	if (o->relocatable_only)
		return gpul_fail(err, GPUL_EINVAL, a->native,
				 "%.60s is in %.60s, whose device code is not linked (nvcc -dc): run "
				 "nvcc -dlink OBJECTS -o dlink.o, and link dlink.o too",
				 s->demangled, base_name(at));
	return explain_code(at, source, o, s, a, err);
}

static gpul_status explain_place(const struct place *at, const struct place *caller, const struct runtime_error *a, gpul_error *err)
{
	gpul_host_object o = { 0 };
	gpul_source *source = NULL;
	size_t n_bytes;
	const void *bytes = gpul_source_open(at->path, &source, NULL) ? NULL : gpul_source_bytes(source, &n_bytes);
	bool read = bytes && gpul_host_read(bytes, n_bytes, &o);
	const char *symbol = read ? gpul_host_function_at(&o, at->address) : NULL;
	char *demangled = symbol ? gpul_demangle(symbol) : NULL;
	struct search search = { .mangled = symbol ? symbol : "that address" };
	gpul_status st;

	search.demangled = demangled ? demangled : search.mangled;
	if (read && o.has_device_code && at->base != caller->base && !gpul_host_imports(&o, "__cudaRegisterFunction"))
		st = gpul_fail(err, GPUL_EINVAL, a->native,
			       "%.60s is a stub of %.50s, which registered it with its private CUDA "
			       "runtime: link both with the shared runtime (nvcc -cudart shared), or "
			       "call a function there that launches it",
			       search.demangled, base_name(at));
	else
		st = explain_object(at, source, &o, &search, a, err);
	free(demangled);
	gpul_source_close(source);
	return st;
}

gpul_status gpul_symbol_explain(const void *stub, int runtime_error, const char *name, gpul_error *err)
{
	struct place at, caller;

	if (!stub)
		return gpul_fail(err, GPUL_EINVAL, runtime_error,
				 "the host stub is NULL; if dlsym() did not find it: since CUDA 13 shared "
				 "libraries hide their stubs, so link the archive (-l:libNAME.a), or "
				 "build with nvcc --device-entity-has-hidden-visibility=false");
	if (is_driver_error(runtime_error) || (runtime_error == cudaErrorInvalidValue && software_driver_is_loaded()))
		return gpul_fail(err, GPUL_EINVAL, runtime_error,
				 "%s: NVIDIA's CUDA runtime works only with NVIDIA's driver of the "
				 "same or a newer version; for the software driver build with nvcc "
				 "-cudart none and link libgpuload-rt.a",
				 name);
	if (!find_place(stub, &at))
		return gpul_fail(err, GPUL_EINVAL, runtime_error,
				 "%p is not in a program or library of this process: a host stub is "
				 "the address of a __global__ function in host code",
				 stub);
	find_place(__builtin_return_address(0), &caller);
	return explain_place(&at, &caller, &(struct runtime_error){ runtime_error, name }, err);
}
