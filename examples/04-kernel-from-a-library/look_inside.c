/* look_inside.c — finds a kernel in any library, and prints its parameters and resources.
 *
 *     look_inside [LIBRARY [NAME]]      default: libnccl.so.2, found by the dynamic linker, and
 *                                      ncclDevKernel_AllReduce
 *
 *     library ── gpul_source_images: lists the device code ── gpul_select: selects the images for this GPU
 *             ── gpul_kernels_visit: finds the first kernel whose name contains NAME
 *             ── gpul_module_load_file: with NVIDIA's driver, loads it and compares the numbers
 *
 * Exits with status 77 if the library is not found. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/context.h"
#include "core/demangle.h"
#include "loader/image/kernels/kernels.h"
#include "loader/image/source.h"
#include "loader/loader.h"
#include "loader/choose/select.h"

enum { MOST_PARAMS = 16, NAME_BYTES = 512, NOT_THERE = 77 };

struct found {
	const char *wanted;           /* a part of the kernel's name */
	const gpul_image *first;      /* the first image of the file */
	const gpul_verdict *verdicts; /* one verdict for each image: whether it is selected for this GPU */
	bool relocatable;             /* true: search relocatable images, whose register numbers are not final */

	char name[NAME_BYTES], arch[16];
	gpul_kernel_info info; /* the kernel; name and params point to the copies in this struct */
	gpul_kernel_param params[MOST_PARAMS];
	uint32_t n_kernels; /* number of kernels in all searched images */
};

/* Find the path from which the dynamic linker loads a library, by opening and closing the library. */
static bool find_library(const char *name, char *path, size_t path_bytes)
{
	struct link_map *map = NULL;
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

	if (!lib)
		return false;
	if (dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 && map)
		snprintf(path, path_bytes, "%s", map->l_name);
	dlclose(lib);
	return map != NULL;
}

/* ---- the kernel, in the file -------------------------------------------------------- */

static bool is_selected(const gpul_image *image, void *context)
{
	const struct found *f = context;

	return f->verdicts[image - f->first] == GPUL_TAKEN && image->relocatable == f->relocatable;
}

static gpul_status keep_first_match(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
				    gpul_error *err)
{
	struct found *f = context;

	if (failed)
		return gpul_fail(err, failed->status, failed->native, "%s", failed->text);
	f->n_kernels += (uint32_t)table->n;
	for (size_t i = 0; i < table->n && !f->info.name; i++) {
		const gpul_kernel_info *k = &table->at[i];

		if (!strstr(k->name, f->wanted) || strlen(k->name) >= NAME_BYTES)
			continue;
		f->info = *k; /* a copy, because the table is freed after this call */
		f->info.n_params = k->n_params < MOST_PARAMS ? k->n_params : MOST_PARAMS;
		memcpy(f->params, k->params, f->info.n_params * sizeof *k->params);
		f->info.name = strcpy(f->name, k->name);
		f->info.params = f->params;
		gpul_image_arch(image, f->arch);
	}
	return GPUL_OK;
}

static gpul_status find_kernel(const char *path, uint32_t cc, struct found *f, gpul_error *err)
{
	const gpul_target target = { .cc = cc, .machine_code = true };
	gpul_source *source = NULL;
	const gpul_images *images;
	gpul_verdict *verdicts;
	size_t n, n_embedded = 0;
	gpul_status st = gpul_source_open(path, &source, err);

	if (!st)
		st = gpul_source_images(source, NULL, &images, err);
	if (st) {
		gpul_source_close(source);
		return st;
	}
	f->first = gpul_images_all(images, &n);
	for (size_t i = 0; i < n; i++)
		n_embedded += f->first[i].origin == GPUL_ORIGIN_EMBEDDED;
	printf("%s: %zu images of device code, %zu of them in plain data\n", path, n, n_embedded);
	verdicts = calloc(n + 1, sizeof *verdicts);
	if (verdicts) {
		gpul_select(images, &target, verdicts);
		f->verdicts = verdicts;
		st = gpul_kernels_visit(images, is_selected, keep_first_match, f, NULL, err);
		f->relocatable = true; /* an archive may contain only relocatable images */
		if (!st && !f->info.name)
			st = gpul_kernels_visit(images, is_selected, keep_first_match, f, NULL, err);
	} else {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu verdicts", n);
	}
	if (!st && !f->info.name)
		st = gpul_fail(err, GPUL_EINVAL, 0, "%u kernels for sm_%u, none with '%s' in its name", f->n_kernels, cc, f->wanted);
	free(verdicts);
	gpul_source_close(source);
	return st;
}

