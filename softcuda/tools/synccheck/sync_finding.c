/* sync_finding.c — reports findings; each kind is reported once per instruction. */
#include "softcuda/tools/synccheck/synccheck_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 700 };

/* ---- texts for messages ----------------------------------------------------------------------------------------------- */

const char *gpul_sync_opcode(const struct func_code *code, const struct insn *i, char *buf, size_t bytes)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);

	return in ? gpul_ptx_inst_text(code->program->module, in, buf, bytes) : "exit";
}

uint32_t gpul_sync_existing(const struct warp_state *s)
{
	const uint32_t here = s->block->n_threads - s->index * LANES;

	return here >= LANES ? ALL_LANES : (1u << here) - 1;
}

/* ---- findings --------------------------------------------------------------------------------------------------- */

bool gpul_sync_is_new(struct synccheck *c, const char *kind, const struct func_code *code, const struct insn *i)
{
	const struct finding_key key = { .what = { kind, i }, .number = code->program->id };
	char place[120], text[160];

	if (gpul_finding_known(&c->findings, &key))
		return false;
	gpul_insn_place(code, i, NULL, place, sizeof place);
	snprintf(text, sizeof text, "%s: %s", place, kind);
	return gpul_finding_new(&c->findings, &key, text);
}

void gpul_sync_report(struct synccheck *c, const char *kind, struct warp_state *s, const struct insn *i, uint32_t lanes, const char *fmt,
		      ...)
{
	const struct func_code *code = s->frame->code;
	const struct gpul_exec_launch *l = s->block->launch;
	char place[160], opcode[80], text[LINE_BYTES], who[100], block[INDEX_BYTES];
	va_list ap;

	if (!gpul_sync_is_new(c, kind, code, i))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	gpul_insn_place(code, i, NULL, place, sizeof place);
	gpul_tool_report(SYNCCHECK, "%s: %s: %s: %s\nkernel %s, block %s, warp %u, %s", place,
			 gpul_sync_opcode(code, i, opcode, sizeof opcode), kind, text, SHOWN_NAME(l->kernel->info.name),
			 gpul_index_text(s->block->index, l->grid, block), s->index, gpul_tool_lanes(lanes, who, sizeof who));
}
