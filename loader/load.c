/* load.c — loads a module from sources: PTX, CUDA C++, or files with images.
 *
 *     PTX                ─────────────────────────────────────┐
 *     CUDA C++           ── choose/compile_source.c: NVRTC ───┤
 *     anything else      ── choose/choose.c: the image ───────┼── loader_module.c: load into the driver
 *       or several files ── choose/, link/link_choice.c ──────┘ */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/choose/choose_internal.h"
#include "loader/link/link_choice_internal.h"
#include "loader/loader_internal.h"

static const gpul_load_options defaults;

/* ---- text -------------------------------------------------------------------------- */

/* Report a source's only image to options->explain (gpuload run --explain), although there was nothing to choose. */
static void explain_text(const gpul_module *m, bool compiled, const char *name, const gpul_load_options *options)
{
	char line[500];

	if (!options->explain)
		return;
	snprintf(line, sizeof line, "%s: %s for sm_%u%.1s, which the driver compiles", name, compiled ? "CUDA C++, compiled to ptx" : "ptx",
		 m->ptx->sm, (const char[]){ m->ptx->sm_suffix, 0 });
	options->explain(options->explain_context, line);
}

static gpul_status fill_from_ptx(gpul_module *m, gpul_source *source, const gpul_load_options *options, gpul_error *err)
{
	gpul_code code = { .kind = GPUL_IMAGE_PTX, .name = gpul_source_name(source) };
	const char *text;
	gpul_status st = gpul_source_text(source, &text, err);

	if (st)
		return st;
	code.bytes = text;
	code.n_bytes = strlen(text);
	st = gpul_module_fill(m, &code, options, err);
	if (!st)
		explain_text(m, false, code.name, options);
	return st;
}

static gpul_status fill_from_cuda(gpul_module *m, gpul_source *source, const gpul_load_options *options, gpul_error *err)
{
	gpul_nvrtc_result ptx = { 0 };
	gpul_status st = gpul_compile_source(source, m->limits.cc, options, false, &ptx, err);

	if (!st)
		st = gpul_module_fill(m,
				      &(gpul_code){ .kind = GPUL_IMAGE_PTX,
						    .bytes = ptx.image,
						    .n_bytes = ptx.image_bytes,
						    .name = gpul_source_name(source) },
				      options, err);
	if (!st)
		explain_text(m, true, gpul_source_name(source), options);
	gpul_nvrtc_result_free(&ptx);
	return st;
}

/* ---- images ------------------------------------------------------------------------ */

static gpul_status fill_from_image(gpul_module *m, const gpul_chosen *chosen, const gpul_load_options *options, gpul_error *err)
{
	const gpul_image *image = chosen->image;
	gpul_unpacked unpacked = { 0 };
	char name[400];
	gpul_status st = gpul_input_unpack(chosen->input, image, &unpacked, err);

	if (!st)
		st = gpul_module_fill(m,
				      &(gpul_code){ image->kind, unpacked.bytes, unpacked.n_bytes,
						    gpul_input_image_name(chosen->input, image, name, sizeof name), image->options,
						    image->options_bytes },
				      options, err);
	if (!st)
		gpul_beside_keep(m, chosen->input->images, image);
	gpul_unpacked_free(&unpacked);
	return st;
}

static gpul_status fill_by_linking(gpul_module *m, const gpul_choice *c, gpul_error *err)
{
	gpul_linked linked = { 0 };
	gpul_status st = gpul_link_choice(c, &linked, err);

	if (!st)
		st = gpul_module_fill(
			m, &(gpul_code){ .kind = linked.kind, .bytes = linked.bytes, .n_bytes = linked.n_bytes, .name = c->inputs[0].name },
			c->options, err);
	gpul_linked_free(&linked);
	return st;
}

/* Load the PTX that ptxas stored in a cubin; *found is set to true if the cubin contains exactly one such text. */
static gpul_status fill_from_kept_ptx(gpul_module *m, const gpul_input *in, const gpul_image *image, bool *found,
				      const gpul_load_options *options, gpul_error *err)
{
	gpul_unpacked unpacked = { 0 };
	char *text = NULL, *second = NULL, name[400];
	size_t n_bytes = 0, rest;
	gpul_status st = gpul_input_unpack(in, image, &unpacked, err);

	if (!st)
		st = gpul_cubin_ptx(unpacked.bytes, unpacked.n_bytes, 0, &text, &n_bytes, err);
	if (!st && text)
		st = gpul_cubin_ptx(unpacked.bytes, unpacked.n_bytes, 1, &second, &rest, err);
	*found = !st && text && !second;
	if (*found) {
		gpul_input_image_name(in, image, name, sizeof name);
		st = gpul_module_fill(m, &(gpul_code){ .kind = GPUL_IMAGE_PTX, .bytes = text, .n_bytes = n_bytes, .name = name }, options,
				      err);
		if (!st)
			explain_text(m, false, name, options);
	}
	free(second);
	free(text);
	gpul_unpacked_free(&unpacked);
	return st;
}

/* For the software driver: load the PTX that is stored in the cubin that a GPU would prefer (the last one of equally good cubins).
 * If this cubin has no PTX, fail with why_not. */
static gpul_status fill_from_cubins(gpul_module *m, const gpul_choice *c, gpul_status why_not, gpul_error *err)
{
	const gpul_input *in = NULL;
	const gpul_image *best = NULL;
	gpul_error own = { 0 };
	bool found = false;
	gpul_status st = why_not;

	for (size_t k = 0; k < c->n_inputs; k++)
		for (size_t i = 0; i < c->inputs[k].n; i++) {
			const gpul_image *image = &c->inputs[k].all[i];

			if (c->inputs[k].verdicts[i] == GPUL_LEFT_MACHINE_CODE &&
			    (!best || gpul_select_order(image, best, &c->target) >= 0)) {
				in = &c->inputs[k];
				best = image;
			}
		}
	if (best)
		st = fill_from_kept_ptx(m, in, best, &found, c->options, &own);
	if (!found)
		return why_not;
	if (st)
		*err = own;
	return st;
}

