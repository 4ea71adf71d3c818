/* debug_command.c — executes the commands of gpuload step. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/debug/session.h"
#include "core/text.h"

const char session_help[] = "next stop      step (s) [N]     to the next source line, into calls\n"
			    "               next (n) [N]     to the next source line, over calls\n"
			    "               insn (i) [N]     one PTX instruction of this warp;  si [N]: of the selected lane\n"
			    "               out (o)          until the function returns\n"
			    "               warp+ block+     until another warp, or block, executes an instruction\n"
			    "               barrier diverge  until a barrier is complete, or a warp diverges\n"
			    "               continue (c)     to the next breakpoint; Ctrl-C stops a running kernel\n"
			    "back           back (b) [N]     one PTX instruction of this warp;  bs [N]: one source line\n"
			    "               rc               to the previous breakpoint;  restart: to the beginning of the kernel\n"
			    "               goto COUNT       to the moment #COUNT of this launch\n"
			    "breakpoints    break (br) LINE | FILE:LINE | KERNEL | label NAME [if CONDITION]\n"
			    "               watch|rwatch|awatch ADDRESS [BYTES] [if CONDITION]     shared[16], %rd4, name of a variable\n"
			    "               delete ID | delete all        breaks: lists them\n"
			    "look           where (w)  frame N  list (l)  ptx  warps  regs [all]  specials  params  vars\n"
			    "               print (p) EXPRESSION     lanes EXPRESSION: in all 32 lanes\n"
			    "               x [shared|local] ADDRESS [BYTES]\n"
			    "               lane N  warp N  block N  select what is shown\n"
			    "conditions     lane == 3 && %r5 > 7     %tid.x  warp  block  thread  [%rd4]:f32  shared[8]:u32\n"
			    "end            quit (q): ends the program\n";

struct line {
	struct session *s;
	const char *rest; /* the text after the command's name */
	struct out *out;
};

static void print_error(struct out *out, const gpul_error *err)
{
	out_add(out, "error: %s\n", err->text);
}

static unsigned long count_of(const char *text)
{
	const unsigned long n = strtoul(text, NULL, 0);

	return n ? n : 1;
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

static void go(const struct line *l, const char *how, bool lane)
{
	struct session *s = l->s;
	gpul_error err = { 0 };
	char where[80];

	snprintf(where, sizeof where, lane ? "\t%llu\t%u\t%u" : "\t%llu\t%u", (unsigned long long)s->block, s->warp, s->lane);
	if (debug_link_ask(s->link, NULL, &err, "go\t%s%s", how, where)) {
		s->ended |= debug_link_ended(s->link);
		print_error(l->out, &err);
		return;
	}
	session_wait(s, l->out);
}

static void go_often(const struct line *l, const char *how, bool lane)
{
	struct out silent = { 0 };

	for (unsigned long n = count_of(l->rest); n && !l->s->ended; n--) {
		const struct line one = { l->s, "", n == 1 ? l->out : &silent };
		const size_t before = silent.n;

		go(&one, how, lane);
		/* drop the remaining steps if the kernel has stopped at a breakpoint or has ended */
		if (n > 1 && (!l->s->stopped || strcmp(debug_row_get(&l->s->at, "reason"), "step") != 0)) {
			out_bytes(l->out, silent.at + before, silent.n - before);
			break;
		}
	}
	out_free(&silent);
}

static void do_step(const struct line *l)
{
	go_often(l, "line", false);
}
static void do_next(const struct line *l)
{
	go_often(l, "over", false);
}
static void do_insn(const struct line *l)
{
	go_often(l, "insn", false);
}
static void do_lane_insn(const struct line *l)
{
	go_often(l, "insn", true);
}
static void do_out(const struct line *l)
{
	go(l, "out", false);
}
static void do_warp_next(const struct line *l)
{
	go(l, "warp", false);
}
static void do_block_next(const struct line *l)
{
	go(l, "block", false);
}
static void do_barrier(const struct line *l)
{
	go(l, "barrier", false);
}
static void do_diverge(const struct line *l)
{
	go(l, "diverge", false);
}
static void do_continue(const struct line *l)
{
	go(l, "free", false);
}
static void do_back(const struct line *l)
{
	go_often(l, "back-insn", false);
}
static void do_back_line(const struct line *l)
{
	go_often(l, "back-line", false);
}
static void do_back_free(const struct line *l)
{
	go(l, "back-free", false);
}
static void do_restart(const struct line *l)
{
	go(l, "back-start", false);
}

static void do_goto(const struct line *l)
{
	gpul_error err = { 0 };

	if (debug_link_ask(l->s->link, NULL, &err, "go\tto\t%s", *l->rest == '#' ? l->rest + 1 : l->rest))
		print_error(l->out, &err);
	else
		session_wait(l->s, l->out);
}

/* ---- breakpoints -------------------------------------------------------------------------------------------------------- */

/* Cut " if CONDITION" off the text.  Returns the condition; NULL: there is none. */
static char *cut_condition(char *text)
{
	char *at = strstr(text, " if ");
	size_t n;

	if (at) {
		*at = '\0';
		at += 4;
	}
	for (n = strlen(text); n && isspace((unsigned char)text[n - 1]);)
		text[--n] = '\0';
	return at;
}

static void print_breakpoints(const struct debug_rows *rows, struct out *out)
{
	for (size_t k = 0; k < rows->row.n; k++) {
		const struct debug_row *r = &rows->row.at[k];
		const char *kind = debug_row_get(r, "kind"), *condition = debug_row_get(r, "condition");
		const bool line = !strcmp(kind, "line");

		out_add(out, "%s %s: %s%s%s%s%s%s%s", strcmp(kind, "watch") ? "breakpoint" : "watchpoint", debug_row_get(r, "id"),
			line ? "" : kind, line ? "" : " ", session_path(debug_row_get(r, "where")), line ? ":" : "",
			line ? debug_row_get(r, debug_row_number(r, "line") ? "line" : "wanted") : "", *condition ? " if " : "", condition);
		if (strcmp(kind, "watch") && !debug_row_number(r, "places"))
			out_text(out, "  (code at this place is not loaded yet)");
		if (debug_row_number(r, "hits"))
			out_add(out, "  hit %s times", debug_row_get(r, "hits"));
		out_text(out, "\n");
	}
}

static void request_breakpoints(const struct line *l, const char *request)
{
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };

	if (debug_link_ask(l->s->link, &rows, &err, "%s", request))
		print_error(l->out, &err);
	print_breakpoints(&rows, l->out);
	debug_rows_free(&rows);
}

