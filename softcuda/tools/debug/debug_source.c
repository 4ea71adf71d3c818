/* debug_source.c — finds the source positions of instructions, and prints a PTX listing with the same line numbers. */
#include "softcuda/tools/debug/debug_internal.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

#include "core/file/file.h"

static const gpul_ptx_file *find_file(const gpul_ptx_module *m, uint32_t number)
{
	for (uint32_t k = 0; k < m->n_files; k++)
		if (m->files[k].number == number)
			return &m->files[k];
	return NULL;
}

struct place gpul_debug_place(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_module *m = code->program->module;
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	struct place p = { .code = code, .function = gpul_ptx_name(m, code->ptx->name), .ptx_line = in ? in->line : code->ptx->line };
	const gpul_ptx_loc *loc = in && in->loc != GPUL_PTX_NONE ? &m->locs[in->loc] : NULL;
	const gpul_ptx_file *file = loc ? find_file(m, loc->file) : NULL;

	if (file && loc->line) {
		p.file = gpul_ptx_name(m, file->path);
		p.line = loc->line;
	}
	return p;
}

void gpul_debug_ptx_name(const struct gpul_exec_program *p, char *buf, size_t bytes)
{
	const size_t n = strlen(p->file_name);
	const bool is_ptx = n > 4 && !strcmp(p->file_name + n - 4, ".ptx");

	snprintf(buf, bytes, "%s%s", p->file_name, is_ptx ? "" : ".ptx");
}

bool gpul_debug_same_file(const char *a, const char *b)
{
	char real_a[PATH_MAX], real_b[PATH_MAX];

	if (!strcmp(a, b))
		return true;
	if (strcmp(gpul_file_name(a), gpul_file_name(b)) != 0)
		return false;
	if (a == gpul_file_name(a) || b == gpul_file_name(b) || !realpath(a, real_a) || !realpath(b, real_b))
		return true;
	return !strcmp(real_a, real_b);
}

/* ---- the listing -------------------------------------------------------------------------------------------------- */

/* a line of the listing; rank: order of several texts with the same line number */
struct row {
	uint32_t line, rank;
	char *text;
};
typedef GPUL_ARRAY(struct row) rows_array;

static void add_row(rows_array *rows, uint32_t line, char *text)
{
	struct row *r = text ? gpul_array_push(rows) : NULL;

	if (r)
		*r = (struct row){ .line = line, .rank = (uint32_t)rows->n, .text = text };
	else
		free(text);
}

__attribute__((format(printf, 1, 2))) static char *format(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}

static void list_variables(rows_array *rows, const gpul_ptx_module *m, const gpul_ptx_var *v, uint32_t n, const char *indent)
{
	for (uint32_t k = 0; k < n; k++)
		add_row(rows, v[k].line,
			format("%s.%s .%s %s; // %llu bytes", indent, gpul_debug_type_name(v[k].space), gpul_debug_type_name(v[k].type),
			       gpul_ptx_name(m, v[k].name), (unsigned long long)v[k].bytes));
}

static void list_function(rows_array *rows, const gpul_ptx_module *m, const gpul_ptx_func *f)
{
	char text[1024];

	if (!f->has_body)
		return;
	add_row(rows, f->line, format("%s %s", f->kind == GPUL_PTX_FUNC_ENTRY ? ".entry" : ".func", gpul_ptx_name(m, f->name)));
	for (uint32_t k = 0; k < f->n_params; k++)
		add_row(rows, f->params[k].line,
			format("    .param .%s %s", gpul_debug_type_name(f->params[k].type), gpul_ptx_name(m, f->params[k].name)));
	list_variables(rows, m, f->vars, f->n_vars, "    ");
	for (uint32_t k = 0; k < f->n_labels; k++)
		if (f->labels[k].kind == GPUL_PTX_LABEL_CODE)
			add_row(rows, f->labels[k].line, format("%s:", gpul_ptx_name(m, f->labels[k].name)));
	for (uint32_t k = 0; k < f->n_insts; k++) {
		gpul_ptx_print_inst(m, f, &f->insts[k], text, sizeof text);
		add_row(rows, f->insts[k].line, format("    %s", text));
	}
}

static int by_line(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->line != y->line ? (x->line > y->line) - (x->line < y->line) : (x->rank > y->rank) - (x->rank < y->rank);
}

void gpul_debug_listing(FILE *out, const struct gpul_exec_program *p)
{
	enum { MOST_EMPTY = 1000000 }; /* limit of consecutive empty lines, because #line can contain any line number */
	const gpul_ptx_module *m = p->module;
	rows_array rows = { 0 };
	uint32_t line = 1;

	add_row(&rows, 1, format(".version %u.%u .target %s", m->version_major, m->version_minor, gpul_ptx_name(m, m->target)));
	list_variables(&rows, m, m->vars, m->n_vars, "");
	for (uint32_t k = 0; k < m->n_funcs; k++)
		list_function(&rows, m, &m->funcs[k]);
	qsort(rows.at, rows.n, sizeof *rows.at, by_line);
	for (size_t k = 0; k < rows.n; k++) {
		const uint32_t at = rows.at[k].line;

		if (at == line && k)
			putc(' ', out);
		for (uint32_t skipped = 0; line < at && skipped < MOST_EMPTY; line++, skipped++)
			putc('\n', out);
		line = at;
		fputs(rows.at[k].text, out);
		free(rows.at[k].text);
	}
	if (rows.n)
		putc('\n', out);
	gpul_array_free(&rows);
}
