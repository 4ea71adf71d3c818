/* command.c — performs the client's commands.  A command is one line of words separated by tabs.
 *
 *     client ── "registers\t0\t1\t5\t0" ──>       block 0, warp 1, lane 5, frame 0
 *            <── "- name=%r1\ttype=s32\tvalue=7\tbits=7" ...    a line for each row of the answer
 *            <── "= ok", or "= error TEXT"                      its end
 *            <── "! stopped\treason=step\t..."                   an event, at any time between answers */
#include "softcuda/tools/debug/command_internal.h"

#include <errno.h>
#include <stdlib.h>

static const char *word_or_null(const struct call *c, unsigned k)
{
	return k < c->n && *c->word[k] ? c->word[k] : NULL;
}

/* ---- breakpoints ---------------------------------------------------------------------------------------------------- */

static void print_breakpoint(FILE *out, const struct breakpoint *b)
{
	static const char *const kinds[] = { "line", "kernel", "label", "watch" };

	fprintf(out, "- id=%u\tkind=%s\tline=%u\twanted=%u\tplaces=%zu\thits=%u\twhere=", b->id, kinds[b->kind], b->found_line, b->line,
		b->at.n, b->hits);
	gpul_debug_print_text(out, b->where);
	fputs("\tcondition=", out);
	gpul_debug_print_text(out, b->condition ? b->condition : "");
	putc('\n', out);
}

/* Add a breakpoint.  The syntax of the condition is checked immediately, but register names can be checked only while a kernel runs. */
static gpul_status add_breakpoint(const struct call *c, struct breakpoint *b, unsigned condition_word)
{
	const char *condition = word_or_null(c, condition_word);
	struct breakpoint *added;

	b->where = strdup(c->word[2]);
	b->condition = condition ? strdup(condition) : NULL;
	b->ignored = (unsigned)gpul_debug_number(c, condition_word + 1);
	added = b->where && (b->condition || !condition) ? gpul_debug_add_breakpoint(c->d, b) : NULL;
	if (!added) {
		free(b->where);
		free(b->condition);
		return gpul_fail(c->err, GPUL_ENOMEM, 0, "no memory for a breakpoint");
	}
	gpul_debug_resolve(c->d);
	print_breakpoint(c->out, added);
	return GPUL_OK;
}

/* Commands: break line FILE LINE [CONDITION [N]], and break kernel|label NAME [CONDITION [N]]; the first N hits do not stop */
static gpul_status do_break(const struct call *c)
{
	struct breakpoint b = { .kind = BREAK_LINE };

	if (c->n > 3 && !strcmp(c->word[1], "line") && gpul_debug_number(c, 3)) {
		b.line = (uint32_t)gpul_debug_number(c, 3);
		return add_breakpoint(c, &b, 4);
	}
	if (c->n < 3 || (strcmp(c->word[1], "kernel") != 0 && strcmp(c->word[1], "label") != 0))
		return gpul_debug_usage(c, "line FILE LINE, kernel NAME or label NAME");
	b.kind = !strcmp(c->word[1], "kernel") ? BREAK_KERNEL : BREAK_LABEL;
	return add_breakpoint(c, &b, 3);
}

/* Command: watch r|w|rw ADDRESS BYTES [CONDITION [IGNORED]]: ADDRESS may be shared[OFFSET] or local[OFFSET] */
static gpul_status do_watch(const struct call *c)
{
	struct breakpoint b = { .kind = BREAK_WATCH, .space = SPACE_GLOBAL, .bytes = gpul_debug_number(c, 3) };
	struct lane at = { .memory = c->d->memory };
	const char *text = c->n > 2 ? c->word[2] : "";
	struct value v;
	char inner[TEXT_BYTES];

	if (c->n < 4 || !b.bytes)
		return gpul_debug_usage(c, "r, w or rw; an address or shared[OFFSET]; the number of bytes");
	if (c->d->stop.warp)
		at = (struct lane){
			.memory = c->d->memory, .warp = c->d->stop.warp, .frame = c->d->stop.warp->frame, .index = c->d->stop.lane
		};
	b.on = (strchr(c->word[1], 'r') ? ACCESS_READ : 0) | (strchr(c->word[1], 'w') ? ACCESS_WRITE : 0);
	if (!strncmp(text, "shared[", 7) || !strncmp(text, "local[", 6)) {
		b.space = *text == 's' ? SPACE_SHARED : SPACE_LOCAL;
		snprintf(inner, sizeof inner, "%.*s", (int)strlen(strchr(text, '[') + 1) - 1, strchr(text, '[') + 1);
		text = inner;
	}
	if (gpul_debug_evaluate(&at, text, &v, c->err))
		return GPUL_EINVAL;
	b.address = v.u;
	return add_breakpoint(c, &b, 4);
}

/* Command: clear all | clear ID | clear line FILE | clear kernel | clear watch */
static gpul_status do_clear(const struct call *c)
{
	static const char *const kinds[] = { "line", "kernel", "label", "watch" };
	const char *what = c->n > 1 ? c->word[1] : "";
	size_t n = c->d->breakpoints.n;

	for (size_t k = n; k-- > 0;) {
		const struct breakpoint *b = &c->d->breakpoints.at[k];
		const bool of_kind = !strcmp(what, kinds[b->kind]) && (c->n < 3 || gpul_debug_same_file(b->where, c->word[2]));

		if (!strcmp(what, "all") || of_kind || b->id == gpul_debug_number(c, 1))
			gpul_debug_remove_breakpoint(c->d, k);
	}
	if (gpul_debug_number(c, 1) && n == c->d->breakpoints.n)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "there is no breakpoint %s", what);
	return GPUL_OK;
}

