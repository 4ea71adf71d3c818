/* ls_rows.c — collect the kernels of a file as rows, and print them for --group kernel and --sort. */
#include "cli/ls/ls_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/progress.h"
#include "cli/lib/message.h"

#define BLOCK_BYTES 262144 /* the text is written to stdout in blocks of about this size */

/* ---- collecting -------------------------------------------------------------------- */

struct collection {
	struct ls *ls;
	const char *path;
	const gpul_images *images;
	struct ls_rows *rows;
	struct progress progress;
};

static bool is_wanted(const gpul_image *image, void *context)
{
	return image_filter_takes(&((struct collection *)context)->ls->filter, image);
}

static gpul_kernel_param *copy_params(const gpul_kernel_info *k)
{
	gpul_kernel_param *copy = k->n_params ? malloc(k->n_params * sizeof *copy) : NULL;

	return copy ? memcpy(copy, k->params, k->n_params * sizeof *copy) : NULL;
}

static gpul_status add_rows(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
			    gpul_error *err)
{
	struct collection *c = context;

	if (failed) {
		c->ls->failed = true;
		progress_wipe(&c->progress);
		cli_message("ls", "%s: image %zu: %.*s", c->path, ls_image_index(c->images, image), (int)strcspn(failed->text, "\n"),
			    failed->text);
	}
	for (size_t i = 0; i < table->n; i++) {
		const struct cxx_name *name = cxx_names_get(c->ls->names, table->at[i].name);
		struct ls_row *row;

		if (name && !ls_takes_kernel(c->ls, table->at[i].name, name))
			continue;
		row = name ? gpul_array_push(&c->rows->list) : NULL;
		if (!row)
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a list of kernels");
		row->info = table->at[i];
		row->info.name = name->mangled;
		row->info.params = copy_params(&table->at[i]);
		row->cxx = name;
		row->image = ls_image_index(c->images, image);
		row->kind = image->kind;
		row->sm = image->sm;
		gpul_image_arch(image, row->arch);
		if (row->info.n_params && !row->info.params)
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a list of kernels");
	}
	return GPUL_OK;
}

gpul_status ls_rows_collect(struct ls *ls, const char *path, const gpul_images *images, struct ls_rows *out, gpul_error *err)
{
	struct collection c = { .ls = ls, .path = path, .images = images, .rows = out };
	gpul_status st;

	progress_begin(&c.progress, path);
	st = gpul_kernels_visit(images, is_wanted, add_rows, &c, &c.progress.hook, err);
	progress_wipe(&c.progress);
	return st;
}

void ls_rows_free(struct ls_rows *rows)
{
	for (size_t i = 0; i < rows->list.n; i++)
		free((void *)(uintptr_t)rows->list.at[i].info.params);
	gpul_array_free(&rows->list);
}

/* ---- order ------------------------------------------------------------------------- */

/* Return the value by which --sort sorts a row; -1 (unknown) comes last. */
static int64_t sort_value(const struct ls_row *row, enum ls_sort sort)
{
	const gpul_kernel_info *k = &row->info;
	uint32_t value = sort == LS_BY_REGISTERS               ? k->registers
			 : sort == LS_BY_SHARED                ? k->shared_bytes
			 : k->stack_bytes != GPUL_NOT_RECORDED ? k->stack_bytes
							       : k->frame_bytes; /* the stack size is unknown until the code is linked */

	return value == GPUL_NOT_RECORDED ? -1 : (int64_t)value;
}

static const char *shown_name(const struct ls_row *row)
{
	return row->cxx->demangled ? row->cxx->demangled : row->info.name;
}

static int by_image(const struct ls_row *a, const struct ls_row *b)
{
	return a->image < b->image ? -1 : a->image > b->image;
}

static int by_name(const void *a, const void *b)
{
	const struct ls_row *x = a, *y = b;
	int order = strcmp(shown_name(x), shown_name(y));

	order = order ? order : strcmp(x->info.name, y->info.name);
	return order ? order : by_image(x, y);
}

