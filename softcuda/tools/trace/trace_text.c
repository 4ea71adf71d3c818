/* trace_text.c — writes a trace as text: one line per instruction.
 *
 *     #21 block 0,0,0 warp 0 lanes ffffffff k.ptx:20 (k.cu:7): mad.lo.s32 %r5, %r2, %r3, %r4;  %r5 = 0, 1 ... 31
 *
 * The values are those that the instruction wrote; "-" marks a lane that did not execute it. */
#include "softcuda/tools/trace/trace_internal.h"

#include <string.h>

/* Write " reads 4 bytes of shared at 0, 4 ... 124".  With generic addresses, lanes can access different spaces. */
static char *put_access(char *to, const struct lane_accesses *a)
{
	static const char *const kinds[] = { "", "reads", "writes", "changes" };
	static const char *const spaces[] = { "global", "generic", "shared", "local", "param", "surface" };
	uint32_t rest = a->lanes;

	while (rest) {
		const unsigned first = first_lane(rest), space = a->space[first];
		uint32_t same = 0;

		EACH_LANE_OF(l, rest)
		same |= a->space[l] == space ? 1u << l : 0;
		rest &= ~same;
		*to++ = ' ', *to++ = ' ';
		to = gpul_trace_put(to, kinds[a->kind]);
		*to++ = ' ';
		to = gpul_trace_decimal(to, a->bytes[first]);
		to = gpul_trace_put(to, " bytes of ");
		to = gpul_trace_put(to, spaces[space <= SPACE_SURFACE ? space : SPACE_GENERIC]);
		to = gpul_trace_put(to, " at ");
		to = gpul_trace_lanes(to, a->at, 8, 'u', same);
	}
	return to;
}

static void write_event(struct trace_output *o, const struct trace_event *e)
{
	char *to = gpul_trace_line(o);

	*to++ = '#';
	to = gpul_trace_decimal(to, e->number);
	to = gpul_trace_copy(to, e->warp->head, e->warp->n_head);
	to = gpul_trace_mask(to, e->on);
	if (e->on != e->mask) {
		to = gpul_trace_put(to, " of ");
		to = gpul_trace_mask(to, e->mask);
	}
	to = gpul_trace_copy(to, e->row->head, e->row->n_head);
	for (unsigned k = 0; k < e->row->n_dests && e->on; k++) {
		const struct trace_reg *r = &e->code->regs[e->row->dest[k]];
		unsigned bytes;
		const void *values = trace_dest(e, k, &bytes);

		to = gpul_trace_copy(to, r->label, r->n_label);
		to = gpul_trace_lanes(to, values, bytes, e->row->type[k], e->on);
	}
	for (unsigned k = 0; k < e->n_accesses; k++)
		to = put_access(to, &e->access[k]);
	*to++ = '\n';
	gpul_trace_written(o, to);
}

static void write_notice(struct trace_output *o, const struct trace_notice *n)
{
	const gpul_exec_launch *l = n->of;
	const uint32_t *b = n->block ? n->block->index : NULL;

	gpul_trace_flush(o);
	switch (n->kind) {
	case TRACE_LAUNCH:
		fprintf(o->to, "launch %u of %s: grid %u,%u,%u, block %u,%u,%u\n", n->launch, SHOWN_NAME(l->kernel->info.name), l->grid[0],
			l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
		break;
	case TRACE_LAUNCH_ENDS:
		fprintf(o->to, "launch %u ends%s%s\n", n->launch, n->fault ? ": " : "", n->fault ? n->fault : "");
		break;
	case TRACE_BLOCK:
		fprintf(o->to, "block %u,%u,%u of launch %u begins\n", b[0], b[1], b[2], n->launch);
		break;
	case TRACE_BLOCK_ENDS:
		fprintf(o->to, "block %u,%u,%u of launch %u ends\n", b[0], b[1], b[2], n->launch);
		break;
	case TRACE_BARRIER:
		fprintf(o->to, "block %u,%u,%u: barrier %u completes\n", b[0], b[1], b[2], n->barrier);
		break;
	case TRACE_DEADLOCK:
		fprintf(o->to, "block %u,%u,%u: deadlock: no warp can continue\n", b[0], b[1], b[2]);
		break;
	}
}

static void close_text(struct trace_output *o)
{
	gpul_trace_close_lines(o);
	if (o->trace->exceeded)
		fprintf(o->to, "the limit of %llu instructions is reached; more were executed\n", (unsigned long long)o->trace->limit);
	else if (o->trace->still_running)
		fprintf(o->to, "the trace ends here: the kernel is still running\n");
}

const struct trace_sink gpul_trace_text = {
	.suffix = ".txt", .open = gpul_trace_open_lines, .event = write_event, .notice = write_notice, .close = close_text
};