static void do_break(const struct line *l)
{
	char text[512], request[800], *condition, *colon;
	const char *file = debug_row_get(&l->s->at, "file");

	snprintf(text, sizeof text, "%s", l->rest);
	condition = cut_condition(text);
	colon = strrchr(text, ':');
	if (!*text) {
		out_text(l->out, "error: break needs LINE, FILE:LINE, a kernel, or label NAME\n");
		return;
	}
	if (colon && isdigit((unsigned char)colon[1])) {
		*colon = '\0';
		snprintf(request, sizeof request, "break\tline\t%s\t%s\t%s", text, colon + 1, condition ? condition : "");
	} else if (isdigit((unsigned char)*text)) {
		snprintf(request, sizeof request, "break\tline\t%s\t%s\t%s", *file ? file : debug_row_get(&l->s->at, "ptx"), text,
			 condition ? condition : "");
	} else if (!strncmp(text, "label ", 6)) {
		snprintf(request, sizeof request, "break\tlabel\t%s\t%s", text + 6, condition ? condition : "");
	} else {
		snprintf(request, sizeof request, "break\tkernel\t%s\t%s", text, condition ? condition : "");
	}
	request_breakpoints(l, request);
}

/* Parse "ADDRESS [BYTES] [if CONDITION]", where ADDRESS may be an expression of several words, and set a watchpoint. */
static void set_watch(const struct line *l, const char *on)
{
	char text[512], request[800], *condition, *blank;
	unsigned long bytes = 4;

	snprintf(text, sizeof text, "%s", l->rest);
	condition = cut_condition(text);
	blank = strrchr(text, ' ');
	if (blank && isdigit((unsigned char)blank[1]) && !blank[1 + strspn(blank + 1, "0123456789")]) {
		bytes = strtoul(blank + 1, NULL, 10);
		*blank = '\0';
	}
	snprintf(request, sizeof request, "watch\t%s\t%s\t%lu\t%s", on, text, bytes, condition ? condition : "");
	request_breakpoints(l, request);
}

