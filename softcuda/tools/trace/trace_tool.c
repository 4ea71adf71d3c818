/* trace_tool.c — the tool trace: turns executed instructions into events, and passes them to sinks (the writers of the output formats). */
#include "softcuda/tools/trace/trace_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum { LAST_HOOK_NS = 1000000000 };

static const char out_of_memory[] = "no memory for the trace: it is not complete";

/* For hooks: returns true if recording has ended. */
static bool has_ended(struct trace *t)
{
	if (!atomic_load_explicit(&t->ended, memory_order_acquire))
		return false;
	atomic_store_explicit(&t->ended_is_seen, true, memory_order_release);
	return true;
}

/* ---- selecting instructions --------------------------------------------------------------------------------------- */

/* Returns true for the branch that decoding inserted around a guarded instruction that may wait. */
static bool is_skip(const struct func_code *code, const struct insn *i)
{
	return (i->op == OP_BRA_IF || i->op == OP_BRA_IFNOT) && gpul_insn_begins(code, i) && !gpul_insn_ends(code, i);
}

static bool passes_filter(const struct trace_filter *f, const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	gpul_exec_fault position = { 0 };
	char text[256];
	const char *name = text;

	if (!gpul_trace_selects(f, TRACE_BY_PTX, in->line))
		return false;
	if (f->by[TRACE_BY_LINE]) {
		gpul_insn_place(code, i, &position, text, sizeof text);
		if (!gpul_trace_selects(f, TRACE_BY_LINE, position.source_line))
			return false;
	}
	if (!f->by[TRACE_BY_OP])
		return true;
	gpul_ptx_print_inst(code->program->module, code->ptx, in, text, sizeof text);
	if (*text == '@' && strchr(text, ' '))
		name = strchr(text, ' ') + 1;
	text[strcspn(name, " ;") + (size_t)(name - text)] = '\0';
	return gpul_trace_selects_name(f, TRACE_BY_OP, name);
}

static bool wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	const struct trace *t = (struct trace *)o;

	if (!gpul_insn_ptx(code, i) ||
	    !(gpul_insn_ends(code, i) || is_skip(code, i) || gpul_insn_accesses_memory(i) || gpul_insn_has_pieces(i)))
		return false;
	return passes_filter(&t->filter, code, i);
}

/* ---- instructions ------------------------------------------------------------------------------------------------- */

/* Find the description of the function that contains the instruction.  Returns false if out of memory. */
static bool find_code(struct trace *t, struct trace_warp *w, const struct warp_state *s)
{
	const struct func_code *key = s->frame->code;
	const uint32_t *b = s->block->index;

	if (w->key == key)
		return true;
	if (!w->key)
		w->n_head = (unsigned)snprintf(w->head, sizeof w->head, " block %u,%u,%u warp %u lanes ", b[0], b[1], b[2], s->index);
	w->code = gpul_trace_code(&t->codes, key);
	if (!w->code)
		return false;
	w->key = key;
	if (!w->code->used)
		w->code->index = t->codes.n_used++;
	return w->code->used = true;
}

static enum observed before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct trace *t = (struct trace *)o;
	struct trace_block *b = *block_note(s->block, o);
	struct trace_event *e = &t->event;
	struct trace_warp *w;

	if (has_ended(t) || !b || t->exceeded || (t->filter.by[TRACE_BY_WARP] && !gpul_trace_selects(&t->filter, TRACE_BY_WARP, s->index)))
		return OBSERVED_RUN;
	w = &b->warps[s->index];
	if (!find_code(t, w, s))
		return OBSERVED_RUN;
	if (t->pending != s || e->row != &w->code->rows[i->src])
		e->n_accesses = 0;
	t->pending = s;
	e->number = t->n;
	e->block = b;
	e->warp = w;
	e->s = s;
	e->code = w->code;
	e->row = &w->code->rows[i->src];
	e->frame = s->frame;
	e->depth = s->frame->depth;
	e->mask = s->w.mask;
	e->on = on;
	e->skipped = false;
	if (on && t->n >= t->from && gpul_insn_accesses_memory(i))
		e->n_accesses = gpul_insn_accesses(s, i, on, e->access);
	else if (on && t->n >= t->from && gpul_insn_has_pieces(i))
		e->n_accesses = gpul_insn_piece_sums(s, i, on, e->access);
	if (is_skip(s->frame->code, i)) {
		const uint32_t p = *PRED(&s->w, i->guard);

		e->skipped = !(s->w.mask & (i->op == OP_BRA_IF ? ~p : p));
	}
	for (unsigned k = 0; t->n >= t->from && i == e->row->insn && k < t->n_outputs; k++)
		if (t->output[k].sink->prepare)
			t->output[k].sink->prepare(&t->output[k], e, i);
	return OBSERVED_RUN;
}