static void print_kernel(const struct found *f)
{
	const gpul_kernel_info *k = &f->info;
	char *demangled = gpul_demangle(k->name);

	printf("%u kernels for this GPU; the first with '%s' in its name, as %s:\n%s\n", f->n_kernels, f->wanted, f->arch,
	       demangled ? demangled : k->name);
	free(demangled);
	for (uint32_t i = 0; i < k->n_params; i++)
		printf("  parameter %u: %u bytes at offset %u\n", i, k->params[i].bytes, k->params[i].offset);
	if (k->registers != GPUL_NOT_RECORDED)
		printf("  %u registers a thread, ", k->registers);
	printf("%u bytes of shared memory, ", k->shared_bytes);
	if (k->stack_bytes != GPUL_NOT_RECORDED)
		printf("%u bytes of stack, ", k->stack_bytes);
	if (k->max_threads[0])
		printf("blocks of %u threads at most\n", k->max_threads[0]);
	else
		printf("blocks of any size\n");
}

/* ---- the kernel, on the device ------------------------------------------------------- */

/* Query an attribute of the loaded kernel, and compare it with the file's number. */
static gpul_status compare_attribute(const gpul_driver *drv, CUfunction fn, CUfunction_attribute which, const char *what, uint32_t expected,
				     gpul_error *err)
{
	int value;
	gpul_status st = gpul_cu(drv, err, cuFuncGetAttribute(&value, which, fn));

	if (st)
		return st;
	printf("  the driver reports %d %s\n", value, what);
	if (expected != GPUL_NOT_RECORDED && (uint32_t)value != expected)
		return gpul_fail(err, GPUL_EFORMAT, value, "the file contains %u %s, the driver reports %d", expected, what, value);
	return GPUL_OK;
}

static gpul_status load_and_compare(const gpul_driver *drv, const char *path, const struct found *f, gpul_error *err)
{
	const gpul_load_options options = { .kernel = f->name };
	gpul_module *m;
	const gpul_kernel *k;
	CUfunction fn;
	gpul_status st = gpul_module_load_file(drv, path, &options, &m, err);

	if (st)
		return st;
	st = gpul_kernel_find(m, f->name, &k, err);
	if (!st)
		st = gpul_kernel_function(k, &fn, err);
	if (!st)
		st = compare_attribute(drv, fn, CU_FUNC_ATTRIBUTE_NUM_REGS, "registers", f->info.registers, err);
	if (!st)
		st = compare_attribute(drv, fn, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, "bytes of shared memory", f->info.shared_bytes, err);
	gpul_module_unload(m);
	return st;
}

int main(int argc, char **argv)
{
	static struct found f;
	char path[1024] = "";
	const char *library = argc > 1 ? argv[1] : "libnccl.so.2";
	const gpul_driver *drv;
	gpul_context context = { 0 };
	int major = 0, minor = 0;
	gpul_error err = { 0 };
	gpul_status st;

	f.wanted = argc > 2 ? argv[2] : "ncclDevKernel_AllReduce";
	if (strchr(library, '/'))
		snprintf(path, sizeof path, "%s", library);
	else if (!find_library(library, path, sizeof path)) {
		printf("skipped: %s was not found; give the path of another library\n", library);
		return NOT_THERE;
	}
	st = gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err);
	if (!st)
		st = gpul_context_open(drv, 0, &context, &err);
	if (!st)
		st = gpul_cu(drv, &err, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, context.device));
	if (!st)
		st = gpul_cu(drv, &err, cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, context.device));
	if (!st)
		st = find_kernel(path, (uint32_t)(10 * major + minor), &f, &err);
	if (!st)
		print_kernel(&f);
	if (!st && strcmp(drv->name, "nvidia") == 0)
		st = load_and_compare(drv, path, &f, &err);
	else if (!st)
		printf("  not loaded: the software driver cannot run machine code\n");
	gpul_context_close(&context);
	if (st)
		fprintf(stderr, "look_inside: %s\n", err.text);
	return st != GPUL_OK;
}
