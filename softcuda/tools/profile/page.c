/* page.c — writes the profile as one HTML page: the source with its counts, and for each line a bar that shows how often it was executed.
 *
 * The page contains no scripts and loads nothing: it works offline, in light and dark mode, and on paper. Everything that a
 * colour shows is also a number or a word. */
#include "softcuda/tools/profile/profile_internal.h"
#include "softcuda/tools/tool_internal.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>gpuload profile</title>\n<style>\n"
	":root { color-scheme: light dark; --ink: #1a1a1a; --page: #ffffff; --rule: #c8c8c8; --bar: #9cc4f0; --mark: #ffe9a8; }\n"
	"@media (prefers-color-scheme: dark) {\n"
	":root { --ink: #e6e6e6; --page: #16181c; --rule: #444a52; --bar: #2c5688; --mark: #57470f; } }\n"
	"body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 1.5em; }\n"
	"table { border-collapse: collapse; } th, td { padding: 0 .6em; text-align: right; white-space: nowrap; }\n"
	"th { border-bottom: 1px solid var(--rule); font-weight: 600; } .code td, .code th { font: 13px/1.5 ui-monospace, monospace; }\n"
	"td.text, th.text { text-align: left; white-space: pre; } tr.cold { opacity: .65; }\n"
	"td.heat { background: linear-gradient(to left, var(--bar) var(--share), transparent var(--share)); min-width: 7em; }\n"
	"td.mark { background: var(--mark); font-weight: 600; } td.mark::before { content: \"! \"; } summary { cursor: pointer; margin: 1em 0 .4em; font-weight: 600; }\n"
	".sums td { text-align: left; } .note { max-width: 60em; } a { color: inherit; }\n"
	"@media print { body { margin: 0; } tr { break-inside: avoid; } td { print-color-adjust: exact; } }\n"
	"</style>\n</head>\n<body>\n";

static void print_escaped(FILE *to, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", to);
			break;
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		case '"':
			fputs("&quot;", to);
			break;
		case '\r':
			break;
		default:
			fputc(*text, to);
		}
	}
}

/* ---- the totals of a kernel ------------------------------------------------------------------------------------------------ */

static void print_sums(FILE *to, const struct profile *p, const struct kernel_result *k)
{
	const struct launch_shape *s = k->kernel->shapes;
	struct metric m[MAX_METRICS];
	const unsigned n = gpul_profile_metrics(k, m);

	fprintf(to, "<p>%llu launch%s; grid %u &times; %u &times; %u, block %u &times; %u &times; %u, %u bytes of shared memory.\n",
		(unsigned long long)k->kernel->n_launches, k->kernel->n_launches == 1 ? "" : "es", s->grid[0], s->grid[1], s->grid[2],
		s->block[0], s->block[1], s->block[2], s->shared_bytes);
	fprintf(to,
		"%llu instructions, with %.1f of 32 lanes active; %llu of %llu branches diverged; %llu sectors more than needed;\n"
		"%llu bank conflicts; theoretical occupancy %.0f&nbsp;%% on sm_%u with %u registers%s.</p>\n",
		(unsigned long long)k->sum.warps, gpul_ratio(k->sum.threads, k->sum.warps), (unsigned long long)k->sum.diverged,
		(unsigned long long)k->sum.branches, (unsigned long long)gpul_excess_sectors(&k->sum.memory),
		(unsigned long long)gpul_bank_conflicts(&k->sum.memory), k->occupancy.percent, p->architecture->sm, k->registers,
		p->registers_given ? "" : ", an estimate");
	fprintf(to, "<details><summary>Counters, by the names of Nsight Compute</summary>\n<table class=\"sums\">\n");
	for (unsigned i = 0; i < n; i++)
		fprintf(to, m[i].whole ? "<tr><td>%s</td><td>%.0f</td></tr>\n" : "<tr><td>%s</td><td>%.2f</td></tr>\n", m[i].name,
			m[i].value);
	fprintf(to, "</table></details>\n");
}

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

static void print_cell(FILE *to, uint64_t n, bool shown, bool marked)
{
	fprintf(to, marked ? "<td class=\"mark\">" : "<td>");
	if (shown)
		fprintf(to, "%llu", (unsigned long long)n);
	fprintf(to, "</td>");
}

static void print_columns(FILE *to, const struct row_count *c, uint64_t most)
{
	const uint64_t sectors = c->memory.space[GLOBAL_MEMORY].actual + c->memory.space[LOCAL_MEMORY].actual;
	const uint64_t ideal = sectors - gpul_excess_sectors(&c->memory), conflicts = gpul_bank_conflicts(&c->memory);

	if (!c->warps) {
		fprintf(to, "<td></td><td></td><td></td><td></td><td></td><td></td>");
		return;
	}
	fprintf(to, "<td class=\"heat\" style=\"--share: %.1f%%\">%llu</td><td%s>%.1f</td>", 100 * gpul_ratio(c->warps, most),
		(unsigned long long)c->warps, c->threads < 16 * c->warps ? " class=\"mark\"" : "", gpul_ratio(c->threads, c->warps));
	print_cell(to, c->diverged, c->branches, c->diverged);
	print_cell(to, sectors, sectors, sectors > ideal + ideal / 2);
	print_cell(to, ideal, sectors, false);
	print_cell(to, conflicts, c->memory.space[SHARED_MEMORY].requests, conflicts);
}

