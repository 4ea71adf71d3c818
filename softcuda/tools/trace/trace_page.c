/* trace_page.c — writes a trace as one HTML page that replays the kernel: page/page.html with style, scripts and record. */
#include <stdlib.h>
#include <string.h>

#include "core/file/embed.h"
#include "core/file/file.h"
#include "softcuda/tools/trace/trace_record_internal.h"

#define PAGE "softcuda/tools/trace/page/"
GPUL_EMBED(page_html, PAGE "page.html");
GPUL_EMBED(page_css, PAGE "page.css");
GPUL_EMBED(rules_js, PAGE "rules.js");
GPUL_EMBED(record_js, PAGE "record.js");
GPUL_EMBED(state_js, PAGE "state.js");
GPUL_EMBED(view_js, PAGE "view.js");
GPUL_EMBED(memory_js, PAGE "memory.js");
GPUL_EMBED(play_js, PAGE "play.js");

/* MOST_BYTES: the record ends at this size, unless the user sets a limit.  Base64 makes it 4/3 as large, so the page with source code
 * stays below 5 MB. */
enum { MOST_BYTES = 3400000, MAX_SOURCE_BYTES = 1 << 20, KEPT_LAUNCHES = 1000 };

struct page {
	struct record record;
	struct page_launch {
		char *kernel, *fault;
		uint32_t grid[3], block[3];
		unsigned number;
	} *launches;
	unsigned n_launches;
};

/* ---- collecting ------------------------------------------------------------------------------------------------------ */

static gpul_status open_page(struct trace_output *o, gpul_error *err)
{
	const struct trace_filter *f = &o->trace->filter;
	struct page *p = calloc(1, sizeof *p);

	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
	p->record.last_warp = UINT32_MAX;
	p->record.predicts = !f->by[TRACE_BY_OP] && !f->by[TRACE_BY_LINE] && !f->by[TRACE_BY_PTX];
	o->data = p;
	return GPUL_OK;
}

static void prepare_event(struct trace_output *o, const struct trace_event *e, const struct insn *i)
{
	gpul_record_prepare(&((struct page *)o->data)->record, e, i);
}

static void add_event(struct trace_output *o, const struct trace_event *e)
{
	struct record *r = &((struct page *)o->data)->record;

	gpul_record_event(r, e);
	o->trace->exceeded |= !o->trace->limit_is_given && r->stream.n > MOST_BYTES;
}

static void keep_launch(struct page *p, const struct trace_notice *n)
{
	struct page_launch *grown = realloc(p->launches, (p->n_launches + 1) * sizeof *grown);

	if (!grown)
		return;
	p->launches = grown;
	grown[p->n_launches] = (struct page_launch){ .kernel = strdup(SHOWN_NAME(n->of->kernel->info.name)), .number = n->launch };
	memcpy(grown[p->n_launches].grid, n->of->grid, sizeof grown->grid);
	memcpy(grown[p->n_launches].block, n->of->block, sizeof grown->block);
	p->n_launches++;
}

static void add_notice(struct trace_output *o, const struct trace_notice *n)
{
	struct page *p = o->data;

	if (n->kind == TRACE_LAUNCH && p->n_launches < KEPT_LAUNCHES)
		keep_launch(p, n);
	for (unsigned k = 0; n->kind == TRACE_LAUNCH_ENDS && n->fault && k < p->n_launches; k++)
		if (p->launches[k].number == n->launch && !p->launches[k].fault)
			p->launches[k].fault = strdup(n->fault);
	gpul_record_notice(&p->record, n);
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

/* Write a part of a JSON string into a script element, in which no "<" may start a tag. */
static void put_bytes(FILE *to, const char *text, size_t n)
{
	fputc('"', to);
	for (size_t k = 0; k < n; k++) {
		const unsigned char c = (unsigned char)text[k];

		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c == '\n')
			fputs("\\n", to);
		else if (c < ' ' || c == '<' || c == 127)
			fprintf(to, "\\u%04x", c);
		else
			fputc(c, to);
	}
	fputc('"', to);
}

