/* ls_diff.c — gpuload ls --diff OLD NEW: prints which kernels are gone, new or changed. */
#include <stdlib.h>
#include <string.h>

#include "cli/ls/ls_rows.h"
#include "loader/image/source.h"

enum { REGISTERS, SHARED, STACK, FRAME, CONST, N_VALUES };

static const char *const value_names[N_VALUES] = { "registers", "shared_bytes", "stack_bytes", "frame_bytes", "const_bytes" };
static const char *const value_words[N_VALUES] = { "registers", "shared", "stack", "frame", "const" };

static uint32_t value_of(const struct ls_row *row, int value)
{
	const gpul_kernel_info *k = &row->info;

	return value == REGISTERS ? k->registers
	       : value == SHARED  ? k->shared_bytes
	       : value == STACK   ? k->stack_bytes
	       : value == FRAME   ? k->frame_bytes
				  : k->const_bytes;
}

/* Compare two rows by name, kind and architecture; equal rows are the same kernel. */
static int by_kernel(const void *a, const void *b)
{
	const struct ls_row *x = a, *y = b;
	int order = strcmp(x->info.name, y->info.name);

	if (!order)
		order = (int)x->kind - (int)y->kind;
	return order ? order : strcmp(x->arch, y->arch);
}

/* A file may have a kernel twice for one architecture: sort by the values, too, so that equal kernels of two files are paired. */
static int by_kernel_and_values(const void *a, const void *b)
{
	int order = by_kernel(a, b);

	for (int i = 0; !order && i < N_VALUES; i++) {
		uint32_t x = value_of(a, i), y = value_of(b, i);

		order = x < y ? -1 : x > y;
	}
	return order;
}

static bool is_changed(const struct ls_row *old, const struct ls_row *now)
{
	for (int i = 0; i < N_VALUES; i++)
		if (value_of(old, i) != value_of(now, i))
			return true;
	return old->info.n_params != now->info.n_params;
}

/* ---- one kernel --------------------------------------------------------------------- */

static void out_value(struct out *o, uint32_t value)
{
	if (value == GPUL_NOT_RECORDED)
		out_text(o, "-");
	else
		out_u64(o, value);
}

static void print_text(struct out *o, const struct ls_row *old, const struct ls_row *now)
{
	const struct ls_row *row = now ? now : old;
	const char *name = row->cxx->demangled ? row->cxx->demangled : row->info.name;
	const char *between = "\n        ";

	out_text(o, !old ? "new      " : !now ? "gone     " : "changed  ");
	out_left(o, gpul_image_kind_name(row->kind), 7);
	out_left(o, row->arch, 9);
	out_name(o, name, strlen(name));
	for (int i = 0; old && now && i < N_VALUES; i++) {
		if (value_of(old, i) == value_of(now, i))
			continue;
		out_text(o, between);
		out_text(o, value_words[i]);
		out_text(o, " ");
		out_value(o, value_of(old, i));
		out_text(o, " -> ");
		out_value(o, value_of(now, i));
		between = ", ";
	}
	if (old && now && old->info.n_params != now->info.n_params)
		out_add(o, "%sparameters %u -> %u", between, old->info.n_params, now->info.n_params);
	out_text(o, "\n");
}

static void add_value(struct json *j, const char *key, uint32_t value)
{
	if (value == GPUL_NOT_RECORDED)
		json_null(j, key);
	else
		json_u64(j, key, value);
}

static void print_values(struct json *j, const char *key, const struct ls_row *row)
{
	if (!row) {
		json_null(j, key);
		return;
	}
	json_begin(j, key, '{');
	for (int i = 0; i < N_VALUES; i++)
		add_value(j, value_names[i], value_of(row, i));
	json_u64(j, "params", row->info.n_params);
	json_end(j, '}');
}

static void print_json(struct json *j, const struct ls_row *old, const struct ls_row *now)
{
	const struct ls_row *row = now ? now : old;

	json_begin(j, NULL, '{');
	json_text(j, "change", !old ? "new" : !now ? "gone" : "changed");
	json_text(j, "name", row->info.name);
	json_text(j, "demangled", row->cxx->demangled ? row->cxx->demangled : row->info.name);
	json_text(j, "kind", gpul_image_kind_name(row->kind));
	json_text(j, "arch", row->arch);
	print_values(j, "old", old);
	print_values(j, "new", now);
	json_end(j, '}');
}

/* ---- two files --------------------------------------------------------------------- */

struct counts {
	size_t gone, new_, changed, same;
};

static struct counts compare(struct ls *ls, struct json *j, const struct ls_rows *old, const struct ls_rows *now)
{
	struct counts n = { 0 };
	size_t i = 0, k = 0;

	while (i < old->list.n || k < now->list.n) {
		const struct ls_row *a = i < old->list.n ? &old->list.at[i] : NULL;
		const struct ls_row *b = k < now->list.n ? &now->list.at[k] : NULL;
		int order = !a ? 1 : !b ? -1 : by_kernel(a, b);

		a = order <= 0 ? a : NULL;
		b = order >= 0 ? b : NULL;
		i += a != NULL;
		k += b != NULL;
		n.gone += !b;
		n.new_ += !a;
		if (a && b && !is_changed(a, b)) {
			n.same++;
			continue;
		}
		n.changed += a && b;
		if (ls->json)
			print_json(j, a, b);
		else
			print_text(&j->out, a, b);
	}
	return n;
}

static gpul_status collect(struct ls *ls, const char *path, struct ls_rows *out, gpul_error *err)
{
	const gpul_images *images;
	gpul_source *source = NULL;
	gpul_status st = gpul_source_open(path, &source, err);

	if (st)
		return st;
	st = gpul_source_images(source, NULL, &images, err);
	if (!st)
		st = ls_rows_collect(ls, path, images, out, err);
	if (!st && out->list.n)
		qsort(out->list.at, out->list.n, sizeof *out->list.at, by_kernel_and_values);
	gpul_source_close(source);
	return st;
}

gpul_status ls_diff(struct ls *ls, const char *old, const char *new_, gpul_error *err)
{
	struct ls_rows before = { 0 }, after = { 0 };
	struct json j = { 0 };
	struct counts n;
	gpul_status st = collect(ls, old, &before, err);

	if (!st)
		st = collect(ls, new_, &after, err);
	if (st)
		goto free_rows;
	if (ls->json) {
		json_begin(&j, NULL, '{');
		json_text(&j, "old", old);
		json_text(&j, "new", new_);
		json_begin(&j, "kernels", '[');
	}
	n = compare(ls, &j, &before, &after);
	if (ls->json) {
		json_end(&j, ']');
		json_u64(&j, "same", n.same);
		json_end(&j, '}');
		st = json_print(&j, err);
	} else {
		out_add(&j.out, "%zu gone, %zu new, %zu changed, %zu same\n", n.gone, n.new_, n.changed, n.same);
		st = out_flush(&j.out, err);
	}
free_rows:
	out_free(&j.out);
	ls_rows_free(&before);
	ls_rows_free(&after);
	return st;
}
