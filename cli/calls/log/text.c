/* text.c — writes each call as a line, in the form that strace uses:
 *
 *     4711      0.001234567 cuMemAlloc_v2(*dptr=0x7f0000000000, bytesize=4096) = CUDA_SUCCESS <2.310 us>
 *     process   seconds since the log began                                                    duration
 *
 * A call that another one makes is indented; `*dptr` is the value to which dptr points. */
#include <string.h>

#include "cli/calls/log/sink.h"
#include "cli/calls/log/values.h"

/* Append value with a decimal point before its last n digits. */
static void add_fixed(struct out *o, uint64_t value, unsigned n_digits)
{
	uint64_t unit = 1, rest;

	for (unsigned i = 0; i < n_digits; i++)
		unit *= 10;
	out_u64(o, value / unit);
	out_text(o, ".");
	rest = value % unit;
	for (unit /= 10; unit; unit /= 10)
		out_bytes(o, &"0123456789"[rest / unit % 10], 1);
}

static void add_elements(struct out *o, const struct value_context *c, const struct calls_param *p, const struct calls_piece *piece)
{
	const size_t n = piece->n_bytes / p->pointee->n_bytes;

	out_text(o, "*");
	out_text(o, p->name);
	out_text(o, p->count < 0 ? "=" : "=[");
	for (size_t i = 0; i < n; i++) {
		out_text(o, i ? ", " : "");
		value_add_text(o, c, p->pointee, p->is_kernel, piece->bytes + i * p->pointee->n_bytes);
	}
	out_text(o, piece->cut ? ", ..." : "");
	out_text(o, p->count < 0 ? "" : "]");
}

static void add_param(struct out *o, const struct value_context *c, const struct calls_event *e, size_t i)
{
	const struct calls_param *p = &e->row->params[i];
	struct calls_piece piece = { .absent = true };

	if (p->capture != CALLS_NOTHING) /* most parameters capture nothing, so this test saves calls of calls_piece_of() */
		piece = calls_piece_of(e, i);
	if (!piece.absent && p->pointee) {
		add_elements(o, c, p, &piece);
		return;
	}
	out_text(o, piece.absent || p->capture == CALLS_TEXT_IN ? "" : "*");
	out_text(o, p->name);
	out_text(o, "=");
	if (piece.absent)
		value_add_text(o, c, p->type, p->is_kernel, (const uint8_t *)(e->words + p->word));
	else
		value_add_quoted(o, &piece);
}

static void add_result(struct out *o, const struct value_context *c, const struct calls_event *e)
{
	const struct calls_piece why = calls_error_text(e), text = calls_result_text(e);

	if (!e->finished) {
		out_text(o, " = ? <unfinished>");
		return;
	}
	if (e->row->result)
		out_text(o, " = ");
	if (!text.absent)
		value_add_quoted(o, &text);
	else if (e->row->result)
		value_add_text(o, c, e->row->result, false, (const uint8_t *)&e->result);
	if (!why.absent) {
		out_text(o, " (");
		out_name(o, (const char *)why.bytes, why.n_bytes);
		out_text(o, ")");
	}
	out_text(o, " <");
	add_fixed(o, e->duration_ns, 3);
	out_text(o, " us>");
}

void sink_add_text(struct sink *s, const struct calls_event *e)
{
	const struct value_context c = { s->names, e->pid };
	struct out *o = &s->json.out;

	out_u64(o, (uint64_t)e->pid);
	if (e->tid != e->pid) {
		out_text(o, "/");
		out_u64(o, (uint64_t)e->tid);
	}
	out_text(o, " ");
	add_fixed(o, e->start_ns, 9);
	out_text(o, " ");
	out_repeat(o, ' ', 2 * (size_t)e->depth);
	out_text(o, e->row->name);
	out_text(o, "(");
	for (size_t i = 0; i < e->row->n_params; i++) {
		out_text(o, i ? ", " : "");
		add_param(o, &c, e, i);
	}
	out_text(o, ")");
	add_result(o, &c, e);
	out_text(o, "\n");
	s->n_calls++;
}