static gpul_status do_breaks(const struct call *c)
{
	for (size_t k = 0; k < c->d->breakpoints.n; k++)
		print_breakpoint(c->out, &c->d->breakpoints.at[k]);
	return GPUL_OK;
}

/* ---- continuing and stepping ------------------------------------------------------------------------------------------ */

/* Command: go HOW [BLOCK WARP [LANE]] steps the given warp or lane; go to COUNT runs to the instruction with this number. */
static gpul_status do_go(const struct call *c)
{
	static const char *const names[N_GO] = { "free",      "insn",      "line",      "over",       "out",
						 "warp",      "block",     "barrier",   "diverge",    "pause",
						 "back-insn", "back-line", "back-free", "back-start", "to" };
	struct origin from = { .lane = c->n > 4 ? (int)gpul_debug_number(c, 4) : -1 };
	const struct insn *insn;
	struct lane at;
	unsigned how = 0;

	while (how < N_GO && (c->n < 2 || strcmp(c->word[1], names[how]) != 0))
		how++;
	if (how == N_GO)
		return gpul_debug_usage(
			c,
			"free, insn, line, over, out, warp, block, barrier, diverge, pause, back-insn, back-line, back-free, back-start or to");
	from.warp = (struct warp_name){ .launch = c->d->launch,
					.block = gpul_debug_number(c, 2),
					.warp = (unsigned)gpul_debug_number(c, 3) };
	if (how != BACK_TO && c->n > 3 && c->d->stop.reason) {
		struct call shifted = { .d = c->d, .word = c->word + 1, .n = c->n - 1, .out = c->out, .err = NULL };
		char *words[] = { c->word[1], c->word[2], c->word[3], "0" };

		if (c->n < 5)
			shifted = (struct call){ .d = c->d, .word = words, .n = 4 };
		if (c->n < 5 && c->d->stop.warp && gpul_debug_find_block(c->d, from.warp.block) == c->d->stop.warp->block &&
		    from.warp.warp == c->d->stop.warp->index) {
			at = (struct lane){ .warp = c->d->stop.warp, .frame = c->d->stop.warp->frame };
			insn = c->d->stop.insn;
		} else if (gpul_debug_find_lane(&shifted, &at, &insn)) {
			at.frame = NULL;
		}
		if (at.frame) {
			from.place = gpul_debug_place(at.frame->code, insn);
			from.depth = at.frame->depth;
		}
	}
	return gpul_debug_go(c->d, (enum go)how, &from, how == BACK_TO ? gpul_debug_number(c, 2) : 0, c->err);
}

/* Command: set entry|end 0|1 */
static gpul_status do_set(const struct call *c)
{
	if (c->n > 2 && !strcmp(c->word[1], "entry"))
		c->d->stops_at_entry = gpul_debug_number(c, 2);
	else if (c->n > 2 && !strcmp(c->word[1], "end"))
		c->d->stops_at_end = gpul_debug_number(c, 2);
	else
		return gpul_debug_usage(c, "entry or end, and 0 or 1");
	return GPUL_OK;
}

static gpul_status do_hello(const struct call *c)
{
	fprintf(c->out, "- protocol=1\tprogram=%s\n", program_invocation_short_name);
	return GPUL_OK;
}

static const struct {
	const char *name;
	gpul_status (*run)(const struct call *c);
} commands[] = {
	{ "hello", do_hello },
	{ "break", do_break },
	{ "watch", do_watch },
	{ "clear", do_clear },
	{ "breaks", do_breaks },
	{ "go", do_go },
	{ "set", do_set },
	{ "status", gpul_debug_show_status },
	{ "warps", gpul_debug_show_warps },
	{ "frames", gpul_debug_show_frames },
	{ "registers", gpul_debug_show_registers },
	{ "specials", gpul_debug_show_specials },
	{ "params", gpul_debug_show_params },
	{ "variables", gpul_debug_show_variables },
	{ "evaluate", gpul_debug_show_evaluate },
	{ "lanes", gpul_debug_show_lanes },
	{ "memory", gpul_debug_show_memory },
	{ "programs", gpul_debug_show_programs },
	{ "listing", gpul_debug_show_listing },
};

void gpul_debug_command(struct debug *d, char *line, FILE *out)
{
	char *words[MAX_WORDS] = { "" };
	gpul_error err = { 0 };
	struct call c = { .d = d, .word = words, .out = out, .err = &err };
	gpul_status st = GPUL_OK;
	size_t k = 0;

	while (line && c.n < MAX_WORDS)
		words[c.n++] = strsep(&line, "\t");
	while (k < sizeof commands / sizeof commands[0] && strcmp(commands[k].name, words[0]) != 0)
		k++;
	if (k == sizeof commands / sizeof commands[0])
		st = gpul_fail(&err, GPUL_EINVAL, 0, "unknown command '%.40s'", words[0]);
	else
		st = commands[k].run(&c);
	if (!st) {
		fputs("= ok\n", out);
		return;
	}
	fputs("= error ", out);
	gpul_debug_print_text(out, err.text);
	putc('\n', out);
}
