/* json.c — writes each call as a JSON object in a separate line, or as an event of the Trace Event Format, with a track for each thread. */
#include <stdio.h>

#include "cli/calls/log/sink.h"
#include "cli/calls/log/values.h"
#include "cli/lib/json/trace_events.h"

static void add_param(struct json *j, const struct value_context *c, const struct calls_event *e, size_t i)
{
	const struct calls_param *p = &e->row->params[i];
	const struct calls_piece piece = calls_piece_of(e, i);

	if (piece.absent && (p->capture == CALLS_OUT || p->capture == CALLS_TEXT_OUT || p->capture == CALLS_TEXT_POINTER)) {
		json_null(j, p->name);
	} else if (piece.absent) {
		value_add_json(j, c, p->type, p->name, (const uint8_t *)(e->words + p->word));
	} else if (!p->pointee) {
		json_chars(j, p->name, (const char *)piece.bytes, piece.n_bytes);
	} else if (p->count < 0) {
		value_add_json(j, c, p->pointee, p->name, piece.bytes);
	} else {
		json_begin(j, p->name, '[');
		for (size_t at = 0; at + p->pointee->n_bytes <= piece.n_bytes; at += p->pointee->n_bytes)
			value_add_json(j, c, p->pointee, NULL, piece.bytes + at);
		json_end(j, ']');
	}
}

static void add_details(struct json *j, const struct value_context *c, const struct calls_event *e)
{
	const char *kernel = value_launched_kernel(c, e);
	const struct calls_piece why = calls_error_text(e), text = calls_result_text(e);

	json_begin(j, "args", '{');
	for (size_t i = 0; i < e->row->n_params; i++)
		add_param(j, c, e, i);
	json_end(j, '}');
	if (kernel)
		json_text(j, "kernel", kernel);
	if (!e->finished)
		json_bool(j, "unfinished", true);
	else if (!text.absent)
		json_chars(j, "result", (const char *)text.bytes, text.n_bytes);
	else if (e->row->result)
		value_add_json(j, c, e->row->result, "result", (const uint8_t *)&e->result);
	if (!why.absent)
		json_chars(j, "error", (const char *)why.bytes, why.n_bytes);
}

void sink_add_json(struct sink *s, const struct calls_event *e)
{
	const struct value_context c = { s->names, e->pid };
	struct json *j = &s->json;

	json_begin(j, NULL, '{');
	json_i64(j, "pid", e->pid);
	json_i64(j, "tid", e->tid);
	json_u64(j, "start_ns", e->start_ns);
	json_u64(j, "duration_ns", e->duration_ns);
	json_u64(j, "depth", e->depth);
	json_text(j, "api", e->row->is_runtime ? "runtime" : "driver");
	json_text(j, "class", e->row->category);
	json_text(j, "call", e->row->name);
	add_details(j, &c, e);
	json_end(j, '}');
	out_text(&j->out, "\n");
	j->comma = false;
	s->n_calls++;
}

static void name_thread(struct sink *s, const struct calls_event *e)
{
	char name[64];

	if (s->named_threads[e->tid % SINK_NAMED] == e->tid)
		return;
	snprintf(name, sizeof name, "process %d", e->pid);
	trace_name_process(&s->json, (unsigned)e->pid, name);
	snprintf(name, sizeof name, "thread %d", e->tid);
	trace_name_track(&s->json, (unsigned)e->pid, (unsigned)e->tid, name);
	s->named_threads[e->tid % SINK_NAMED] = e->tid;
}

void sink_add_perfetto(struct sink *s, const struct calls_event *e)
{
	const struct value_context c = { s->names, e->pid };
	const char *kernel = value_launched_kernel(&c, e);
	struct out name = { 0 };

	name_thread(s, e);
	out_text(&name, e->row->name);
	if (kernel) {
		out_text(&name, " ");
		out_text(&name, kernel);
	}
	out_bytes(&name, "", 1);
	trace_begin_slice(&s->json, (unsigned)e->pid, (unsigned)e->tid, name.failed ? e->row->name : name.at, (int64_t)e->start_ns,
			  (int64_t)(e->start_ns + e->duration_ns));
	json_text(&s->json, "cat", e->row->category);
	json_begin(&s->json, "args", '{');
	add_details(&s->json, &c, e);
	json_end(&s->json, '}');
	json_end(&s->json, '}');
	out_text(&s->json.out, "\n");
	out_free(&name);
	s->n_calls++;
}

void sink_end_perfetto(struct sink *s)
{
	json_end(&s->json, ']');
	json_text(&s->json, "displayTimeUnit", "ns");
	json_end(&s->json, '}');
	out_text(&s->json.out, "\n");
}