static int by_value(const struct ls_row *x, const struct ls_row *y, enum ls_sort sort)
{
	int64_t a = sort_value(x, sort), b = sort_value(y, sort);

	return a > b ? -1 : a < b ? 1 : by_name(x, y);
}

static int by_registers(const void *a, const void *b)
{
	return by_value(a, b, LS_BY_REGISTERS);
}

static int by_shared(const void *a, const void *b)
{
	return by_value(a, b, LS_BY_SHARED);
}

static int by_stack(const void *a, const void *b)
{
	return by_value(a, b, LS_BY_STACK);
}

typedef int row_order(const void *a, const void *b);

static row_order *order_of(enum ls_sort sort)
{
	return sort == LS_BY_REGISTERS ? by_registers : sort == LS_BY_SHARED ? by_shared : sort == LS_BY_STACK ? by_stack : by_name;
}

/* ---- a list of rows ---------------------------------------------------------------- */

static void print_row(struct json *j, bool json, const struct ls_row *row)
{
	if (!json) {
		out_left(&j->out, gpul_image_kind_name(row->kind), 7);
		out_left(&j->out, row->arch, 8);
		ls_text_kernel(&j->out, &row->info, row->cxx);
		return;
	}
	ls_json_kernel(j, &row->info, row->cxx);
	json_text(j, "kind", gpul_image_kind_name(row->kind));
	json_text(j, "arch", row->arch);
	json_u64(j, "image", row->image);
	json_end(j, '}');
}

/* ---- a group: one kernel for several architectures ----------------------------------- */

struct group {
	const struct ls_row *rows, *first; /* first: the row that comes first in the order of --sort */
	size_t n;
};

/* Write "32", "32-40" or "-" right-aligned: the range of a value over the rows of a group. */
static void out_range(struct out *o, const struct group *g, enum ls_sort sort, size_t width)
{
	int64_t low = -1, high = -1;
	char text[48];
	size_t n;

	for (size_t i = 0; i < g->n; i++) {
		int64_t value = sort_value(&g->rows[i], sort);

		if (value >= 0 && (low < 0 || value < low))
			low = value;
		if (value > high)
			high = value;
	}
	n = (size_t)(low < 0       ? snprintf(text, sizeof text, "-")
		     : low == high ? snprintf(text, sizeof text, "%lld", (long long)low)
				   : snprintf(text, sizeof text, "%lld-%lld", (long long)low, (long long)high));
	out_repeat(o, ' ', n < width ? width - n : 1);
	out_text(o, text);
}

static void print_group(struct json *j, bool json, const struct group *g)
{
	const struct ls_row *first = g->rows;

	if (json) {
		json_begin(j, NULL, '{');
		json_text(j, "name", first->info.name);
		json_text(j, "demangled", shown_name(first));
		json_begin(j, "images", '[');
		for (size_t i = 0; i < g->n; i++)
			print_row(j, true, &g->rows[i]);
		json_end(j, ']');
		json_end(j, '}');
		return;
	}
	out_range(&j->out, g, LS_BY_REGISTERS, 9);
	out_range(&j->out, g, LS_BY_SHARED, 13);
	out_range(&j->out, g, LS_BY_STACK, 11);
	out_text(&j->out, "  ");
	out_name(&j->out, shown_name(first), strlen(shown_name(first)));
	out_text(&j->out, first->info.is_static ? " (static)\n        in" : "\n        in");
	for (size_t i = 0; i < g->n; i++) {
		const struct ls_row *row = &g->rows[i];

		if (i && row->kind == row[-1].kind && !strcmp(row->arch, row[-1].arch))
			continue;
		out_text(&j->out, row->kind == GPUL_IMAGE_PTX ? " ptx:" : " ");
		out_text(&j->out, row->arch);
	}
	out_text(&j->out, "\n");
}

static int by_first(const void *a, const void *b, void *order)
{
	return (*(row_order **)order)(((const struct group *)a)->first, ((const struct group *)b)->first);
}

