/* trace.c — the tool trace: writes one line for each instruction of each warp. */
#include "softcuda/tools/trace/trace_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/exec/warp/observe_internal.h"

struct trace {
	struct observer observer;    /* first member */
	FILE *to;
	const char *file;            /* "-": stdout */
	uint64_t limit, n;           /* instructions: to record at most, recorded */
	bool exceeded;
};

static bool wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	(void)o;
	return gpul_insn_begins(code, i) && gpul_insn_ptx(code, i);
}

/* serial: called by one worker, so that no lock is needed. */
static enum observed before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct trace *t = (struct trace *)o;
	const struct func_code *code = s->frame->code;
	char place[160], text[200];

	if (t->n == t->limit) {
		t->exceeded = true;
		return OBSERVED_RUN;
	}
	gpul_insn_place(code, i, NULL, place, sizeof place);
	gpul_ptx_print_inst(code->program->module, code->ptx, gpul_insn_ptx(code, i), text, sizeof text);
	fprintf(t->to, "#%llu block %u,%u,%u warp %u lanes %08x %s: %s\n", (unsigned long long)t->n++, s->block->index[0], s->block->index[1],
		s->block->index[2], s->index, on, place, text);
	return OBSERVED_RUN;
}

static gpul_status create(struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	const char *file = gpul_tool_option(options, "file");
	struct trace *t;
	gpul_status st;

	(void)memory;
	if (!file || !*file)
		return gpul_fail(err, GPUL_EINVAL, 0, "trace needs a file, or - for stdout: trace:file=NAME");
	t = calloc(1, sizeof *t);
	if (!t)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
	t->observer = (struct observer){ .name = "trace", .serial = true, .wants = wants, .before = before };
	t->file = file;
	t->limit = 100000;
	st = gpul_tool_number(options, "trace", "limit", 1, &t->limit, err);
	if (!st) {
		t->to = strcmp(file, "-") ? fopen(file, "we") : stdout;
		if (!t->to)
			st = gpul_fail(err, GPUL_ESYS, errno, "cannot write the trace to %.100s: %s", file, strerror(errno));
	}
	if (st)
		free(t);
	else
		*out = &t->observer;
	return st;
}

static void finish(struct observer *o)
{
	struct trace *t = (struct trace *)o;
	const bool bad = fflush(t->to) || ferror(t->to);

	if (t->to != stdout)
		fclose(t->to);
	if (bad)
		gpul_tool_report("trace", "cannot write %s", t->file);
	if (t->exceeded)
		gpul_tool_say("trace", "only the first %llu instructions were recorded: limit=N (--trace-limit N) records more",
			      (unsigned long long)t->limit);
}

const struct tool gpul_trace_tool = { "trace", "write what each instruction does: file=NAME limit=N", create, finish };
