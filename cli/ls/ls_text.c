/* ls_text.c — write an image or a kernel as text. */
#include <stdio.h>
#include <string.h>

#include "cli/lib/message.h"
#include "cli/ls/ls.h"
#include "loader/names/names.h"

#define TYPE_SHOWN 60 /* maximum width of a printed type, in columns; types of nested templates may have thousands */

const char *ls_ptx_type(const gpul_kernel_param *p, char buf[24])
{
	unsigned one = gpul_ptx_type_bytes(p->type);

	if (!p->type)
		return NULL;
	snprintf(buf, 24, ".%.10s", gpul_ptx_mod_text(NULL, p->type));
	if (one && one != p->bytes)
		snprintf(buf + strlen(buf), 24 - strlen(buf), "[%u]", p->bytes / one);
	return buf;
}

void ls_report_no_match(struct ls *ls, const char *path)
{
	if (!ls_selects_kernels(ls) || ls->many)
		return;
	ls->failed = true;
	if (ls->kernel)
		cli_message("ls", "%s: no kernel is named '%s'", path, ls->kernel);
	else
		cli_message("ls", "%s: no kernel matches '%s'", path, ls->filter.match);
}

bool ls_takes_kernel(const struct ls *ls, const char *mangled, const struct cxx_name *name)
{
	if (ls->kernel && strcmp(ls->kernel, mangled) != 0 && !(name && name->demangled && gpul_name_matches(name->demangled, ls->kernel)))
		return false;
	return cxx_name_matches(ls->filter.match, mangled, name);
}

void ls_text_image(struct out *o, const gpul_images *images, const gpul_image *image)
{
	const gpul_place *place = gpul_images_place(images, image);
	char arch[16];

	out_text(o, "image ");
	out_u64(o, ls_image_index(images, image));
	out_text(o, ": ");
	out_text(o, gpul_image_kind_name(image->kind));
	out_text(o, " ");
	out_text(o, gpul_image_arch(image, arch));
	out_text(o, ", ");
	if (place->member) {
		out_name(o, place->member, strlen(place->member));
		out_text(o, *place->section ? " " : ", ");
	}
	if (*place->section) {
		out_name(o, place->section, strlen(place->section));
		out_text(o, ", ");
	}
	out_text(o, gpul_origin_name(image->origin));
	if (image->relocatable)
		out_text(o, ", relocatable");
	if (image->debug)
		out_text(o, ", debug");
	out_text(o, ", ");
	if (image->compression != GPUL_COMPRESSION_NONE) {
		out_text(o, gpul_compression_name(image->compression));
		out_text(o, ", ");
		out_u64(o, image->stored_bytes);
		out_text(o, " of ");
	}
	out_u64(o, image->bytes);
	out_text(o, " bytes");
}

void ls_text_build(struct out *o, const gpul_kernel_table *t)
{
	if (!t->ptxas_version)
		return;
	out_text(o, "compiled by ptxas ");
	out_name(o, t->ptxas_version, strlen(t->ptxas_version));
	out_text(o, " ");
	out_name(o, t->ptxas_options, strlen(t->ptxas_options));
	out_text(o, "\n");
}

/* Format dimensions as "2,1,1". */
static void format_dims(char buf[40], const uint32_t d[3])
{
	snprintf(buf, 40, "%u,%u,%u", d[0], d[1] ? d[1] : 1, d[2] ? d[2] : 1);
}

static uint64_t product(const uint32_t d[3])
{
	return (uint64_t)d[0] * (d[1] ? d[1] : 1) * (d[2] ? d[2] : 1);
}

static void out_type(struct out *o, const char *type, size_t n)
{
	out_name(o, type, n > TYPE_SHOWN ? TYPE_SHOWN - 3 : n);
	if (n > TYPE_SHOWN)
		out_text(o, "...");
}

/* ---- a table row per kernel ----------------------------------------------------------------------- */

static void out_number(struct out *o, uint32_t value, size_t width)
{
	if (value == GPUL_NOT_RECORDED) {
		out_repeat(o, ' ', width - 1);
		out_text(o, "-");
	} else {
		out_right(o, value, width);
	}
}

static void out_word(struct out *o, const char *text, size_t width)
{
	size_t n = strlen(text);

	out_repeat(o, ' ', n < width ? width - n : 0);
	out_text(o, text);
}

