/* load.c — see loader.h: from files to a module.
 *
 *     PTX                ──────────────────────────────┐
 *     CUDA C++           ── NVRTC ─────────────────────┤
 *     anything else      ── choose.c ── the image ─────┼── module.c: kernels, into the driver
 *       or several files ── choose.c ── link.h ────────┘ */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "loader/choose/choose_internal.h"
#include "loader/cache/compile.h"
#include "loader/link/link.h"
#include "loader/loader_internal.h"

static const gpul_load_options defaults;

/* ---- text -------------------------------------------------------------------------- */

/* CUDA C++ for an architecture: NVRTC makes PTX of it. */
static gpul_status compile(const char *source, const char *name, uint32_t cc,
			   const char *const *args, bool no_cache, gpul_nvrtc_result *out,
			   gpul_error *err)
{
	char arch[32];
	gpul_status st;

	snprintf(arch, sizeof arch, "compute_%u", cc);
	st = gpul_compile_cached(source, name, args, arch, no_cache, out, err);
	gpul_loader_log(out->log);
	return st;
}

/* A text is all that there is: nothing to choose, but told all the same. */
static void explain_text(const gpul_module *m, gpul_content kind, const char *name,
			 const gpul_load_options *options)
{
	char line[500];

	if (!options->explain)
		return;
	snprintf(line, sizeof line, "%s: %s for sm_%u%.1s, which the driver compiles", name,
		 kind == GPUL_CONTENT_CUDA ? "CUDA C++, compiled to ptx" : "ptx", m->ptx->sm,
		 (const char[]){ m->ptx->sm_suffix, 0 });
	options->explain(options->explain_context, line);
}

static gpul_status fill_from_text(gpul_module *m, gpul_content kind, const char *text,
				  size_t text_bytes, const char *name,
				  const gpul_load_options *options, gpul_error *err)
{
	gpul_code code = { GPUL_IMAGE_PTX, text, text_bytes, name, NULL, 0 };
	gpul_nvrtc_result result = { 0 };
	gpul_status st = GPUL_OK;

	if (kind == GPUL_CONTENT_CUDA) {
		st = compile(text, name, m->limits.cc, options->nvrtc_args, options->no_cache,
			     &result, err);
		code.bytes = result.image;
		code.n_bytes = result.image_bytes;
	}
	if (!st)
		st = gpul_module_fill(m, &code, options, err);
	if (!st)
		explain_text(m, kind, name, options);
	gpul_nvrtc_result_free(&result);
	return st;
}

static gpul_status load_text(const gpul_driver *drv, gpul_content kind, const char *text,
			     size_t text_bytes, const char *name,
			     const gpul_load_options *options, gpul_module **out,
			     gpul_error *err)
{
	gpul_module *m = NULL;
	gpul_status st = gpul_module_create(drv, options, &m, err);

	if (st)
		return st;
	st = fill_from_text(m, kind, text, text_bytes, name, options, err);
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = m;
	return GPUL_OK;
}

gpul_status gpul_module_load_ptx(const gpul_driver *drv, const char *text, size_t text_bytes,
				 const char *name, const gpul_load_options *options,
				 gpul_module **out, gpul_error *err)
{
	char *copy;
	gpul_status st;

	copy = strndup(text, text_bytes); /* stops at a NUL, as the driver would */
	if (!copy)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes of PTX",
				 text_bytes);
	st = load_text(drv, GPUL_CONTENT_PTX, copy, strlen(copy), name,
		       options ? options : &defaults, out, err);
	free(copy);
	return st;
}

gpul_status gpul_compile_to_link(const char *source, const char *name, uint32_t cc,
				 const gpul_load_options *options, char **out, gpul_error *err)
{
	gpul_nvrtc_result result = { 0 };
	const char **args;
	size_t n = 0;
	gpul_status st;

	while (options->nvrtc_args && options->nvrtc_args[n])
		n++;
	args = calloc(n + 2, sizeof *args);
	if (!args)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the compiler's options");
	for (size_t i = 0; i < n; i++)
		args[i] = options->nvrtc_args[i];
	args[n] = "--relocatable-device-code=true";
	st = compile(source, name, cc, args, options->no_cache, &result, err);
	if (!st) {
		*out = result.image;
		result.image = NULL;
	}
	gpul_nvrtc_result_free(&result);
	free(args);
	return st;
}

/* ---- images ------------------------------------------------------------------------ */