/* Compare by name, then by kind (machine code before PTX), then by architecture. */
static int by_group(const void *a, const void *b)
{
	const struct ls_row *x = a, *y = b;
	int order = strcmp(x->info.name, y->info.name);

	if (!order)
		order = (int)y->kind - (int)x->kind;
	if (!order)
		order = x->sm < y->sm ? -1 : x->sm > y->sm;
	if (!order)
		order = strcmp(x->arch, y->arch);
	return order ? order : by_image(x, y);
}

/* Sort the rows into groups; *n is set to their number; NULL: no memory. */
static struct group *make_groups(struct ls_rows *rows, enum ls_sort sort, size_t *n)
{
	struct group *groups = calloc(rows->list.n + 1, sizeof *groups), *g = groups;
	row_order *order = order_of(sort);

	*n = 0;
	if (!groups || !rows->list.n)
		return groups;
	qsort(rows->list.at, rows->list.n, sizeof *rows->list.at, by_group);
	for (size_t i = 0; i < rows->list.n; i++) {
		const struct ls_row *row = &rows->list.at[i];

		if (i == 0 || strcmp(row->info.name, row[-1].info.name) != 0) {
			g = &groups[(*n)++];
			*g = (struct group){ row, row, 0 };
		}
		g->n++;
		if (order(row, g->first) < 0)
			g->first = row;
	}
	qsort_r(groups, *n, sizeof *groups, by_first, &order);
	return groups;
}

/* ---- the file ---------------------------------------------------------------------- */

static void begin_file(struct ls *ls, struct json *j, const char *path, const gpul_images *images)
{
	if (ls->json) {
		json_begin(j, NULL, '{');
		json_text(j, "file", path);
		json_begin(j, "kernels", '[');
		return;
	}
	ls_text_head(&j->out, ls, path, images);
	out_text(&j->out, ls->group ? "\n     regs       shared      stack  kernel\n" : "\nkind   arch   " LS_TABLE_HEAD);
}

static gpul_status end_file(struct ls *ls, struct json *j, size_t n_groups, size_t n_rows, gpul_error *err)
{
	if (ls->json) {
		json_end(j, ']');
		json_end(j, '}');
		return json_print(j, err);
	}
	out_text(&j->out, "\n");
	if (ls->group)
		out_add(&j->out, "%zu kernel%s, ", n_groups, n_groups == 1 ? "" : "s");
	out_add(&j->out, "%zu row%s\n", n_rows, n_rows == 1 ? "" : "s");
	return out_flush(&j->out, err);
}

static gpul_status print_all(struct ls *ls, struct json *j, struct ls_rows *rows, const struct group *groups, size_t n, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0; i < n && !st; i++) {
		if (groups)
			print_group(j, ls->json, &groups[i]);
		else
			print_row(j, ls->json, &rows->list.at[i]);
		if (j->out.n > BLOCK_BYTES)
			st = out_flush(&j->out, err);
	}
	return st;
}

gpul_status ls_sorted(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	struct ls_rows rows = { 0 };
	struct group *groups = NULL;
	struct json j = { 0 };
	size_t n;
	gpul_status st = ls_rows_collect(ls, path, images, &rows, err);

	n = rows.list.n;
	if (st)
		goto free_rows;
	if (n == 0 && ls->many)
		goto free_rows;
	if (n == 0)
		ls_report_no_match(ls, path);
	ls->n_matched += n > 0;
	if (ls->group)
		groups = make_groups(&rows, ls->sort, &n);
	else if (n)
		qsort(rows.list.at, n, sizeof *rows.list.at, order_of(ls->sort));
	if (ls->group && !groups) {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for groups of kernels");
		goto free_rows;
	}
	begin_file(ls, &j, path, images);
	st = print_all(ls, &j, &rows, groups, n, err);
	if (st == GPUL_OK)
		st = end_file(ls, &j, n, rows.list.n, err);
free_rows:
	out_free(&j.out);
	free(groups);
	ls_rows_free(&rows);
	return st;
}