static void put_text(FILE *to, const char *text)
{
	put_bytes(to, text ? text : "", text ? strlen(text) : 0);
}

/* Write a JSON array: [name, [sources: register number, or "0x..."], truth table of lop3]. */
static void put_rule(FILE *to, const struct trace_rule *rule)
{
	fprintf(to, "[\"%s\",[", rule->name);
	for (unsigned k = 0; k < rule->n; k++) {
		const struct trace_source *s = &rule->source[k];

		if (s->is_register)
			fprintf(to, "%s%u", k ? "," : "", s->flat);
		else
			fprintf(to, "%s\"0x%llx\"", k ? "," : "", (unsigned long long)s->value);
	}
	fprintf(to, "],%u]", rule->imm);
}

static void put_row(FILE *to, const struct trace_row *row, const struct record_row *seen)
{
	fputs("{\"text\":", to);
	put_text(to, row->text);
	fprintf(to, ",\"ptx\":%u,\"file\":%d,\"line\":%u", row->ptx_line, row->file, row->line);
	if (seen->executed) {
		fputs(",\"dest\":[", to);
		for (unsigned k = 0; k < row->n_dests; k++)
			fprintf(to, "%s[%u,\"%c\"]", k ? "," : "", row->dest[k], row->type[k]);
		fputc(']', to);
	}
	if (seen->executed && seen->rule.name) {
		fputs(",\"rule\":", to);
		put_rule(to, &seen->rule);
	}
	if (seen->n_stored) {
		fputs(",\"stored\":[", to);
		for (unsigned k = 0; k < seen->n_stored; k++)
			fprintf(to, "%s%u", k ? "," : "", seen->stored[k]);
		fputc(']', to);
	}
	fputc('}', to);
}

static void put_function(FILE *to, const struct trace_code *c, const struct record_row *rows)
{
	fputs("{\"name\":", to);
	put_text(to, c->function);
	fputs(",\"image\":", to);
	put_text(to, c->image);
	fputs(",\"rows\":[", to);
	for (uint32_t k = 0; k < c->n_rows; k++) {
		if (k)
			fputs(",\n", to);
		put_row(to, &c->rows[k], &rows[k]);
	}
	fputs("],\"labels\":[", to);
	for (uint32_t k = 0; k < c->n_labels; k++) {
		fprintf(to, "%s[%u,", k ? "," : "", c->labels[k].row);
		put_text(to, c->labels[k].name);
		fputc(']', to);
	}
	fputs("],\"regs\":[", to);
	for (uint32_t k = 0; k < c->n_regs; k++) {
		fprintf(to, "%s[", k ? "," : "");
		put_text(to, c->regs[k].name);
		fprintf(to, ",%u,\"%c\"]", c->regs[k].bytes, c->regs[k].type ? c->regs[k].type : 'b');
	}
	fputs("]}", to);
}

/* Embed the source file as it is now; if it cannot be read, the page shows only the PTX. */
static void put_file(FILE *to, const char *path)
{
	gpul_file file;

	fputs("{\"name\":", to);
	put_text(to, path);
	if (!gpul_file_open_regular(path, &file, NULL)) {
		if (file.n_bytes <= MAX_SOURCE_BYTES && !memchr(file.bytes, 0, file.n_bytes)) {
			fputs(",\"text\":", to);
			put_bytes(to, file.bytes, file.n_bytes);
		}
		gpul_file_close(&file);
	}
	fputc('}', to);
}

