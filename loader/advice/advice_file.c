/* advice_file.c — gives advice on a file with device code that has a problem with its host link or its CUDA runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "loader/advice/advice.h"
#include "loader/names/host_symbols_internal.h"
#include "loader/image/kernels/kernels.h"

#define MAX_BYTES (16u << 20) /* files with more device code are not examined, because that takes too long */
#define MAX_STEPS 2000000     /* no advice if more names must be compared, because that takes too long */

struct names { /* names of kernels that other files may refer to */
	GPUL_ARRAY(char *) list;
	bool linked; /* true: kernels in loadable images; false: kernels in images that must be linked first */
};

static void free_names(struct names *names)
{
	while (names->list.n)
		free(names->list.at[--names->list.n]);
	gpul_array_free(&names->list);
}

static bool is_collected(const gpul_image *image, void *context)
{
	const struct names *names = context;

	return image->origin == GPUL_ORIGIN_REGISTERED && image->relocatable != names->linked;
}

static gpul_status collect_names(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
				 gpul_error *err)
{
	struct names *names = context;

	(void)image, (void)failed, (void)err;
	for (size_t i = 0; i < table->n; i++) {
		char **row = table->at[i].is_static ? NULL : gpul_array_push(&names->list);

		if (row)
			*row = strdup(table->at[i].name);
		if (row ? !*row : !table->at[i].is_static)
			return GPUL_ENOMEM;
	}
	return GPUL_OK;
}

static bool has_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->list.n; i++)
		if (strcmp(names->list.at[i], name) == 0)
			return true;
	return false;
}

/* Find a kernel that the objects contain and the linked code lacks; NULL: none. */
static const char *find_dropped(const struct names *objects, const struct names *linked)
{
	for (size_t i = 0; i < objects->list.n; i++)
		if (!has_name(linked, objects->list.at[i]))
			return objects->list.at[i];
	return NULL;
}

static const char *advise_on_kernels(const gpul_host_object *o, const struct names *objects, const struct names *linked,
				     char buf[GPUL_ADVICE_BYTES])
{
	const char *name = NULL;

	if (linked->list.n > MAX_STEPS / (1 + objects->list.n + gpul_host_n_dynamic(o)))
		return NULL;
	if (o->device_linked)
		name = find_dropped(objects, linked);
	if (name) {
		snprintf(buf, GPUL_ADVICE_BYTES,
			 "%.80s is not in the linked device code: nvcc -dlink drops kernels that no "
			 "host code refers to; -Xnvlink -ignore-host-info keeps them",
			 name);
		return buf;
	}
	if (!o->shared || linked->list.n == 0)
		return NULL;
	for (size_t i = 0; i < linked->list.n; i++)
		if (gpul_host_exports(o, linked->list.at[i]))
			return NULL;
	return "host code of other files cannot refer to these kernels, because since CUDA 13 nvcc hides the stubs "
	       "of a shared library (build with --device-entity-has-hidden-visibility=false); gpuload can "
	       "run them by name";
}

static const char *advise_on_host_file(const gpul_images *images, const gpul_host_object *o, char buf[GPUL_ADVICE_BYTES])
{
	struct names objects = { 0 }, linked = { .linked = true };
	const char *advice = NULL;

	if (gpul_kernels_visit(images, is_collected, collect_names, &linked, NULL, NULL) == GPUL_OK &&
	    (!o->device_linked || gpul_kernels_visit(images, is_collected, collect_names, &objects, NULL, NULL) == GPUL_OK))
		advice = advise_on_kernels(o, &objects, &linked, buf);
	free_names(&objects);
	free_names(&linked);
	return advice;
}

const char *gpul_advice_file(gpul_source *source, char buf[GPUL_ADVICE_BYTES])
{
	gpul_host_object o = { 0 };
	size_t n, n_relocatable = 0, file_bytes;
	const void *file = gpul_source_bytes(source, &file_bytes);
	uint64_t bytes = 0;
	const gpul_images *images;
	const gpul_image *all;

	if (gpul_source_images(source, NULL, &images, NULL))
		return NULL;
	all = gpul_images_all(images, &n);
	for (size_t i = 0; i < n; i++) {
		n_relocatable += all[i].relocatable && *gpul_images_place(images, &all[i])->section;
		bytes += all[i].bytes;
	}
	if (n && n_relocatable == n)
		return "the device code is not linked yet (nvcc -dc): gpuload links it when it loads the file; for a host "
		       "program, run nvcc -dlink OBJECTS -o dlink.o and link dlink.o too, which defines "
		       "__cudaRegisterLinkedBinary_...";
	if (bytes > MAX_BYTES || !gpul_host_read(file, file_bytes, &o))
		return NULL;
	if (n == 0 && o.has_hip_code)
		return "the file has code for AMD GPUs, in its section .hip_fatbin";
	/* only programs with libcudart.so, a static runtime (it opens libcuda.so) or gpuload need device code; /bin/ls does not */
	if (n == 0 && o.linked && (memmem(file, file_bytes, "libcuda", 7) || memmem(file, file_bytes, "libgpuload", 10)))
		return "the host linker takes only those objects of an archive, with their device code, that "
		       "the program refers to; -Wl,--whole-archive adds the others";
	if (n)
		return advise_on_host_file(images, &o, buf);
	return NULL;
}