static void after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	struct trace *t = (struct trace *)o;
	struct trace_event *e = &t->event;

	if (has_ended(t) || t->pending != s || waits) {
		t->pending = NULL;
		return;
	}
	if (e->skipped)
		e->on = 0;
	else if (i != e->row->insn)
		return;
	else
		e->on = on;
	t->pending = NULL;
	if (t->n++ < t->from)
		return;
	if (t->n_recorded == t->limit) {
		t->exceeded = true;
		return;
	}
	t->n_recorded++;
	for (unsigned k = 0; k < t->n_outputs; k++)
		t->output[k].sink->event(&t->output[k], e);
}

/* ---- blocks and launches ------------------------------------------------------------------------------------------ */

static void notice(struct trace *t, enum trace_note kind, struct trace_block *b, struct trace_notice n)
{
	n.kind = kind;
	n.number = t->n;
	n.block = b;
	if (b) {
		n.launch = b->launch;
		n.of = b->block->launch;
	}
	if (!has_ended(t) && !t->exceeded && (t->n >= t->from || kind == TRACE_LAUNCH || kind == TRACE_BLOCK))
		for (unsigned k = 0; k < t->n_outputs; k++)
			t->output[k].sink->notice(&t->output[k], &n);
}

/* Return the number of a launch; a new launch gets the next number. */
static unsigned number_of(struct trace *t, const gpul_exec_launch *l)
{
	unsigned k = 0;

	while (k < t->n_active && t->active[k].launch != l)
		k++;
	if (k < t->n_active)
		return t->active[k].number;
	if (t->n_active == TRACE_ACTIVE) /* more launches than can run at the same time: remove the oldest */
		memmove(&t->active[0], &t->active[1], --t->n_active * sizeof t->active[0]);
	k = t->n_active++;
	t->active[k].launch = l;
	t->active[k].number = t->n_launches++;
	if (gpul_trace_selects_name(&t->filter, TRACE_BY_KERNEL, l->kernel->info.name) &&
	    gpul_trace_selects(&t->filter, TRACE_BY_LAUNCH, t->active[k].number))
		notice(t, TRACE_LAUNCH, NULL, (struct trace_notice){ .of = l, .launch = t->active[k].number });
	return t->active[k].number;
}

static void block_begins(struct observer *o, struct block *block)
{
	struct trace *t = (struct trace *)o;
	const gpul_exec_launch *l = block->launch;
	const unsigned launch = number_of(t, l);
	const uint64_t linear = block->index[0] + (uint64_t)l->grid[0] * (block->index[1] + (uint64_t)l->grid[1] * block->index[2]);
	struct trace_block *b;

	*block_note(block, o) = NULL;
	if (has_ended(t) || t->exceeded || !gpul_trace_selects(&t->filter, TRACE_BY_BLOCK, linear) ||
	    !gpul_trace_selects(&t->filter, TRACE_BY_LAUNCH, launch) ||
	    !gpul_trace_selects_name(&t->filter, TRACE_BY_KERNEL, l->kernel->info.name))
		return;
	b = calloc(1, sizeof *b);
	if (b)
		b->warps = calloc(block->n_warps, sizeof *b->warps);
	if (!b || !b->warps) {
		free(b);
		gpul_tool_say("trace", out_of_memory);
		return;
	}
	b->block = block;
	b->number = t->n_blocks++;
	b->launch = launch;
	b->n_warps = block->n_warps;
	memcpy(b->index, block->index, sizeof b->index);
	*block_note(block, o) = b;
	notice(t, TRACE_BLOCK, b, (struct trace_notice){ 0 });
}