static void do_watch(const struct line *l)
{
	set_watch(l, "w");
}
static void do_rwatch(const struct line *l)
{
	set_watch(l, "r");
}
static void do_awatch(const struct line *l)
{
	set_watch(l, "rw");
}
static void do_breaks(const struct line *l)
{
	request_breakpoints(l, "breaks");
}

static void do_delete(const struct line *l)
{
	char request[300];

	snprintf(request, sizeof request, "clear\t%s", *l->rest ? l->rest : "all");
	request_breakpoints(l, request);
}

/* ---- showing ------------------------------------------------------------------------------------------------------------ */

static void print_rows(const struct line *l, const char *what, bool nonzero_only)
{
	struct session *s = l->s;
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };
	size_t n = 0;

	if (debug_link_ask(s->link, &rows, &err, "%s\t%llu\t%u\t%u\t%u", what, (unsigned long long)s->block, s->warp, s->lane, s->frame))
		print_error(l->out, &err);
	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];

		if (nonzero_only && !strcmp(debug_row_get(r, "bits"), "0x0"))
			continue;
		out_add(l->out, "%s%-8s %-4s %-20s",
			n % 3 ? "  "
			: n   ? "\n"
			      : "",
			debug_row_get(r, "name"), debug_row_get(r, "type"), debug_row_get(r, "value"));
		n++;
	}
	if (n)
		out_text(l->out, "\n");
	debug_rows_free(&rows);
}

static void do_regs(const struct line *l)
{
	print_rows(l, "registers", strcmp(l->rest, "all") != 0);
}
static void do_specials(const struct line *l)
{
	print_rows(l, "specials", false);
}
static void do_params(const struct line *l)
{
	print_rows(l, "params", false);
}

static void do_vars(const struct line *l)
{
	struct session *s = l->s;
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };

	if (debug_link_ask(s->link, &rows, &err, "variables\t%llu\t%u\t%u\t%u", (unsigned long long)s->block, s->warp, s->lane, s->frame))
		print_error(l->out, &err);
	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];
		const uint64_t at = debug_row_number(r, "address");
		const char *name = debug_row_get(r, "name");

		if (*name)
			out_add(l->out, at >> 32 ? "%-8s %-24s %s bytes at 0x%llx\n" : "%-8s %-24s %s bytes at %llu\n",
				debug_row_get(r, "space"), name, debug_row_get(r, "bytes"), (unsigned long long)at);
		else if (debug_row_number(r, "bytes"))
			out_add(l->out, "%-8s %-24s %s bytes\n", debug_row_get(r, "space"), "(all)", debug_row_get(r, "bytes"));
	}
	debug_rows_free(&rows);
}

static void do_print(const struct line *l)
{
	struct session *s = l->s;
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };

	if (debug_link_ask(s->link, &rows, &err, "evaluate\t%llu\t%u\t%u\t%u\t%s", (unsigned long long)s->block, s->warp, s->lane, s->frame,
			   l->rest))
		print_error(l->out, &err);
	else if (rows.row.n)
		out_add(l->out, "%s  (%s)\n", debug_row_get(&rows.row.at[0], "value"), debug_row_get(&rows.row.at[0], "bits"));
	debug_rows_free(&rows);
}

static void do_lanes(const struct line *l)
{
	struct session *s = l->s;
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };

	if (debug_link_ask(s->link, &rows, &err, "lanes\t%llu\t%u\t%u\t%u\t%s", (unsigned long long)s->block, s->warp, s->lane, s->frame,
			   l->rest))
		print_error(l->out, &err);
	for (size_t k = 0; k < rows.row.n; k++)
		out_add(l->out, "%s%2zu: %-14s%s", k % 4 ? " " : "", k, debug_row_get(&rows.row.at[k], "value"), k % 4 == 3 ? "\n" : "");
	debug_rows_free(&rows);
}

static void print_bytes(struct out *out, uint64_t at, const char *digits)
{
	for (size_t k = 0; digits[2 * k] && digits[2 * k + 1]; k++) {
		if (k % 16 == 0)
			out_add(out, "%s0x%llx ", k ? "\n" : "", (unsigned long long)(at + k));
		out_add(out, "%s%.2s", k % 4 ? "" : " ", digits + 2 * k);
	}
	out_text(out, "\n");
}

