/* ls_json.c — write an image or a kernel as JSON.  cli/ls/README.md lists the members. */
#include <string.h>

#include "cli/ls/ls.h"

void ls_json_image_begin(struct json *j, const gpul_image *image, const char *section)
{
	char arch[16];

	json_begin(j, NULL, '{');
	json_text(j, "kind", gpul_image_kind_name(image->kind));
	json_text(j, "arch", gpul_image_arch(image, arch));
	json_text(j, "origin", gpul_origin_name(image->origin));
	json_text(j, "section", section);
	json_text(j, "compression", gpul_compression_name(image->compression));
	json_bool(j, "relocatable", image->relocatable);
	json_u64(j, "stored_bytes", image->stored_bytes);
	json_u64(j, "bytes", image->bytes);
}

void ls_json_image_end(struct json *j, const gpul_images *images, const gpul_image *image)
{
	const gpul_place *place = images ? gpul_images_place(images, image) : NULL;

	json_u64(j, "index", images ? ls_image_index(images, image) : 0);
	json_u64(j, "unit", image->unit);
	json_u64(j, "offset", image->offset);
	if (place && place->member)
		json_text(j, "member", place->member);
	if (image->debug)
		json_bool(j, "debug", true);
	if (image->options)
		json_chars(j, "ptxas_options", image->options, image->options_bytes);
	json_end(j, '}');
}

/* Add a number, or null if the image does not contain it: PTX, for example, has no register count. */
static void add_number(struct json *j, const char *key, uint32_t value)
{
	if (value == GPUL_NOT_RECORDED)
		json_null(j, key);
	else
		json_u64(j, key, value);
}

static void add_dims(struct json *j, const char *key, const uint32_t dims[3])
{
	if (dims[0])
		json_u32s(j, key, dims, 3);
	else
		json_null(j, key);
}

static void add_params(struct json *j, const gpul_kernel_info *k, const struct cxx_name *name)
{
	const gpul_cxx_param *types = cxx_name_types(name, k);
	char buf[24];

	json_begin(j, "params", '[');
	for (uint32_t i = 0; i < k->n_params; i++) {
		const gpul_kernel_param *p = &k->params[i];

		json_begin(j, NULL, '{');
		json_u64(j, "offset", p->offset);
		json_u64(j, "size", p->bytes);
		if (types)
			json_chars(j, "type", types[i].text, types[i].text_bytes);
		else if (ls_ptx_type(p, buf))
			json_text(j, "type", buf);
		else
			json_null(j, "type");
		json_end(j, '}');
	}
	json_end(j, ']');
}

void ls_json_kernel(struct json *j, const gpul_kernel_info *k, const struct cxx_name *name)
{
	json_begin(j, NULL, '{');
	json_text(j, "name", k->name);
	if (name && name->demangled)
		json_chars(j, "demangled", name->demangled, name->n_demangled);
	else
		json_text(j, "demangled", k->name);
	add_number(j, "registers", k->registers);
	json_u64(j, "shared_bytes", k->shared_bytes);
	add_params(j, k, name);
	add_number(j, "stack_bytes", k->stack_bytes);
	add_number(j, "frame_bytes", k->frame_bytes);
	add_number(j, "const_bytes", k->const_bytes);
	add_number(j, "barriers", k->barriers);
	add_dims(j, "max_threads", k->max_threads);
	add_dims(j, "required_threads", k->required_threads);
	add_dims(j, "cluster", k->cluster);
	json_bool(j, "static", k->is_static);
}