static gpul_status fill_from_image(gpul_module *m, const gpul_chosen *chosen,
				   const gpul_load_options *options, gpul_error *err)
{
	const gpul_image *image = chosen->image;
	gpul_unpacked unpacked = { 0 };
	char name[400];
	gpul_status st = gpul_choice_unpack(chosen->source, image, &unpacked, err);

	if (!st)
		st = gpul_module_fill(
			m,
			&(gpul_code){ image->kind, unpacked.bytes, unpacked.n_bytes,
				      gpul_choice_name(chosen->source, image, name, sizeof name),
				      image->options, image->options_bytes },
			options, err);
	if (!st)
		gpul_beside_keep(m, chosen->source, image);
	gpul_unpacked_free(&unpacked);
	return st;
}

static gpul_status fill_from_choice(gpul_module *m, gpul_choice *c,
				    const gpul_load_options *options, gpul_error *err)
{
	gpul_chosen chosen = { 0 };
	const gpul_kernel *k;
	gpul_status st = gpul_choice_find(c, &chosen, err);

	gpul_choice_explain(c, st ? NULL : &chosen);
	if (!st)
		st = chosen.image ? fill_from_image(m, &chosen, options, err)
				  : gpul_link_choice(m, c, options, err);
	/* Linking may drop it, and of a single image nobody has looked yet. */
	if (!st && options->kernel)
		st = gpul_kernel_find(m, options->kernel, &k, err);
	return st;
}

static gpul_status load_images(const gpul_driver *drv, const char *const *paths, size_t n,
			       gpul_file *first, const gpul_load_options *options,
			       gpul_module **out, gpul_error *err)
{
	gpul_module *m = NULL;
	gpul_choice c = { 0 };
	gpul_target target = { .machine_code = drv->runs_machine_code };
	gpul_status st = gpul_module_create(drv, options, &m, err);

	if (st)
		return st;
	target.cc = m->limits.cc;
	st = gpul_choice_open(paths, n, first, &target, options, &c, err);
	if (!st)
		st = fill_from_choice(m, &c, options, err);
	gpul_choice_close(&c);
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = m;
	return GPUL_OK;
}

static gpul_status refuse(gpul_content kind, const char *path, gpul_error *err)
{
	const char *advice = "expected PTX text, CUDA C++ (.cu), or a file with device code in it: "
			     "cubin, fatbin, .o, .a, .so, program";

	if (kind == GPUL_CONTENT_BITCODE)
		advice = "expected PTX: compile it with llc or nvcc -ptx first";
	return gpul_fail(err, GPUL_EFORMAT, 0, "%.100s is %s: %s", path,
			 gpul_content_text(kind), advice);
}

gpul_status gpul_module_load_file(const gpul_driver *drv, const char *path,
				  const gpul_load_options *options, gpul_module **out,
				  gpul_error *err)
{
	return gpul_module_load_files(drv, &path, 1, options, out, err);
}

static gpul_status load_one(const gpul_driver *drv, const char *path,
			    const gpul_load_options *options, gpul_module **out,
			    gpul_error *err)
{
	bool any_image = !options->only_sm && !options->only_kind;
	gpul_file file = { 0 };
	gpul_content kind;
	gpul_status st = gpul_file_open(path, &file, err);

	if (st)
		return st;
	kind = gpul_recognise(file.bytes, file.n_bytes, path).kind;
	switch (kind) {
	case GPUL_CONTENT_PTX:
	case GPUL_CONTENT_CUDA:
		if (!any_image)
			st = load_images(drv, &path, 1, &file, options, out, err);
		else
			st = load_text(drv, kind, file.bytes, strnlen(file.bytes, file.n_bytes), path,
			       options, out, err);
		break;
	case GPUL_CONTENT_CUBIN:
	case GPUL_CONTENT_FATBIN:
	case GPUL_CONTENT_HOST_ELF:
	case GPUL_CONTENT_ARCHIVE:
		st = load_images(drv, &path, 1, &file, options, out, err);
		break;
	default:
		st = refuse(kind, path, err);
		break;
	}
	gpul_file_close(&file);
	return st;
}

gpul_status gpul_module_load_files(const gpul_driver *drv, const char *const *paths, size_t n,
				   const gpul_load_options *options, gpul_module **out,
				   gpul_error *err)
{
	if (!options)
		options = &defaults;
	return n == 1 ? load_one(drv, paths[0], options, out, err)
		      : load_images(drv, paths, n, NULL, options, out, err);
}