/* The command "x [shared|local] ADDRESS [BYTES]". */
static void do_memory(const struct line *l)
{
	struct session *s = l->s;
	const char *space = !strncmp(l->rest, "shared ", 7) ? "shared" : !strncmp(l->rest, "local ", 6) ? "local" : "global";
	char text[300], *blank;
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };
	unsigned long bytes = 64;
	uint64_t at;

	snprintf(text, sizeof text, "%s", l->rest + (*space == 'g' ? 0 : strlen(space) + 1));
	blank = strrchr(text, ' ');
	if (blank && isdigit((unsigned char)blank[1])) {
		bytes = strtoul(blank + 1, NULL, 0);
		*blank = '\0';
	}
	if (debug_link_ask(s->link, &rows, &err, "evaluate\t%llu\t%u\t%u\t%u\t%s", (unsigned long long)s->block, s->warp, s->lane, s->frame,
			   text) ||
	    !rows.row.n) {
		print_error(l->out, &err);
		debug_rows_free(&rows);
		return;
	}
	at = debug_row_number(&rows.row.at[0], "bits");
	debug_rows_free(&rows);
	if (debug_link_ask(s->link, &rows, &err, "memory\t%s\t%llu\t%lu\t%llu\t%u\t%u", space, (unsigned long long)at, bytes,
			   (unsigned long long)s->block, s->warp, s->lane))
		print_error(l->out, &err);
	else if (rows.row.n && debug_row_number(&rows.row.at[0], "read"))
		print_bytes(l->out, at, debug_row_get(&rows.row.at[0], "bytes"));
	else
		out_add(l->out, "error: 0x%llx cannot be read\n", (unsigned long long)at);
	debug_rows_free(&rows);
}

static void do_warps(const struct line *l)
{
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };

	if (debug_link_ask(l->s->link, &rows, &err, "warps"))
		print_error(l->out, &err);
	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];
		const uint64_t mask = debug_row_hex(r, "mask"), live = debug_row_hex(r, "live");
		char lanes[33];

		for (unsigned b = 0; b < 32; b++)
			lanes[b] = mask >> b & 1 ? '#' : live >> b & 1 ? '.' : ' ';
		lanes[32] = '\0';
		out_add(l->out, "block %s warp %-2s |%s| %-8s ptx:%s%s%s\n", debug_row_get(r, "block"), debug_row_get(r, "warp"), lanes,
			debug_row_get(r, "state"), debug_row_get(r, "ptxline"), debug_row_number(r, "line") ? "  line " : "",
			debug_row_number(r, "line") ? debug_row_get(r, "line") : "");
	}
	debug_rows_free(&rows);
}

static void do_where(const struct line *l)
{
	struct session *s = l->s;
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };

	if (debug_link_ask(s->link, &rows, &err, "frames\t%llu\t%u\t%u", (unsigned long long)s->block, s->warp, s->lane))
		print_error(l->out, &err);
	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];
		const char *file = debug_row_get(r, "file");

		out_add(l->out, "%s%zu  %s  %s%s%s%s%s:%s\n", k == s->frame ? "*" : " ", k, debug_row_get(r, "function"),
			session_path(file), *file ? ":" : "", *file ? debug_row_get(r, "line") : "", *file ? "  " : "",
			debug_row_get(r, "ptx"), debug_row_get(r, "ptxline"));
	}
	debug_rows_free(&rows);
}

static void print_source(const struct source *src, uint32_t line, struct out *out)
{
	enum { AROUND = 5 };

	for (size_t k = line > AROUND ? line - AROUND : 1; src && k <= src->line.n && k <= line + AROUND; k++)
		out_add(out, "%s %5zu  %s\n", k == line ? ">" : " ", k, src->line.at[k - 1]);
	if (!src)
		out_text(out, "error: the source of this code is not available\n");
}

static void do_list(const struct line *l)
{
	uint32_t line;
	const struct source *src = session_cuda(l->s, &line);

	if (!src)
		src = session_ptx(l->s, &line);
	print_source(src, line, l->out);
}

static void do_ptx(const struct line *l)
{
	uint32_t line;
	const struct source *src = session_ptx(l->s, &line);

	print_source(src, line, l->out);
}

/* ---- selection ---------------------------------------------------------------------------------------------------------- */