static void put_launches(FILE *to, const struct page *p)
{
	for (unsigned k = 0; k < p->n_launches; k++) {
		const struct page_launch *l = &p->launches[k];

		fprintf(to, "%s{\"number\":%u,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"kernel\":", k ? "," : "", l->number, l->grid[0],
			l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
		put_text(to, l->kernel);
		if (l->fault) {
			fputs(",\"fault\":", to);
			put_text(to, l->fault);
		}
		fputc('}', to);
	}
}

static void put_base64(FILE *to, const struct bytes *b)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t k = 0; k < b->n; k += 3) {
		const size_t n = b->n - k < 3 ? b->n - k : 3;
		const uint32_t v = (uint32_t)b->at[k] << 16 | (n > 1 ? (uint32_t)b->at[k + 1] << 8 : 0) | (n > 2 ? b->at[k + 2] : 0);
		char four[4] = { digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=', n > 2 ? digits[v & 63] : '=' };

		fwrite(four, 1, 4, to);
	}
}

static void put_data(struct trace_output *o, const struct page *p)
{
	const struct trace *t = o->trace;

	fprintf(o->to, "{\"version\":1,\"from\":%llu,\"n\":%llu,\"limited\":%s,\"running\":%s,\n\"launches\":[",
		(unsigned long long)t->from, (unsigned long long)t->n_recorded, o->trace->exceeded ? "true" : "false",
		o->trace->still_running ? "true" : "false");
	put_launches(o->to, p);
	fputs("],\n\"files\":[", o->to);
	for (unsigned k = 0; k < t->codes.n_files; k++) {
		if (k)
			fputc(',', o->to);
		put_file(o->to, t->codes.files[k].path);
	}
	fputs("],\n\"functions\":[", o->to);
	for (unsigned k = 0; k < p->record.n_functions; k++) {
		if (k)
			fputs(",\n", o->to);
		if (p->record.functions[k].rows)
			put_function(o->to, p->record.functions[k].code, p->record.functions[k].rows);
		else
			fputs("null", o->to);
	}
	fputs("],\n\"stream\":\"", o->to);
	put_base64(o->to, &p->record.stream);
	fputs("\"}", o->to);
}

static void put_embedded(FILE *to, const gpul_embedded *file)
{
	gpul_error err;
	char *text;

	if (gpul_embedded_text(file, &text, NULL, &err)) {
		gpul_tool_say("trace", "%s", err.text);
		return;
	}
	fputs(text, to);
	free(text);
}

/* Write the text of page.html up to a mark (a placeholder); returns the text after the mark. */
static const char *put_until(FILE *to, const char *text, const char *mark)
{
	const char *at = strstr(text, mark);

	fwrite(text, 1, (size_t)(at - text), to);
	return at + strlen(mark);
}

/* Write the page: page.html, with its marks replaced by the style sheet, the recorded trace and the scripts. */
static void put_page(struct trace_output *o, const struct page *p)
{
	static const gpul_embedded *const scripts[] = { &rules_js, &record_js, &state_js, &view_js, &memory_js, &play_js };
	gpul_error err;
	char *html;
	const char *rest;

	if (gpul_embedded_text(&page_html, &html, NULL, &err)) {
		gpul_tool_say("trace", "%s", err.text);
		return;
	}
	rest = put_until(o->to, html, "/*STYLE*/");
	put_embedded(o->to, &page_css);
	rest = put_until(o->to, rest, "/*RECORD*/");
	put_data(o, p);
	rest = put_until(o->to, rest, "/*SCRIPTS*/");
	for (unsigned k = 0; k < sizeof scripts / sizeof *scripts; k++)
		put_embedded(o->to, scripts[k]);
	fputs(rest, o->to);
	free(html);
}

static void close_page(struct trace_output *o)
{
	struct page *p = o->data;

	if (p->record.stream.failed)
		gpul_tool_say("trace", "no memory for the trace: its page is not complete");
	put_page(o, p);
	for (unsigned k = 0; k < p->n_launches; k++) {
		free(p->launches[k].kernel);
		free(p->launches[k].fault);
	}
	free(p->launches);
	gpul_record_free(&p->record);
	free(p);
	o->data = NULL;
}

/* clang-format off */
const struct trace_sink gpul_trace_page = { .suffix = ".html", .open = open_page, .prepare = prepare_event, .event = add_event, .notice = add_notice,
					    .block_ends = gpul_record_block_ends, .close = close_page };
/* clang-format on */