static void block_ends(struct observer *o, struct block *block)
{
	struct trace *t = (struct trace *)o;
	struct trace_block *b = *block_note(block, o);

	if (!b)
		return;
	notice(t, TRACE_BLOCK_ENDS, b, (struct trace_notice){ 0 });
	for (unsigned k = 0; k < t->n_outputs; k++)
		if (t->output[k].sink->block_ends)
			t->output[k].sink->block_ends(b);
	*block_note(block, o) = NULL;
	free(b->warps);
	free(b);
}

static void barrier_completes(struct observer *o, struct block *block, unsigned id)
{
	struct trace_block *b = *block_note(block, o);

	if (b)
		notice((struct trace *)o, TRACE_BARRIER, b, (struct trace_notice){ .barrier = id });
}

static void deadlock(struct observer *o, struct block *block)
{
	struct trace_block *b = *block_note(block, o);

	if (b)
		notice((struct trace *)o, TRACE_DEADLOCK, b, (struct trace_notice){ 0 });
}

static void launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	struct trace *t = (struct trace *)o;

	for (unsigned k = 0; k < t->n_active; k++) {
		if (t->active[k].launch != l)
			continue;
		notice(t, TRACE_LAUNCH_ENDS, NULL,
		       (struct trace_notice){
			       .of = l, .launch = t->active[k].number, .fault = fault->kind == GPUL_EXEC_OK ? NULL : fault->text });
		memmove(&t->active[k], &t->active[k + 1], (--t->n_active - k) * sizeof t->active[0]);
	}
}

static void program_ends(struct observer *o, const gpul_exec_program *p)
{
	gpul_trace_code_forget(&((struct trace *)o)->codes, p);
}

/* ---- the tool ----------------------------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *suffix)
{
	const size_t n = strlen(name), k = strlen(suffix);

	return n > k && !strcmp(name + n - k, suffix);
}

static const struct trace_sink *sink_of(const char *file)
{
	static const struct trace_sink *const sinks[] = { &gpul_trace_text, &gpul_trace_json, &gpul_trace_page };

	if (!strcmp(file, "-"))
		return &gpul_trace_text;
	for (unsigned k = 0; k < sizeof sinks / sizeof *sinks; k++)
		if (ends_in(file, sinks[k]->suffix))
			return sinks[k];
	return NULL;
}

static gpul_status add_output(struct trace *t, const char *file, size_t n, gpul_error *err)
{
	char *name = strndup(file, n);
	const struct trace_sink *sink = name ? sink_of(name) : NULL;
	gpul_status st = GPUL_OK;

	if (!name)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
	if (!sink)
		st = gpul_fail(
			err, GPUL_EINVAL, 0,
			"trace: the name of the file must end in .txt, .json (for Perfetto) or .html (a page that plays the kernel); '%.60s' does not",
			name);
	for (unsigned k = 0; !st && k < t->n_outputs; k++)
		if (t->output[k].sink == sink)
			st = gpul_fail(err, GPUL_EINVAL, 0, "trace: there are two files of the same kind: give only one %s", sink->suffix);
	if (st) {
		free(name);
		return st;
	}
	t->output[t->n_outputs++] = (struct trace_output){ .trace = t, .file = name, .sink = sink };
	return GPUL_OK;
}

/* Parse "a.html,a.json"; a comma may also be part of a file name. */
static gpul_status add_outputs(struct trace *t, const char *text, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	while (!st && *text) {
		size_t n = strcspn(text, ",");
		char part[256];

		while (text[n]) {
			snprintf(part, sizeof part, "%.*s", (int)n, text);
			if (n < sizeof part && sink_of(part))
				break;
			n += 1 + strcspn(text + n + 1, ",");
		}
		st = add_output(t, text, n, err);
		text += n + (text[n] == ',');
	}
	return st;
}

static gpul_status open_outputs(struct trace *t, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned k = 0; !st && k < t->n_outputs; k++) {
		struct trace_output *o = &t->output[k];

		o->to = gpul_tool_open_file(o->file);
		if (!o->to)
			st = gpul_fail(err, GPUL_ESYS, errno, "cannot write the trace to %s: %s", o->file, strerror(errno));
		else
			st = o->sink->open(o, err);
	}
	return st;
}

