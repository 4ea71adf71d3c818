/* advice_file.c — what is likely to surprise the user of a file with device code: what its host
 * linker, or its CUDA runtime, will make of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/advice/advice.h"
#include "loader/names/host_symbols_internal.h"
#include "loader/image/kernels/kernels.h"

#define MOST_BYTES (16u << 20) /* of device code: beyond, looking through it takes too long */
#define MOST_STEPS 2000000     /* of comparing names with names: the same */

struct names { /* of kernels that other files may name */
	char **at;
	size_t n, room;
	bool linked; /* collect from images that can be loaded; else from those that cannot */
};

static bool add_name(struct names *names, const char *name)
{
	if (names->n == names->room) {
		size_t room = names->room ? 2 * names->room : 16;
		char **grown = realloc(names->at, room * sizeof *grown);

		if (!grown)
			return false;
		names->at = grown;
		names->room = room;
	}
	names->at[names->n] = strdup(name);
	return names->at[names->n] && ++names->n;
}

static void free_names(struct names *names)
{
	while (names->n)
		free(names->at[--names->n]);
	free(names->at);
}

static bool is_collected(const gpul_image *image, void *context)
{
	const struct names *names = context;

	return image->origin == GPUL_ORIGIN_REGISTERED && image->relocatable != names->linked;
}

static gpul_status collect(const gpul_image *image, const gpul_kernel_table *table,
			   const gpul_error *failed, void *context, gpul_error *err)
{
	(void)image, (void)failed, (void)err;
	for (size_t i = 0; i < table->n; i++)
		if (!table->at[i].is_static && !add_name(context, table->at[i].name))
			return GPUL_ENOMEM;
	return GPUL_OK;
}

static bool has_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->at[i], name) == 0)
			return true;
	return false;
}

/* A kernel of the objects that the device link left out; NULL: none. */
static const char *dropped(const struct names *objects, const struct names *linked)
{
	for (size_t i = 0; i < objects->n; i++)
		if (!has_name(linked, objects->at[i]))
			return objects->at[i];
	return NULL;
}

static const char *of_kernels(const gpul_host_object *o, const struct names *objects,
			      const struct names *linked, char buf[GPUL_ADVICE_BYTES])
{
	const char *name = NULL;

	if (linked->n > MOST_STEPS / (1 + objects->n + gpul_host_n_dynamic(o)))
		return NULL;
	if (o->device_linked)
		name = dropped(objects, linked);
	if (name) {
		snprintf(buf, GPUL_ADVICE_BYTES,
			 "%.80s is not in the linked device code: nvcc -dlink drops kernels that no "
			 "host code refers to; -Xnvlink -ignore-host-info keeps them",
			 name);
		return buf;
	}
	if (!o->shared || linked->n == 0)
		return NULL;
	for (size_t i = 0; i < linked->n; i++)
		if (gpul_host_exports(o, linked->at[i]))
			return NULL;
	return "host code of other files cannot name these kernels: since CUDA 13 nvcc hides the stubs "
	       "of a shared library, but with --device-entity-has-hidden-visibility=false; by name "
	       "they can be run all the same";
}

static const char *of_host_file(const gpul_images *images, const gpul_host_object *o,
				char buf[GPUL_ADVICE_BYTES])
{
	struct names objects = { 0 }, linked = { .linked = true };
	const char *advice = NULL;

	if (gpul_kernels_visit(images, is_collected, collect, &linked, NULL, NULL) == GPUL_OK &&
	    (!o->device_linked ||
	     gpul_kernels_visit(images, is_collected, collect, &objects, NULL, NULL) == GPUL_OK))
		advice = of_kernels(o, &objects, &linked, buf);
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
		return "not linked yet (nvcc -dc): gpuload links it by itself; a host program needs nvcc "
		       "-dlink OBJECTS -o dlink.o, and dlink.o beside them, or its linker misses "
		       "__cudaRegisterLinkedBinary_...";
	if (bytes > MOST_BYTES || !gpul_host_read(file, file_bytes, &o))
		return NULL;
	if (n == 0 && o.linked)
		return "of an archive only those objects are linked that something refers to, and their "
			 "device code with them; -Wl,--whole-archive brings the others";
	else if (n)
		return of_host_file(images, &o, buf);
	return NULL;
}