static const char columns[] = "<th>executed</th><th>lanes</th><th>diverged</th><th>sectors</th><th>ideal</th><th>conflicts</th>";

static void print_source_line(FILE *to, uint32_t line, const struct row_count *c, const char *text, uint64_t most)
{
	fprintf(to, "<tr%s>", c->warps ? "" : " class=\"cold\"");
	print_columns(to, c, most);
	fprintf(to, "<td>%u</td><td class=\"text\">", line);
	print_escaped(to, text ? text : "");
	fprintf(to, "</td></tr>\n");
}

enum { LINES_AROUND = 12 };

/* Return how many lines, from `line` on, are omitted, because no line with counts is near.  at: the next line with counts, or end. */
static uint32_t gap_at(uint32_t line, const struct line_count *from, const struct line_count *at, const struct line_count *end,
		       uint32_t n_lines)
{
	const uint32_t before = at > from ? at[-1].line : 0, next = at < end ? at->line : n_lines + LINES_AROUND + 1;

	if ((before && line <= before + LINES_AROUND) || next <= line + 2 * LINES_AROUND)
		return 0;
	return next - LINES_AROUND - line;
}

/* Print the counted lines [from, end), which are in one file, and, if the file can be read, the lines around them. */
static void print_file(FILE *to, const struct line_count *from, const struct line_count *end, uint64_t most)
{
	static const struct row_count nothing;
	const uint32_t n_lines = gpul_source_n_lines(from->file);
	const struct line_count *at = from;
	uint32_t gap;

	fprintf(to, "<h3>");
	print_escaped(to, from->file);
	fprintf(to, "</h3>\n<table class=\"code\">\n<tr>%s<th>line</th><th class=\"text\">source</th></tr>\n", columns);
	for (uint32_t line = 1; line <= n_lines; line++) {
		while (at < end && at->line < line)
			at++;
		gap = at < end && at->line == line ? 0 : gap_at(line, from, at, end, n_lines);
		if (gap) {
			fprintf(to, "<tr class=\"cold\"><td colspan=\"7\"></td><td class=\"text\">... %u lines</td></tr>\n", gap);
			line += gap - 1;
			continue;
		}
		print_source_line(to, line, at < end && at->line == line ? &at->count : &nothing, gpul_source_line(from->file, line), most);
	}
	for (at = from; at < end; at++)
		if (at->line > n_lines)
			print_source_line(to, at->line, &at->count, NULL, most);
	fprintf(to, "</table>\n");
}

static void print_files(FILE *to, const struct kernel_result *k)
{
	struct line_counts lines = { 0 };
	uint64_t most = 1;
	size_t from = 0;

	if (gpul_profile_lines(k, &lines)) {
		for (size_t n = 0; n < lines.of.n; n++)
			most = lines.of.at[n].count.warps > most ? lines.of.at[n].count.warps : most;
		for (size_t n = 1; n <= lines.of.n; n++) {
			if (n < lines.of.n && !strcmp(lines.of.at[n].file, lines.of.at[from].file))
				continue;
			print_file(to, &lines.of.at[from], lines.of.at + n, most);
			from = n;
		}
	}
	gpul_profile_free_lines(&lines);
}

static void print_ptx(FILE *to, const struct function_result *f)
{
	uint64_t most = 1;

	for (size_t n = 0; n < f->function->rows.n; n++)
		most = f->rows[n].warps > most ? f->rows[n].warps : most;
	fprintf(to, "<details><summary>PTX of ");
	print_escaped(to, f->function->name);
	fprintf(to, "</summary>\n<table class=\"code\">\n<tr>%s<th>PTX</th><th>source</th><th class=\"text\">instruction</th></tr>\n",
		columns);
	for (size_t n = 0; n < f->function->rows.n; n++) {
		const struct row *r = &f->function->rows.at[n];

		fprintf(to, "<tr%s>", f->rows[n].warps ? "" : " class=\"cold\"");
		print_columns(to, &f->rows[n], most);
		fprintf(to, "<td>%u</td><td>", r->line);
		if (r->source_line)
			fprintf(to, "%u", r->source_line);
		fprintf(to, "</td><td class=\"text\">");
		print_escaped(to, r->text);
		fprintf(to, "</td></tr>\n");
	}
	fprintf(to, "</table></details>\n");
}

void gpul_profile_write_page(const struct profile *p, FILE *to)
{
	fprintf(to,
		"%s<h1>gpuload profile</h1>\n"
		"<p class=\"note\">PTX instructions are counted, once for each warp; ptxas translates them to other machine instructions.\n"
		"A bar is as long as a line's share of the most executed line. Cells marked by !: fewer than 16 lanes active on average,\n"
		"branches that diverged, half as many sectors again as needed, bank conflicts.</p>\n",
		head);
	for (size_t n = 0; n < p->kernels.n; n++) {
		const struct kernel_result *k = &p->kernels.at[n];

		fprintf(to, "<h2>kernel ");
		print_escaped(to, SHOWN_NAME(k->kernel->name));
		fprintf(to, "</h2>\n");
		print_sums(to, p, k);
		print_files(to, k);
		for (size_t f = 0; f < k->functions.n; f++)
			print_ptx(to, &k->functions.at[f]);
	}
	if (!p->kernels.n)
		fprintf(to, "<p>No kernel was executed.</p>\n");
	fprintf(to, "</body>\n</html>\n");
}