static void select_lane(const struct line *l, uint64_t block, unsigned warp, unsigned lane, unsigned frame)
{
	struct debug_rows rows = { 0 };
	gpul_error err = { 0 };

	if (debug_link_ask(l->s->link, &rows, &err, "specials\t%llu\t%u\t%u\t%u", (unsigned long long)block, warp, lane, frame)) {
		print_error(l->out, &err);
	} else {
		l->s->block = block;
		l->s->warp = warp;
		l->s->lane = lane;
		l->s->frame = frame;
		out_add(l->out, "block %llu warp %u lane %u frame %u\n", (unsigned long long)block, warp, lane, frame);
	}
	debug_rows_free(&rows);
}

static void do_lane(const struct line *l)
{
	select_lane(l, l->s->block, l->s->warp, (unsigned)strtoul(l->rest, NULL, 0), 0);
}

static void do_warp(const struct line *l)
{
	select_lane(l, l->s->block, (unsigned)strtoul(l->rest, NULL, 0), l->s->lane, 0);
}

static void do_block(const struct line *l)
{
	select_lane(l, strtoull(l->rest, NULL, 0), 0, l->s->lane, 0);
}

static void do_frame(const struct line *l)
{
	select_lane(l, l->s->block, l->s->warp, l->s->lane, (unsigned)strtoul(l->rest, NULL, 0));
}

static void do_help(const struct line *l)
{
	out_text(l->out, session_help);
}

static void do_quit(const struct line *l)
{
	l->s->quits = true;
}

static const struct {
	const char *name, *brief;
	void (*run)(const struct line *l);
} commands[] = {
	{ "step", "s", do_step },
	{ "next", "n", do_next },
	{ "insn", "i", do_insn },
	{ "si", NULL, do_lane_insn },
	{ "out", "o", do_out },
	{ "warp+", NULL, do_warp_next },
	{ "block+", NULL, do_block_next },
	{ "barrier", NULL, do_barrier },
	{ "diverge", NULL, do_diverge },
	{ "continue", "c", do_continue },
	{ "back", "b", do_back },
	{ "bs", NULL, do_back_line },
	{ "rc", NULL, do_back_free },
	{ "restart", NULL, do_restart },
	{ "goto", NULL, do_goto },
	{ "break", "br", do_break },
	{ "watch", NULL, do_watch },
	{ "rwatch", NULL, do_rwatch },
	{ "awatch", NULL, do_awatch },
	{ "breaks", NULL, do_breaks },
	{ "delete", "d", do_delete },
	{ "regs", "r", do_regs },
	{ "specials", NULL, do_specials },
	{ "params", NULL, do_params },
	{ "vars", NULL, do_vars },
	{ "print", "p", do_print },
	{ "lanes", NULL, do_lanes },
	{ "x", NULL, do_memory },
	{ "warps", NULL, do_warps },
	{ "where", "w", do_where },
	{ "frame", "f", do_frame },
	{ "list", "l", do_list },
	{ "ptx", NULL, do_ptx },
	{ "lane", NULL, do_lane },
	{ "warp", NULL, do_warp },
	{ "block", NULL, do_block },
	{ "help", "h", do_help },
	{ "quit", "q", do_quit },
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void report_unknown(const char *name, struct out *out)
{
	const char *names[N_COMMANDS], *near;

	for (size_t k = 0; k < N_COMMANDS; k++)
		names[k] = commands[k].name;
	near = gpul_text_nearest(name, names, N_COMMANDS);
	out_add(out, "error: unknown command '%s'; %s%s\n", name, near ? "did you mean " : "help lists the commands", near ? near : "");
}

void session_command(struct session *s, const char *line, struct out *out)
{
	struct line l = { .s = s, .out = out };
	char text[256], name[32];
	size_t n;

	while (isspace((unsigned char)*line))
		line++;
	snprintf(text, sizeof text, "%s", *line ? line : s->last);
	if (!*text || *text == '#')
		return;
	snprintf(s->last, sizeof s->last, "%s", text);
	n = strcspn(text, " \t\n");
	snprintf(name, sizeof name, "%.*s", (int)n, text);
	for (l.rest = text + n; isspace((unsigned char)*l.rest);)
		l.rest++;
	text[strlen(text) - (text[strlen(text) - 1] == '\n')] = '\0';
	for (size_t k = 0; k < N_COMMANDS; k++) {
		if (!strcmp(commands[k].name, name) || (commands[k].brief && !strcmp(commands[k].brief, name))) {
			commands[k].run(&l);
			return;
		}
	}
	report_unknown(name, out);
}