static gpul_status fill_from_choice(gpul_module *m, gpul_choice *c, gpul_error *err)
{
	const gpul_load_options *options = c->options;
	gpul_chosen chosen = { 0 };
	const gpul_kernel *k;
	gpul_status st = gpul_choice_find(c, &chosen, err);

	gpul_choice_explain(c, st ? NULL : &chosen);
	if (!st)
		st = chosen.image ? fill_from_image(m, &chosen, options, err) : fill_by_linking(m, c, err);
	else if (st == GPUL_EUNSUPPORTED && !c->target.machine_code)
		st = fill_from_cubins(m, c, st, err);
	/* Check that the kernel was loaded, because linking may drop a kernel, and the only image of a file is loaded without a search. */
	if (!st && options->kernel)
		st = gpul_kernel_find(m, options->kernel, &k, err);
	return st;
}

static gpul_status fill_from_sources(gpul_module *m, gpul_source *const *sources, size_t n, const gpul_load_options *options,
				     gpul_error *err)
{
	gpul_target target = { .cc = m->limits.cc, .machine_code = m->drv->runs_machine_code };
	gpul_choice c = { 0 };
	gpul_status st = gpul_choice_open(sources, n, &target, options, &c, err);

	if (!st)
		st = fill_from_choice(m, &c, err);
	gpul_choice_close(&c);
	return st;
}

/* ---- any content ------------------------------------------------------------------- */

static gpul_status refuse_content(const gpul_source *source, gpul_error *err)
{
	const char *advice = "expected PTX text, CUDA C++ (.cu), or a file with device code in it: "
			     "cubin, fatbin, .o, .a, .so, program";
	gpul_content content = gpul_source_content(source);

	if (content == GPUL_CONTENT_BITCODE)
		advice = "expected PTX: compile it with llc or nvcc -ptx first";
	if (content == GPUL_CONTENT_HIP || content == GPUL_CONTENT_HSACO)
		advice = "expected code for NVIDIA GPUs";
	return gpul_fail(err, GPUL_EFORMAT, 0, "%s is %s: %s", gpul_source_name(source), gpul_content_text(content), advice);
}

static gpul_status fill_from_one(gpul_module *m, gpul_source *source, const gpul_load_options *options, gpul_error *err)
{
	bool any_image = !options->only_sm && !options->only_kind;

	switch (gpul_source_content(source)) {
	case GPUL_CONTENT_PTX:
		if (any_image)
			return fill_from_ptx(m, source, options, err);
		break;
	case GPUL_CONTENT_CUDA:
		if (any_image)
			return fill_from_cuda(m, source, options, err);
		break;
	case GPUL_CONTENT_CUBIN:
	case GPUL_CONTENT_FATBIN:
	case GPUL_CONTENT_OFFLOAD:
	case GPUL_CONTENT_HOST_ELF:
	case GPUL_CONTENT_ARCHIVE:
		break;
	default:
		return refuse_content(source, err);
	}
	return fill_from_sources(m, &source, 1, options, err);
}

gpul_status gpul_module_load_sources(const gpul_driver *drv, gpul_source *const *sources, size_t n, const gpul_load_options *options,
				     gpul_module **out, gpul_error *err)
{
	const gpul_load_options *o = options ? options : &defaults;
	gpul_module *m = NULL;
	gpul_error why = { 0 };
	gpul_status st = gpul_module_create(drv, o, &m, err), cut = GPUL_OK;

	if (st)
		return st;
	st = n == 1 ? fill_from_one(m, sources[0], o, &why) : fill_from_sources(m, sources, n, o, &why);
	for (size_t i = 0; i < n && !cut; i++)
		cut = gpul_source_check(sources[i], err); /* if the file was truncated, this is the cause of any other error */
	if (st && !cut)
		gpul_fail(err, st, why.native, "%s", why.text);
	st = cut ? cut : st;
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = m;
	return GPUL_OK;
}

gpul_status gpul_module_load_files(const gpul_driver *drv, const char *const *paths, size_t n, const gpul_load_options *options,
				   gpul_module **out, gpul_error *err)
{
	gpul_source **sources = calloc(n, sizeof *sources);
	gpul_status st = GPUL_OK;

	if (!sources)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu files", n);
	for (size_t i = 0; !st && i < n; i++)
		st = gpul_source_open(paths[i], &sources[i], err);
	if (!st)
		st = gpul_module_load_sources(drv, sources, n, options, out, err);
	for (size_t i = 0; i < n; i++)
		gpul_source_close(sources[i]);
	free(sources);
	return st;
}

gpul_status gpul_module_load_file(const gpul_driver *drv, const char *path, const gpul_load_options *options, gpul_module **out,
				  gpul_error *err)
{
	return gpul_module_load_files(drv, &path, 1, options, out, err);
}

gpul_status gpul_module_load_ptx(const gpul_driver *drv, const char *text, size_t text_bytes, const char *name,
				 const gpul_load_options *options, gpul_module **out, gpul_error *err)
{
	const gpul_load_options *o = options ? options : &defaults;
	gpul_source *source = NULL;
	gpul_module *m = NULL;
	gpul_status st = gpul_source_of(text, text_bytes, name, &source, err);

	if (!st)
		st = gpul_module_create(drv, o, &m, err);
	if (!st)
		st = fill_from_ptx(m, source, o, err); /* text that is not PTX fails in the parser */
	gpul_source_close(source);
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = m;
	return GPUL_OK;
}
