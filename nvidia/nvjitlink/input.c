/* input.c — finds the PTX of an input of a link.
 *
 *     PTX                        the text itself; gpuload's libnvrtc returns it as a "cubin"
 *     fatbin, object, library    the best PTX of each unit; a unit without PTX is left out, and references to its symbols fail
 *     LTO code                   NVIDIA's linker links all LTO code together to PTX */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/images.h"
#include "loader/image/recognise.h"
#include "loader/image/source.h"
#include "nvidia/nvjitlink/nvidia_nvjitlink_internal.h"

static int add_text(struct jl_link *l, const char *text, size_t bytes, const char *name, bool is_library)
{
	struct jl_input in = { .name = strdup(name),
			       .text = strndup(text, bytes),
			       .text_bytes = strnlen(text, bytes),
			       .is_library = is_library },
			*row;

	row = in.name && in.text ? gpul_array_push(&l->inputs) : NULL;
	if (!row) {
		free(in.name);
		free(in.text);
		return JL_INTERNAL;
	}
	*row = in;
	return JL_SUCCESS;
}

static int add_lto(struct jl_link *l, const void *data, size_t bytes, const char *name)
{
	int r = JL_SUCCESS;

	if (!l->real)
		return jl_complain(l, JL_LTO_NOT_ENABLED, "LTO code needs NVIDIA's libnvJitLink: set GPULOAD_NVJITLINK to its path");
	if (!l->is_lto)
		return JL_LTO_NOT_ENABLED; /* NVIDIA's linker has logged this error */
	if (!l->lto)
		r = l->real->Create(&l->lto, l->n_options + 1, (const char *const *)l->options);
	return r ? r : l->real->AddData(l->lto, JL_LTOIR, data, bytes, name);
}

/* ---- fatbins --------------------------------------------------------------------------------- */

/* True if a is better than the best image so far: prefer the highest target up to the link's target, else the lowest above it. */
static bool is_better(const gpul_image *a, const gpul_image *best, unsigned sm)
{
	bool fits = a->sm <= sm;

	if (!best || fits != (best->sm <= sm))
		return !best || fits;
	return (a->sm > best->sm) == fits;
}

/* Replace the target of a PTX text by the link's target.  A library may have PTX only for a newer device, and machine code for the
 * link's target. */
static void lower_target(const struct jl_link *l, struct jl_input *in)
{
	char *target = strstr(in->text, "\n.target "), *end, *text = NULL;

	if (!target)
		return;
	target += strlen("\n.target ");
	end = target + strcspn(target, ", \r\n");
	if (asprintf(&text, "%.*s%s%s", (int)(target - in->text), in->text, l->arch, end) < 0)
		return;
	free(in->text);
	in->text = text;
	in->text_bytes = strlen(text);
}

static int add_unit(struct jl_link *l, const gpul_image *all, size_t n, const char *name, bool is_library)
{
	const char *digits = strchr(l->arch, '_');
	unsigned sm = digits ? (unsigned)atoi(digits + 1) : 0;
	const gpul_image *ptx = NULL, *lto = NULL, *best;
	gpul_unpacked u = { 0 };
	gpul_error err = { 0 };
	int r;

	for (size_t i = 0; i < n; i++) {
		if (all[i].kind == GPUL_IMAGE_PTX && is_better(&all[i], ptx, sm))
			ptx = &all[i];
		if (all[i].kind == GPUL_IMAGE_LTO && is_better(&all[i], lto, sm))
			lto = &all[i];
	}
	best = l->is_lto && lto ? lto : ptx;
	if (!best)
		return JL_SUCCESS;
	if (gpul_image_unpack(best, &u, &err))
		r = jl_complain(l, JL_INVALID_INPUT, err.text);
	else
		r = best == lto ? add_lto(l, u.bytes, u.n_bytes, name) : add_text(l, u.bytes, u.n_bytes, name, is_library);
	if (!r && best == ptx && best->sm > sm)
		lower_target(l, &l->inputs.at[l->inputs.n - 1]);
	gpul_unpacked_free(&u);
	return r;
}

static int add_container(struct jl_link *l, const void *data, size_t bytes, const char *name)
{
	gpul_source *source = NULL;
	const gpul_images *list = NULL;
	const gpul_image *all = NULL;
	gpul_error err = { 0 };
	gpul_status st = gpul_source_of(data, bytes, name, &source, &err);
	bool is_library = !st && gpul_source_content(source) == GPUL_CONTENT_ARCHIVE;
	size_t n = 0, end;
	int r = JL_SUCCESS;

	if (!st)
		st = gpul_source_images(source, NULL, &list, &err);
	if (st)
		r = jl_complain(l, JL_INVALID_INPUT, err.text);
	else
		all = gpul_images_all(list, &n);
	for (size_t i = 0; i < n && !r; i = end) {
		const char *member = gpul_images_place(list, &all[i])->member;

		for (end = i; end < n && all[end].unit == all[i].unit;)
			end++;
		r = add_unit(l, &all[i], end - i, member ? member : name, is_library);
	}
	gpul_source_close(source);
	return r;
}

/* ---- inputs of any type ---------------------------------------------------------------------- */

int jl_real_type(int type, const void *data, size_t bytes)
{
	return type == JL_CUBIN && gpul_recognise(data, bytes, NULL).kind == GPUL_CONTENT_PTX ? JL_PTX : type;
}

int jl_add(struct jl_link *l, int type, const void *data, size_t bytes, const char *name)
{
	if (type == JL_PTX)
		return add_text(l, data, bytes, name, false);
	if (type == JL_LTOIR)
		return add_lto(l, data, bytes, name);
	switch (gpul_recognise(data, bytes, NULL).kind) {
	case GPUL_CONTENT_PTX:
		return add_text(l, data, bytes, name, false);
	case GPUL_CONTENT_HOST_ELF:
	case GPUL_CONTENT_ARCHIVE:
	case GPUL_CONTENT_FATBIN:
		return add_container(l, data, bytes, name);
	case GPUL_CONTENT_CUBIN:
		return jl_complain(
			l, JL_SUCCESS,
			"warning: an input is machine code, which the software driver cannot run: give the linker PTX or LTO code");
	default:
		return type == JL_ANY && l->is_lto ? add_lto(l, data, bytes, name) : JL_UNRECOGNIZED_INPUT;
	}
}
