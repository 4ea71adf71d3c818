/* json.c — a trace for Perfetto and chrome://tracing: a process per block, a thread per warp, an event per instruction.
 *
 * The time, which these programs show as microseconds, is the number of the instruction.
 * Source: Trace Event Format, "Complete events" and "Metadata events". */
#include "softcuda/tools/trace/trace_internal.h"

#include <string.h>

enum { BUFFER_BYTES = 1 << 18 };

static void write_text(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(to, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(to, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, to);
	}
	fputc('"', to);
}

static void write_event(struct trace_output *o, const struct trace_event *e)
{
	static char values[TRACE_LANES_BYTES];  /* one trace, on one thread at a time */

	fprintf(o->to, ",\n{\"ph\":\"X\",\"ts\":%llu,\"dur\":1,\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"lanes\":\"%08x\",\"active\":\"%08x\",\"at\":",
		(unsigned long long)e->number, e->block->number, e->s->index, e->row->name, e->on, e->mask);
	write_text(o->to, e->row->place);
	fputs(",\"ptx\":", o->to);
	write_text(o->to, e->row->text);
	for (unsigned k = 0; k < e->row->n_dests && e->on; k++) {
		unsigned bytes;
		const void *v = trace_dest(e, k, &bytes);

		gpul_trace_lanes(values, v, bytes, e->row->type[k], e->on);
		fprintf(o->to, ",\"%s\":\"%s\"", e->code->regs[e->row->dest[k]].name, values);
	}
	for (unsigned k = 0; k < e->n_accesses; k++) {
		static const char *const kinds[] = { "", "reads", "writes", "changes" };
		const struct lane_accesses *a = &e->access[k];

		gpul_trace_lanes(values, a->at, 8, 'u', a->lanes);
		fprintf(o->to, ",\"%s%s\":\"%s\"", kinds[a->kind],
			a->lanes && a->space[first_lane(a->lanes)] == SPACE_SHARED ? " shared" : "", values);
	}
	fputs("}}", o->to);
}

static void write_instant(struct trace_output *o, const struct trace_notice *n, const char *name)
{
	fprintf(o->to, ",\n{\"ph\":\"i\",\"s\":\"p\",\"ts\":%llu,\"pid\":%u,\"tid\":0,\"name\":\"%s %u\"}", (unsigned long long)n->number,
		n->block->number, name, n->barrier);
}

static void write_notice(struct trace_output *o, const struct trace_notice *n)
{
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
	if (setvbuf(o->to, NULL, _IOFBF, BUFFER_BYTES))
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"trace_of\",\"args\":{\"name\":\"gpuload\"}}", o->to);
	return GPUL_OK;
}

static void close_json(struct trace_output *o)
{
	fprintf(o->to, "\n],\"otherData\":{\"limit reached\":%s}}\n", o->trace->exceeded ? "true" : "false");
}

const struct trace_sink gpul_trace_json = { .suffix = ".json", .open = open_json, .event = write_event, .notice = write_notice, .close = close_json };
