/* inputs.c — lists the images of all sources, and gives each image a verdict: whether it is used for the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/choose/choose_internal.h"

/* Compile a CUDA C++ source to relocatable PTX, which is then an image to be linked; called if there are several sources. */
static gpul_status compile_input(gpul_input *in, const gpul_choice *c, gpul_error *err)
{
	gpul_nvrtc_result result = { 0 };
	gpul_status st = gpul_compile_source(in->source, c->target.cc, c->options, true, &result, err);

	in->ptx = result.image;
	result.image = NULL;
	gpul_nvrtc_result_free(&result);
	return st ? st : gpul_source_of(in->ptx, strlen(in->ptx), in->name, &in->compiled, err);
}

static gpul_status open_input(gpul_input *in, gpul_source *source, const gpul_choice *c, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	in->source = source;
	in->name = gpul_source_name(source);
	in->content = gpul_source_content(source);
	if (in->content == GPUL_CONTENT_CUDA)
		st = compile_input(in, c, err);
	if (!st)
		st = gpul_source_images(in->compiled ? in->compiled : source, NULL, &in->images, err);
	if (st)
		return st;
	in->all = gpul_images_all(in->images, &in->n);
	in->verdicts = calloc(in->n + 1, sizeof *in->verdicts);
	if (!in->verdicts)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu images", in->n);
	gpul_select(in->images, &c->target, in->verdicts);
	return GPUL_OK;
}

gpul_status gpul_choice_open(gpul_source *const *sources, size_t n, const gpul_target *target, const gpul_load_options *options,
			     gpul_choice *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*out = (gpul_choice){ .options = options, .target = *target };
	out->target.only_sm = options->only_sm;
	out->target.only_suffix = options->only_suffix;
	out->target.only_kind = options->only_kind;
	out->inputs = calloc(n, sizeof *out->inputs);
	if (!out->inputs)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu files", n);
	for (; !st && out->n_inputs < n; out->n_inputs++)
		st = open_input(&out->inputs[out->n_inputs], sources[out->n_inputs], out, err);
	if (st)
		gpul_choice_close(out);
	return st;
}

void gpul_choice_close(gpul_choice *c)
{
	for (size_t i = 0; i < c->n_inputs; i++) {
		free(c->inputs[i].verdicts);
		gpul_source_close(c->inputs[i].compiled);
		free(c->inputs[i].ptx);
	}
	free(c->inputs);
	*c = (gpul_choice){ 0 };
}

const char *gpul_input_image_name(const gpul_input *in, const gpul_image *image, char *buf, size_t buf_bytes)
{
	const gpul_place *place = gpul_images_place(in->images, image);

	if (place->member)
		snprintf(buf, buf_bytes, "%s(%s)", in->name, place->member);
	else
		snprintf(buf, buf_bytes, "%s", in->name);
	return buf;
}

gpul_status gpul_input_unpack(const gpul_input *in, const gpul_image *image, gpul_unpacked *out, gpul_error *err)
{
	gpul_error why = { 0 };
	char name[200];

	if (gpul_image_unpack(image, out, &why) == GPUL_OK)
		return GPUL_OK;
	return gpul_fail(err, why.status, why.native, "%s: %s", gpul_input_image_name(in, image, name, sizeof name), why.text);
}

bool gpul_choice_links(const gpul_choice *c, const gpul_input *in, size_t i)
{
	bool bare_text = in->content == GPUL_CONTENT_PTX || in->content == GPUL_CONTENT_CUDA;

	if (in->verdicts[i] != GPUL_TAKEN || in->all[i].origin != GPUL_ORIGIN_REGISTERED)
		return false;
	return in->all[i].relocatable || in->all[i].kind == GPUL_IMAGE_LTO || (bare_text && c->n_inputs > 1);
}
