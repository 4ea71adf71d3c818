/* ls_kernels.c — list the kernels of every image of a file, in file order. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ls/ls.h"
#include "cli/lib/progress.h"
#include "cli/lib/message.h"

#define BLOCK_BYTES   262144 /* the text is written to stdout in blocks of about this size */
#define DAMAGED_SHOWN 10     /* maximum number of messages about damaged images */

struct listing {
	struct ls *ls;
	const char *path;
	const gpul_images *images;
	bool page;        /* the file is a single image: print a paragraph per kernel */
	struct json json; /* json.out is also the buffer for text output */
	struct progress progress;
	size_t n_kernels, n_images, n_damaged;
};

static bool is_wanted(const gpul_image *image, void *context)
{
	const struct listing *l = context;

	return image_filter_takes(&l->ls->filter, image);
}

/* Report a damaged image in one line on stderr; the listing continues. */
static void report_damaged(struct listing *l, const gpul_image *image, const gpul_error *failed)
{
	const gpul_place *place = gpul_images_place(l->images, image);
	char arch[16];

	l->ls->failed = true;
	if (++l->n_damaged > DAMAGED_SHOWN)
		return;
	progress_wipe(&l->progress);
	cli_message("ls", "%s%s%s%s: image %zu (%s %s%s%s) at %" PRIu64 ": %.*s", l->path, place->member ? "(" : "",
		    place->member ? place->member : "", place->member ? ")" : "", ls_image_index(l->images, image),
		    gpul_image_kind_name(image->kind), gpul_image_arch(image, arch), *place->section ? ", " : "", place->section,
		    image->offset, (int)strcspn(failed->text, "\n"), failed->text); /* only the first line of the message */
}

/* ---- one image --------------------------------------------------------------------- */

static void add_table_head(struct listing *l, const gpul_image *image, const gpul_kernel_table *t)
{
	struct out *o = &l->json.out;

	if (!l->page) {
		out_text(o, "\n");
		ls_text_image(o, l->images, image);
		out_text(o, "\n");
	}
	ls_text_build(o, t);
	if (!l->page)
		out_text(o, LS_TABLE_HEAD);
}

static void add_text(struct listing *l, const gpul_image *image, const gpul_kernel_table *t, const gpul_error *failed)
{
	struct out *o = &l->json.out;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct cxx_name *name = cxx_names_get(l->ls->names, t->at[i].name);

		if (!ls_takes_kernel(l->ls, t->at[i].name, name))
			continue;
		if (n++ == 0)
			add_table_head(l, image, t);
		if (l->page)
			ls_text_page(o, &t->at[i], name);
		else
			ls_text_kernel(o, &t->at[i], name);
	}
	l->n_kernels += n;
	if (n || l->page || ls_selects_kernels(l->ls))
		return;
	ls_text_image(o, l->images, image);
	out_text(o, failed                          ? ": damaged\n"
		    : image->kind == GPUL_IMAGE_LTO ? ": LTO code; its kernels are compiled at link time\n"
						    : ": no kernels\n");
}

static void add_json(struct listing *l, const gpul_image *image, const gpul_kernel_table *t, const gpul_error *failed)
{
	struct json *j = &l->json;
	bool begun = false;

	for (size_t i = 0; i <= t->n; i++) {
		const struct cxx_name *name = NULL;

		if (i < t->n) {
			name = cxx_names_get(l->ls->names, t->at[i].name);
			if (!ls_takes_kernel(l->ls, t->at[i].name, name))
				continue;
		} else if (ls_selects_kernels(l->ls)) {
			break;
		}
		if (!begun) {
			const gpul_place *place = gpul_images_place(l->images, image);

			ls_json_image_begin(j, image, place->section);
			json_begin(j, "kernels", '[');
			begun = true;
		}
		if (i < t->n) {
			ls_json_kernel(j, &t->at[i], name);
			json_end(j, '}');
			l->n_kernels++;
		}
	}
	if (!begun)
		return;
	json_end(j, ']');
	if (failed)
		json_text(j, "damaged", failed->text);
	if (t->ptxas_version)
		json_text(j, "ptxas_version", t->ptxas_version);
	if (t->ptxas_options)
		json_text(j, "ptxas_options", t->ptxas_options);
	ls_json_image_end(j, l->images, image);
}

static gpul_status list_image(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
			      gpul_error *err)
{
	struct listing *l = context;

	if (failed)
		report_damaged(l, image, failed);
	l->n_images++;
	if (l->ls->json)
		add_json(l, image, table, failed);
	else
		add_text(l, image, table, failed);
	if (l->json.out.n < BLOCK_BYTES)
		return GPUL_OK;
	progress_wipe(&l->progress);
	return out_flush(&l->json.out, err);
}

/* ---- the file ---------------------------------------------------------------------- */

static void begin_listing(struct listing *l)
{
	if (l->ls->json) {
		json_begin(&l->json, NULL, '{');
		json_text(&l->json, "file", l->path);
		json_begin(&l->json, "images", '[');
	} else {
		ls_text_head(&l->json.out, l->ls, l->path, l->images);
	}
}

static gpul_status end_listing(struct listing *l, gpul_error *err)
{
	if (l->n_damaged > DAMAGED_SHOWN)
		cli_message("ls", "%s: %zu more images are damaged", l->path, l->n_damaged - DAMAGED_SHOWN);
	if (l->n_images && !l->n_kernels && !l->n_damaged)
		ls_report_no_match(l->ls, l->path);
	if (!l->ls->json && l->n_images > 1) {
		out_text(&l->json.out, "\n");
		out_u64(&l->json.out, l->n_kernels);
		out_text(&l->json.out, l->n_kernels == 1 ? " kernel in " : " kernels in ");
		out_u64(&l->json.out, l->n_images);
		out_text(&l->json.out, " images\n");
	}
	if (!l->ls->json)
		return out_flush(&l->json.out, err);
	json_end(&l->json, ']');
	json_end(&l->json, '}');
	return json_print(&l->json, err);
}

gpul_status ls_kernels(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);
	struct listing l = { .ls = ls, .path = path, .images = images };
	gpul_status st;

	l.page = n == 1 && all[0].offset == 0 && !gpul_images_place(images, all)->member;
	begin_listing(&l);
	progress_begin(&l.progress, path);
	st = gpul_kernels_visit(images, is_wanted, list_image, &l, &l.progress.hook, err);
	progress_wipe(&l.progress);
	if (st == GPUL_OK)
		st = end_listing(&l, err);
	out_free(&l.json.out);
	return st;
}