static void out_threads(struct out *o, const gpul_kernel_info *k)
{
	char buf[24];

	if (k->required_threads[0]) {
		snprintf(buf, sizeof buf, "=%llu", (unsigned long long)product(k->required_threads));
		out_word(o, buf, 9);
	} else if (k->max_threads[0]) {
		out_right(o, product(k->max_threads), 9);
	} else {
		out_word(o, "-", 9);
	}
}

static void out_params(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name)
{
	const gpul_cxx_param *types = cxx_name_types(name, k);
	char buf[24];

	for (uint32_t i = 0; i < k->n_params; i++) {
		const gpul_kernel_param *p = &k->params[i];

		out_text(o, i ? ", " : "        takes ");
		out_u64(o, p->offset);
		out_text(o, ":");
		out_u64(o, p->bytes);
		if (types || ls_ptx_type(p, buf))
			out_text(o, " ");
		if (types)
			out_type(o, types[i].text, types[i].text_bytes);
		else if (ls_ptx_type(p, buf))
			out_text(o, buf);
	}
	if (k->n_params)
		out_text(o, "\n");
}

static void out_kernel_name(struct out *o, const char *mangled, const struct cxx_name *name)
{
	if (name && name->demangled)
		out_name(o, name->demangled, name->n_demangled);
	else
		out_name(o, mangled, strlen(mangled));
}

void ls_text_kernel(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name)
{
	char cluster[40] = "-";

	if (k->cluster[0])
		format_dims(cluster, k->cluster);
	out_number(o, k->registers, 6);
	out_right(o, k->shared_bytes, 8);
	out_number(o, k->stack_bytes, 7);
	out_number(o, k->frame_bytes, 7);
	out_number(o, k->const_bytes, 7);
	out_threads(o, k);
	out_word(o, cluster, 9);
	out_text(o, "  ");
	out_kernel_name(o, k->name, name);
	out_text(o, k->is_static ? " (static)\n" : "\n");
	out_params(o, k, name);
}

/* ---- a paragraph per kernel ------------------------------------------------------------------------ */

static void out_page_params(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name)
{
	const gpul_cxx_param *types = cxx_name_types(name, k);
	char buf[24];

	if (k->n_params)
		out_text(o, "  param  offset  bytes  type\n");
	for (uint32_t i = 0; i < k->n_params; i++) {
		const gpul_kernel_param *p = &k->params[i];

		out_right(o, i, 7);
		out_right(o, p->offset, 8);
		out_right(o, p->bytes, 7);
		out_text(o, "  ");
		if (types)
			out_type(o, types[i].text, types[i].text_bytes);
		else
			out_text(o, ls_ptx_type(p, buf) ? buf : "-");
		out_text(o, "\n");
	}
}

static void out_page_limits(struct out *o, const gpul_kernel_info *k)
{
	char dims[40];

	if (k->required_threads[0]) {
		format_dims(dims, k->required_threads);
		out_text(o, "  block      must be ");
		out_text(o, dims);
		out_text(o, "\n");
	} else if (k->max_threads[0]) {
		out_text(o, "  block      at most ");
		out_u64(o, product(k->max_threads));
		out_text(o, " threads\n");
	}
	if (k->cluster[0]) {
		format_dims(dims, k->cluster);
		out_text(o, "  cluster    ");
		out_text(o, dims);
		out_text(o, "\n");
	}
}

void ls_text_page(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name)
{
	out_text(o, "\n");
	out_kernel_name(o, k->name, name);
	out_text(o, k->is_static ? " (static)\n" : "\n");
	if (name && name->demangled) {
		out_text(o, "  symbol     ");
		out_name(o, k->name, strlen(k->name));
		out_text(o, "\n");
	}
	out_text(o, "  registers  ");
	out_number(o, k->registers, 1);
	out_text(o, "\n  memory     ");
	out_u64(o, k->shared_bytes);
	out_text(o, " bytes shared, ");
	out_number(o, k->stack_bytes, 1);
	out_text(o, " stack, ");
	out_number(o, k->frame_bytes, 1);
	out_text(o, " frame, ");
	out_number(o, k->const_bytes, 1);
	out_text(o, " const\n");
	out_page_limits(o, k);
	out_page_params(o, k, name);
}