static gpul_status read_options(struct trace *t, const struct tool_options *options, gpul_error *err)
{
	const char *only = gpul_tool_option(options, "only"), *blocks = gpul_tool_option(options, "blocks");
	const char *file = gpul_tool_option(options, "file");
	gpul_status st;

	if (!file || !*file)
		return gpul_fail(err, GPUL_EINVAL, 0, "trace needs a file, or - for stdout: trace:file=NAME");
	t->limit = 100000;
	t->limit_is_given = gpul_tool_option(options, "limit") != NULL;
	st = gpul_tool_number(options, "trace", "limit", 1, &t->limit, err);
	if (!st)
		st = gpul_tool_number(options, "trace", "from", 0, &t->from, err);
	if (!st && only)
		st = gpul_trace_filter_add(&t->filter, only, false, err);
	if (!st && blocks)
		st = gpul_trace_filter_add(&t->filter, blocks, true, err);
	return st ? st : add_outputs(t, file, err);
}

/* Remove the output files; they contain only what open() has written, because no kernel has run yet. */
static void discard(struct observer *observer)
{
	struct trace *t = (struct trace *)observer;

	for (unsigned k = 0; k < t->n_outputs; k++) {
		struct trace_output *o = &t->output[k];

		if (o->lines || o->data)
			o->sink->close(o);
		gpul_tool_discard_file(o->to, o->file);
		free(o->file);
	}
	gpul_trace_filter_clear(&t->filter);
	free(t);
}

static gpul_status create(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	struct trace *t = calloc(1, sizeof *t);
	gpul_status st;

	(void)memory;
	if (!t)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
	t->observer = (struct observer){ .name = "trace",
					 .serial = true,
					 .wants = wants,
					 .before = before,
					 .after = after,
					 .barrier_completes = barrier_completes,
					 .deadlock = deadlock,
					 .block_begins = block_begins,
					 .block_ends = block_ends,
					 .launch_ends = launch_ends,
					 .program_ends = program_ends };
	st = read_options(t, options, err);
	st = st ? st : open_outputs(t, err);
	if (st)
		discard(&t->observer);
	else
		*out = &t->observer;
	return st;
}

static void write_files(struct trace *t)
{
	for (unsigned k = 0; k < t->n_outputs; k++) {
		struct trace_output *o = &t->output[k];
		bool bad;

		o->sink->close(o);
		bad = fflush(o->to) || ferror(o->to);
		if (o->to != stdout)
			bad |= fclose(o->to) != 0;
		if (bad)
			gpul_tool_report("trace", "cannot write %s", o->file);
	}
}

/* If the record is incomplete, print which part was recorded. */
static void say_what_is_missing(const struct trace *t)
{
	const unsigned long long last = t->from + t->n_recorded - 1;

	if (t->exceeded)
		gpul_tool_say("trace",
			      "the limit is reached: instructions %llu to %llu were recorded, and more were executed; limit=N "
			      "(--trace-limit N) records more, from=N (--from N) later ones",
			      (unsigned long long)t->from, last);
	else if (!t->n_recorded)
		gpul_tool_say("trace", "no instruction was recorded: %s",
			      t->n               ? "all of them are before from=N (--from)"
			      : t->still_running ? "the kernel still waits, or the filter selects nothing"
						 : "no kernel ran, or the filter selects nothing");
	else if (t->still_running)
		gpul_tool_say("trace", "the trace ends at instruction %llu, while the kernel is still running", last);
}

/* A kernel may still be running, after gpuload run --timeout, or if the program does not wait for the kernel. To avoid a lock for
 * each instruction, set `ended` and wait until a hook has read it. Hooks run on one thread and take microseconds, so if no hook has
 * read it after a second, the kernel itself is waiting. */
static void finish(struct observer *observer)
{
	struct trace *t = (struct trace *)observer;
	const uint64_t start = gpul_clock_ns();

	t->still_running = t->n_active > 0;
	atomic_store(&t->ended, true);
	while (t->still_running && !atomic_load(&t->ended_is_seen) && gpul_clock_ns() - start < LAST_HOOK_NS)
		usleep(100);
	write_files(t);
	say_what_is_missing(t);
}

static const char *const keys[] = { "file", "only", "blocks", "from", "limit", NULL };

const struct tool gpul_trace_tool = {
	.name = "trace",
	.summary = "write what each instruction does: file=NAME.txt|.json|.html only=FILTER blocks=LIST from=N limit=N",
	.keys = keys,
	.create = create,
	.discard = discard,
	.finish = finish,
	.stop = finish,
};
