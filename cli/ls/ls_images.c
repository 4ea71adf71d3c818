/* ls_images.c — list the images of a file from its tables, without unpacking them. */
#include <stdio.h>
#include <string.h>

#include "cli/lib/message.h"
#include "cli/ls/ls.h"

#define BLOCK_BYTES   262144 /* the text is written to stdout in blocks of about this size */
#define DAMAGED_SHOWN 10     /* maximum number of messages about damaged parts of a file */

/* ---- the first line ---------------------------------------------------------------------- */

struct tally {
	size_t n, of, ptx, cubin, lto;
	/* the architectures in ascending order; CUDA has fewer than 64 */
	struct {
		uint16_t sm;
		char suffix;
	} arch[64];
	size_t n_arch;
};

static void tally_arch(struct tally *t, const gpul_image *image)
{
	size_t i = t->n_arch;

	for (size_t k = 0; k < t->n_arch; k++)
		if (t->arch[k].sm == image->sm && t->arch[k].suffix == image->suffix)
			return;
	if (!image->sm || i == sizeof t->arch / sizeof *t->arch)
		return;
	for (t->n_arch++; i > 0; i--) {
		if (t->arch[i - 1].sm < image->sm || (t->arch[i - 1].sm == image->sm && t->arch[i - 1].suffix < image->suffix))
			break;
		t->arch[i] = t->arch[i - 1];
	}
	t->arch[i].sm = image->sm;
	t->arch[i].suffix = image->suffix;
}

static struct tally count_images(const struct image_filter *filter, const gpul_images *images)
{
	struct tally t = { 0 };
	const gpul_image *all = gpul_images_all(images, &t.of);

	for (size_t i = 0; i < t.of; i++) {
		if (!image_filter_takes(filter, &all[i]))
			continue;
		t.n++;
		t.ptx += all[i].kind == GPUL_IMAGE_PTX;
		t.cubin += all[i].kind == GPUL_IMAGE_CUBIN;
		t.lto += all[i].kind == GPUL_IMAGE_LTO;
		tally_arch(&t, &all[i]);
	}
	return t;
}

static void out_kind(struct out *o, const char **between, size_t n, gpul_image_kind kind)
{
	if (!n)
		return;
	out_text(o, *between);
	out_u64(o, n);
	out_text(o, " ");
	out_text(o, gpul_image_kind_name(kind));
	*between = ", ";
}

void ls_text_head(struct out *o, const struct ls *ls, const char *path, const gpul_images *images)
{
	struct tally t = count_images(&ls->filter, images);
	const char *between = ": ";

	out_name(o, path, strlen(path));
	out_text(o, ": ");
	out_u64(o, t.n);
	if (t.n != t.of) {
		out_text(o, " of ");
		out_u64(o, t.of);
	}
	out_text(o, t.of == 1 ? " image" : " images");
	out_kind(o, &between, t.cubin, GPUL_IMAGE_CUBIN);
	out_kind(o, &between, t.ptx, GPUL_IMAGE_PTX);
	out_kind(o, &between, t.lto, GPUL_IMAGE_LTO);
	between = "; sm_";
	for (size_t i = 0; i < t.n_arch; i++, between = " sm_") {
		out_text(o, between);
		out_u64(o, t.arch[i].sm);
		out_bytes(o, &t.arch[i].suffix, t.arch[i].suffix != 0);
	}
	out_text(o, "\n");
}

/* ---- text -------------------------------------------------------------------------- */

struct widths {
	size_t section, member;
};

/* Find the widths of the columns "section" and "member". */
static struct widths measure_columns(const gpul_images *images, const gpul_image *all, size_t n)
{
	struct widths w = { strlen("section"), 0 };
	uint32_t last = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		const gpul_place *place;
		size_t section, member;

		if (all[i].place == last)
			continue;
		last = all[i].place;
		place = gpul_images_place(images, &all[i]);
		section = strlen(place->section);
		member = place->member ? strlen(place->member) : 0;
		w.section = section > w.section ? section : w.section;
		w.member = member > w.member ? member : w.member;
	}
	return w;
}

static void out_column(struct out *o, const char *text, size_t width)
{
	size_t n = strlen(text);

	out_name(o, text, n);
	out_repeat(o, ' ', n < width ? width - n + 2 : 2);
}

static void out_row(struct out *o, const gpul_images *images, const gpul_image *image, struct widths w)
{
	const gpul_place *place = gpul_images_place(images, image);
	char arch[16];

	out_right(o, ls_image_index(images, image), 6);
	out_right(o, image->unit, 6);
	out_text(o, "  ");
	out_left(o, gpul_image_kind_name(image->kind), 7);
	out_left(o, gpul_image_arch(image, arch), 9);
	out_left(o, gpul_compression_name(image->compression), 6);
	out_right(o, image->stored_bytes, 9);
	out_right(o, image->bytes, 10);
	out_text(o, "  ");
	out_left(o, gpul_origin_name(image->origin), 12);
	if (w.member)
		out_column(o, place->member ? place->member : "-", w.member);
	out_column(o, *place->section ? place->section : "-", w.section);
	out_text(o, image->relocatable ? "relocatable" : "-");
	out_text(o, image->debug ? " debug\n" : "\n");
}

static gpul_status print_table(const struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);
	struct widths w = measure_columns(images, all, n);
	struct out o = { 0 };
	gpul_status st = GPUL_OK;

	ls_text_head(&o, ls, path, images);
	out_text(&o, "\n image  unit  kind   arch     packed   stored     bytes  origin      ");
	if (w.member)
		out_column(&o, "member", w.member > 6 ? w.member : 6);
	out_column(&o, "section", w.section);
	out_text(&o, "notes\n");
	w.member = w.member && w.member < 6 ? 6 : w.member;
	for (size_t i = 0; st == GPUL_OK && i < n; i++) {
		if (image_filter_takes(&ls->filter, &all[i]))
			out_row(&o, images, &all[i], w);
		if (o.n > BLOCK_BYTES)
			st = out_flush(&o, err);
	}
	if (st == GPUL_OK)
		st = out_flush(&o, err);
	out_free(&o);
	return st;
}

/* ---- JSON -------------------------------------------------------------------------- */

static gpul_status print_json(const struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);
	struct json j = { 0 };
	gpul_status st = GPUL_OK;

	json_begin(&j, NULL, '{');
	json_text(&j, "file", path);
	json_begin(&j, "images", '[');
	for (size_t i = 0; st == GPUL_OK && i < n; i++) {
		if (!image_filter_takes(&ls->filter, &all[i]))
			continue;
		ls_json_image_begin(&j, &all[i], gpul_images_place(images, &all[i])->section);
		ls_json_image_end(&j, images, &all[i]);
		if (j.out.n > BLOCK_BYTES)
			st = out_flush(&j.out, err);
	}
	json_end(&j, ']');
	json_end(&j, '}');
	if (st == GPUL_OK)
		st = json_print(&j, err);
	out_free(&j.out);
	return st;
}

gpul_status ls_images(const struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	return ls->json ? print_json(ls, path, images, err) : print_table(ls, path, images, err);
}

bool ls_report_damaged(const char *command, const gpul_images *images)
{
	size_t n;
	const gpul_error *damaged = gpul_images_damaged(images, &n);

	for (size_t i = 0; i < n && i < DAMAGED_SHOWN; i++)
		cli_message(command, "%s", damaged[i].text);
	if (n > DAMAGED_SHOWN)
		cli_message(command, "%zu more parts of the file are damaged", n - DAMAGED_SHOWN);
	return n != 0;
}
