/* trace_json.c — writes a trace for Perfetto and chrome://tracing: a process per block, a thread per warp, an event per instruction.
 *
 * An event's time is its instruction number, shown as microseconds. Source: Trace Event Format, "Complete events", "Metadata events". */
#include "softcuda/tools/trace/trace_internal.h"

#include <stdlib.h>
#include <string.h>

/* Append text as a JSON string; returns the new end. */
static char *put_text(char *to, const char *text)
{
	*to++ = '"';
	for (; *text; text++) {
		if ((unsigned char)*text < ' ') {
			to += sprintf(to, "\\u%04x", (unsigned char)*text);
			continue;
		}
		if (*text == '"' || *text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	*to++ = '"';
	return to;
}

/* Return the JSON members that all events of the same PTX instruction share; they are created once.  NULL: out of memory. */
static const char *members_of(const struct trace_event *e)
{
	struct trace_row *row = &e->code->rows[e->row - e->code->rows];
	char *to;

	if (row->json)
		return row->json;
	to = row->json = malloc(6 * (strlen(row->place) + strlen(row->text)) + 40);
	if (!to)
		return NULL;
	to = put_text(gpul_trace_put(to, ",\"at\":"), row->place);
	*put_text(gpul_trace_put(to, ",\"ptx\":"), row->text) = '\0';
	return row->json;
}

static void write_event(struct trace_output *o, const struct trace_event *e)
{
	char *to = gpul_trace_line(o);
	const char *members = members_of(e);

	to = gpul_trace_decimal(gpul_trace_put(to, ",\n{\"ph\":\"X\",\"ts\":"), e->number);
	to = gpul_trace_decimal(gpul_trace_put(to, ",\"dur\":1,\"pid\":"), e->block->number);
	to = gpul_trace_decimal(gpul_trace_put(to, ",\"tid\":"), e->s->index);
	to = gpul_trace_put(gpul_trace_put(to, ",\"name\":\""), e->row->name);
	to = gpul_trace_mask(gpul_trace_put(to, "\",\"args\":{\"lanes\":\""), e->on);
	to = gpul_trace_mask(gpul_trace_put(to, "\",\"active\":\""), e->mask);
	*to++ = '"';
	if (members)
		to = gpul_trace_put(to, members);
	for (unsigned k = 0; k < e->row->n_dests && e->on; k++) {
		const struct trace_reg *r = &e->code->regs[e->row->dest[k]];
		unsigned bytes;
		const void *v = trace_dest(e, k, &bytes);

		*to++ = ',', *to++ = '"';
		memcpy(to, r->label + 2, r->n_label - 5); /* the label without its leading blanks and its equals sign */
		to = gpul_trace_put(to + r->n_label - 5, "\":\"");
		to = gpul_trace_lanes(to, v, bytes, e->row->type[k], e->on);
		*to++ = '"';
	}
	for (unsigned k = 0; k < e->n_accesses; k++) {
		static const char *const kinds[] = { "", ",\"reads", ",\"writes", ",\"changes" };
		const struct lane_accesses *a = &e->access[k];

		to = gpul_trace_put(to, kinds[a->kind]);
		to = gpul_trace_put(to, a->lanes && a->space[first_lane(a->lanes)] == SPACE_SHARED ? " shared\":\"" : "\":\"");
		to = gpul_trace_lanes(to, a->at, 8, 'u', a->lanes);
		*to++ = '"';
	}
	*to++ = '}', *to++ = '}';
	gpul_trace_written(o, to);
}

static void write_instant(struct trace_output *o, const struct trace_notice *n, const char *name)
{
	fprintf(o->to, ",\n{\"ph\":\"i\",\"s\":\"p\",\"ts\":%llu,\"pid\":%u,\"tid\":0,\"name\":\"%s %u\"}", (unsigned long long)n->number,
		n->block->number, name, n->barrier);
}

static void write_notice(struct trace_output *o, const struct trace_notice *n)
{
	gpul_trace_flush(o);
	switch (n->kind) {
	case TRACE_BLOCK:
		fprintf(o->to, ",\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"launch %u, block %u,%u,%u\"}}",
			n->block->number, n->launch, n->block->index[0], n->block->index[1], n->block->index[2]);
		for (unsigned w = 0; w < n->block->n_warps; w++)
			fprintf(o->to, ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"warp %u\"}}",
				n->block->number, w, w);
		break;
	case TRACE_BARRIER:
		write_instant(o, n, "barrier");
		break;
	case TRACE_DEADLOCK:
		write_instant(o, n, "deadlock");
		break;
	default:
		break;
	}
}

static gpul_status open_json(struct trace_output *o, gpul_error *err)
{
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"trace_of\",\"args\":{\"name\":\"gpuload\"}}",
	      o->to);
	return gpul_trace_open_lines(o, err);
}

static void close_json(struct trace_output *o)
{
	gpul_trace_close_lines(o);
	fprintf(o->to, "\n],\"otherData\":{\"limit reached\":%s,\"still running\":%s}}\n", o->trace->exceeded ? "true" : "false",
		o->trace->still_running ? "true" : "false");
}

const struct trace_sink gpul_trace_json = {
	.suffix = ".json", .open = open_json, .event = write_event, .notice = write_notice, .close = close_json
};
